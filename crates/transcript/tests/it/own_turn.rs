//! What a transcript says of one prompt's own turn, record by record.

use serde_json::{Value, json};
use transcript::text::TEXT_UNITS_MAX;
use transcript::{
    Answer, Asked, Body, Durability, Identity, Own, OwnTurn, TurnResult, TurnState, Writer, find_own_turn, prompt_texts,
};

use crate::sample::{START_MS, Sample, record, with};

const ASKED: &str = "what is \"it\"?";
const ANSWER: &str = "it is so";

/// Keeps what is heard, as a caller's digest would.
#[derive(Default)]
struct Texts {
    wanted: Vec<String>,
    heard: Vec<Vec<u8>>,
    told_bytes: u64,
}

impl Texts {
    fn wanting(texts: &[&str]) -> Self {
        Self { wanted: texts.iter().map(|text| (*text).to_owned()).collect(), ..Self::default() }
    }
}

impl Asked for Texts {
    fn text(&mut self, bytes: u64) {
        self.told_bytes += bytes;
        self.heard.push(Vec::new());
    }

    fn piece(&mut self, bytes: &[u8]) {
        self.heard.last_mut().unwrap().extend_from_slice(bytes);
    }

    fn agrees(&mut self) -> bool {
        assert_eq!(self.told_bytes, self.heard.iter().map(|text| text.len() as u64).sum::<u64>());
        self.heard.iter().map(Vec::as_slice).eq(self.wanted.iter().map(String::as_bytes))
    }
}

fn completed(text: &str) -> TurnResult {
    let mut result = TurnResult::new("p", TurnState::Completed, START_MS).with_result_text(text);
    result.stop_reason = Some("end_turn".into());
    result
}

fn payload(result: TurnResult) -> Value {
    let Body::System { payload, .. } = result.into() else { panic!("a note") };
    payload
}

/// One record of the notation.
fn of_word(word: &str, uuid: &str, parent: Option<&str>) -> Value {
    let user = |stamp: Value, text: &str| {
        let message = json!({"role": "user", "parts": [{"text": text}]});
        with(record(uuid, parent, "user"), json!({"daemonPromptId": stamp, "message": message}))
    };
    let said = |text: &str| {
        with(record(uuid, parent, "assistant"), json!({"message": {"role": "model", "parts": [{"text": text}]}}))
    };
    let result = |result| with(record(uuid, parent, "turn_result"), json!({"systemPayload": payload(result)}));
    match word {
        "asked" => user(json!("p"), ASKED),
        "asked-else" => user(json!("p"), "what is \"it\"? "),
        "other" => user(json!("q"), ASKED),
        "nameless" => user(Value::Null, ASKED),
        "into" => with(user(Value::Null, "and this"), json!({"subtype": "mid_turn_user_message"})),
        "said" => said(ANSWER),
        "said-else" => said("it is no"),
        "tool" => record(uuid, parent, "tool_result"),
        "done" => result(completed(ANSWER)),
        "done-silent" => result(completed("")),
        "cancelled" => result(TurnResult::new("p", TurnState::Cancelled, START_MS)),
        "failed" => result(TurnResult::new("p", TurnState::Error, START_MS).with_error("no", None)),
        "done-other" => result(TurnResult { prompt_id: "q".into(), ..completed(ANSWER) }),
        "done-nameless" => {
            let mut payload = payload(completed(ANSWER));
            payload.as_object_mut().unwrap().remove("promptId").unwrap();
            with(record(uuid, parent, "turn_result"), json!({"systemPayload": payload}))
        }
        "done-badly" => with(record(uuid, parent, "turn_result"), json!({"systemPayload": {"promptId": "p"}})),
        "compressed" => record(uuid, parent, "chat_compression"),
        "rewound" => record(uuid, parent, "rewind"),
        "foreign" => with(record(uuid, parent, "assistant"), json!({"sessionId": "s2"})),
        "done-strayed" => result(TurnResult { stray_words: true, ..completed(ANSWER) }),
        "late" => with(record(uuid, parent, "late_output"), json!({"systemPayload": {"promptId": "p", "text": "and"}})),
        "late-other" => with(record(uuid, parent, "late_output"), json!({"systemPayload": {"promptId": "q"}})),
        "note" | "tail" => record(uuid, parent, "note"),
        _ => panic!("{word}"),
    }
}

/// A transcript of such words; the one that is called `tail` has that uuid, and nothing hangs on one that is `beside:` the branch.
fn transcript(words: &str) -> Sample {
    let (mut lines, mut parent) = (Vec::new(), None);
    for (index, word) in words.split_whitespace().enumerate() {
        let uuid = if word == "tail" { "tail".to_owned() } else { format!("r{index}") };
        lines.push(of_word(word.trim_start_matches("beside:"), &uuid, parent.as_deref()));
        if !word.starts_with("beside:") {
            parent = Some(uuid);
        }
    }
    Sample::of_lines(&lines)
}

fn said(found: OwnTurn) -> String {
    let exact = match found {
        OwnTurn::Exact(exact) => exact,
        OwnTurn::Lost(why) => return format!("{why:?}"),
        other => return format!("{other:?}"),
    };
    match exact.answer {
        Answer::Short(text) if exact.has_strayed => format!("{text}, strayed"),
        Answer::Short(text) => text,
        Answer::Recorded(recorded) => {
            let mut bytes = Vec::new();
            let is_whole = recorded.read(0..u64::MAX, |piece| {
                bytes.extend_from_slice(piece);
                true
            });
            assert!(is_whole.unwrap());
            String::from_utf8(bytes).unwrap()
        }
        Answer::Lost(lost) => format!("{lost:?}"),
        Answer::Nothing => format!("{:?} without a text", exact.result.state),
    }
}

fn found_behind(armed_tail: Option<&str>, sample: &Sample) -> String {
    let own = Own { session_id: "s1", prompt_id: "p", armed_tail };
    match find_own_turn(sample.path(), own, &mut Texts::wanting(&[ASKED])) {
        Ok(found) => said(found),
        Err(error) => error.code().to_owned(),
    }
}

fn found(words: &str) -> String {
    let armed = words.contains("tail").then_some("tail");
    found_behind(armed, &transcript(words))
}

#[test]
fn a_turn_is_exact_when_nothing_speaks_against_it() {
    for (words, expected) in [
        ("tail asked said done", ANSWER),
        ("asked said done", ANSWER),
        ("tail asked tool said done", ANSWER),
        ("tail note asked said note done note", ANSWER),
        ("other said done-other tail asked said done", ANSWER),
        ("tail asked said done other said done-other", ANSWER),
        ("tail asked said done nameless into", ANSWER),
        ("nameless beside:other tail asked said done beside:other nameless", ANSWER),
        ("tail asked beside:asked said done", ANSWER),
        ("tail done-nameless asked said done done-nameless", ANSWER),
        ("tail asked done-silent", "Completed without a text"),
        ("tail asked said cancelled", "Cancelled without a text"),
        ("tail asked failed said", "Error without a text"),
    ] {
        assert_eq!(found(words), expected, "{words}");
    }
}

#[test]
fn whoever_else_speaks_before_the_end_takes_the_certainty() {
    for words in [
        "tail asked nameless said done",
        "tail nameless asked said done",
        "tail other asked said done",
        "tail asked other said done",
        "tail asked said into done",
        "tail asked asked said done",
        "tail asked said nameless",
        "tail other said done-other",
        "nameless said asked said done",
        "tail beside:nameless asked said done",
        "tail asked beside:other said done",
        "tail asked said beside:into done",
        "asked said beside:nameless done other",
        "tail asked beside:nameless said",
    ] {
        assert_eq!(found(words), "ExtraUserMessage", "{words}");
    }
    let behind_its_child = Sample::of_lines(&[
        of_word("asked", "u", None),
        of_word("said", "s", Some("n")),
        of_word("done", "d", Some("s")),
        of_word("nameless", "n", Some("u")),
        of_word("note", "e", Some("d")),
    ]);
    assert_eq!(found_behind(None, &behind_its_child), "ExtraUserMessage");
}

#[test]
fn words_of_the_agent_that_belong_to_no_turn_are_told_with_the_turn_that_they_speak_against() {
    let strayed = format!("{ANSWER}, strayed");
    for (words, expected) in [
        ("tail asked said done-strayed", &*strayed),
        ("tail asked said done late", &*strayed),
        ("tail asked said done late note late other said done-other late-other", &*strayed),
        ("tail late-other asked said done", ANSWER),
        ("other said done-other tail late-other asked said done other said done-other late-other", ANSWER),
    ] {
        assert_eq!(found(words), expected, "{words}");
    }
}

#[test]
fn order_is_not_ownership() {
    for words in ["tail nameless said done", "tail nameless said", "tail said done", "tail nameless said done-other"] {
        assert_eq!(found(words), "OrderOnly", "{words}");
    }
    for words in ["tail asked said done-nameless", "tail nameless said done-nameless"] {
        assert_eq!(found(words), "OrderOnly", "{words}");
    }
}

#[test]
fn without_an_end_there_is_none() {
    for (words, expected) in [
        ("tail asked", "Interrupted"),
        ("tail asked said tool", "Interrupted"),
        ("tail asked said done-other", "Interrupted"),
        ("tail done-nameless asked said", "Interrupted"),
        ("tail", "Nothing"),
        ("tail note said", "Nothing"),
        ("tail asked-else said done", "OtherText"),
        ("tail asked-else", "OtherText"),
    ] {
        assert_eq!(found(words), expected, "{words}");
    }
}

#[test]
fn an_answer_that_its_own_record_does_not_repeat_is_none() {
    for words in ["tail asked said-else done", "tail asked done", "tail asked said tool done", "tail said asked done"] {
        assert_eq!(found(words), "Uncertain", "{words}");
    }
    let two = "said while the tool ran";
    for answer in [ANSWER.to_owned(), "x".repeat(2 * TEXT_UNITS_MAX)] {
        let said = json!({"message": {"role": "model", "parts": [{"text": two}, {"text": answer}]}});
        let sample = Sample::of_lines(&[
            of_word("asked", "u", None),
            with(record("s", Some("u"), "assistant"), said),
            with(record("d", Some("s"), "turn_result"), json!({"systemPayload": payload(completed(&answer))})),
        ]);
        assert_eq!(found_behind(None, &sample), "Uncertain", "it is only the end of what was said");
    }
}

#[test]
fn what_makes_the_file_uncertain_is_named() {
    for (words, expected) in [
        ("tail compressed asked said done", "Compressed"),
        ("tail asked said done compressed", "Compressed"),
        ("tail asked rewound said done", "Rewound"),
        ("tail asked said done rewound", "Rewound"),
        ("compressed rewound tail asked said done", ANSWER),
        ("tail asked said done done", "Damaged"),
        ("tail said done asked", "Damaged"),
        ("tail asked said done-badly", "Damaged"),
        ("tail asked said foreign done", "Damaged"),
    ] {
        assert_eq!(found(words), expected, "{words}");
    }
    let words = transcript("note asked said done");
    assert_eq!(found_behind(Some("tail"), &words), "MarkerAbsent");
    assert_eq!(found_behind(None, &Sample::new()), "NoFile");
    assert_eq!(found_behind(Some("tail"), &Sample::new()), "NoFile");
    assert_eq!(found_behind(None, &Sample::of("no record\n")), "Damaged");
    let beside = Sample::of_lines(&[
        record("a", None, "note"),
        record("tail", Some("a"), "note"),
        of_word("rewound", "w", Some("a")),
        of_word("asked", "u", Some("w")),
    ]);
    assert_eq!(found_behind(Some("tail"), &beside), "MarkerAbsent", "the branch does not lead past it any more");
    let cut = Sample::of_lines(&[of_word("asked", "u", Some("gone")), of_word("done-silent", "d", Some("u"))]);
    assert_eq!(found_behind(None, &cut), "MarkerAbsent");
    let ring = Sample::of_lines(&[of_word("asked", "u", Some("d")), of_word("done-silent", "d", Some("u"))]);
    assert_eq!(found_behind(None, &ring), "OutOfReach");
}

#[test]
fn a_tail_that_lies_too_far_back_is_not_looked_for() {
    let far = |notes: usize| "tail asked said done ".to_owned() + &"note ".repeat(notes);
    assert_eq!(found(&far(4_990)), ANSWER);
    assert_eq!(found(&far(5_100)), "OutOfReach");
}

#[test]
fn what_was_asked_is_compared_text_by_text() {
    let blocks = json!([{"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": "AA"}]);
    let texts = prompt_texts(&blocks);
    assert_eq!(texts, ["one", "[image image/png]"]);
    let parts: Vec<_> = texts.iter().map(|text| json!({"text": text})).collect();
    let asked =
        |parts: Value| with(record("u", None, "user"), json!({"daemonPromptId": "p", "message": {"parts": parts}}));
    let own = Own { session_id: "s1", prompt_id: "p", armed_tail: None };
    let look = |parts: Value, wanted: &[&str]| {
        said(find_own_turn(Sample::of_lines(&[asked(parts)]).path(), own, &mut Texts::wanting(wanted)).unwrap())
    };
    assert_eq!(look(json!(parts), &["one", "[image image/png]"]), "Interrupted");
    assert_eq!(look(json!(parts), &["one[image image/png]"]), "OtherText");
    assert_eq!(look(json!([{"text": "one"}, {"inlineData": {}}]), &["one"]), "OtherText");
    assert_eq!(look(json!([{"text": "one"}, {"text": "hm", "thought": true}]), &["one"]), "OtherText");
}

/// A finished turn as the host writes it.
fn written(answer: &str) -> Sample {
    let sample = Sample::new();
    let identity = Identity { session_id: "s1".into(), cwd: "/ws".into(), version: "0".into() };
    let mut writer = Writer::open(sample.path(), identity, Durability::Process).unwrap();
    let parts = vec![json!({"text": ASKED})];
    writer.append(START_MS, &Body::User { prompt_id: Some("p".into()), parts }).unwrap();
    let said = Body::Assistant { model: None, parts: vec![json!({"text": answer})] };
    writer.append_all(&[(START_MS, said), (START_MS, completed(answer).into())]).unwrap();
    sample
}

#[test]
fn a_long_answer_is_found_whole() {
    let answer = "ü \"long\" ".repeat(TEXT_UNITS_MAX);
    assert!(found_behind(None, &written(&answer)) == answer);
}

/// Words that are no answer.
fn is_answer(found: &str) -> bool {
    !["ExtraUserMessage", "OrderOnly", "Interrupted", "Nothing", "OtherText", "NoFile", "MarkerAbsent", "OutOfReach"]
        .contains(&found)
        && !["Compressed", "Rewound", "Damaged", "Uncertain", "NotRecorded"].contains(&found)
        && !found.ends_with("without a text")
        && !found.starts_with("transcript_")
}

#[test]
fn a_byte_that_is_torn_anywhere_never_gives_another_text() {
    let bytes = written(ANSWER).bytes();
    let mut given = 0;
    for place in 0..bytes.len() {
        let (before, after) = (&bytes[..place], &bytes[place + 1..]);
        for torn in [before.to_vec(), [before, after].concat(), [before, b"\0", after].concat()] {
            let found = found_behind(None, &Sample::of(&torn));
            assert!(found == ANSWER || !is_answer(&found), "{place}: {found}");
            given += usize::from(found == ANSWER);
        }
    }
    assert!(given > 100, "where the damage does not matter the answer is there: {given}");
}
