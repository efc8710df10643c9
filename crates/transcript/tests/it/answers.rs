//! The whole final answer of a turn, as its record and its result tell it.

use serde_json::{Value, json};
use transcript::text::TEXT_UNITS_MAX;
use transcript::{Answer, Body, Durability, Identity, TurnResult, TurnState, Writer, find_answer, find_turn_result};

use crate::sample::{START_MS, Sample, record, with};

/// A text of so many units that no part of it looks like another.
fn long(units: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        text.push_str(&format!("{number} \"quoted\" \\ ü 😀\n\u{1}"));
        if text.len() >= units {
            return text;
        }
    }
    text
}

/// What is found: the answer, or a word for why there is none.
fn found(sample: &Sample, prompt_id: &str) -> String {
    let Some(answered) = find_answer(sample.path(), prompt_id).unwrap() else { return "no result".into() };
    match answered.answer {
        Answer::Nothing => "nothing".into(),
        Answer::Short(text) => text,
        Answer::Lost(lost) => format!("{lost:?}"),
        Answer::Recorded(recorded) => {
            let mut bytes = Vec::new();
            let is_whole = recorded.read(0..u64::MAX, |piece| {
                bytes.extend_from_slice(piece);
                true
            });
            assert!(is_whole.unwrap() && bytes.len() as u64 == recorded.bytes());
            String::from_utf8(bytes).unwrap()
        }
    }
}

fn completed(prompt_id: &str, text: &str) -> TurnResult {
    let mut result = TurnResult::new(prompt_id, TurnState::Completed, START_MS).with_result_text(text);
    result.stop_reason = Some("end_turn".into());
    result
}

/// A transcript as our writer writes it.
fn written(records: impl IntoIterator<Item = Body>) -> Sample {
    let sample = Sample::new();
    let identity = Identity { session_id: "s1".into(), cwd: "/ws".into(), version: "0".into() };
    let mut writer = Writer::open(sample.path(), identity, Durability::Process).unwrap();
    let records: Vec<_> = records.into_iter().map(|body| (START_MS, body)).collect();
    writer.append_all(&records).unwrap();
    sample
}

fn asked(prompt_id: &str) -> Body {
    Body::User { prompt_id: Some(prompt_id.into()), parts: vec![json!({"text": "go"})] }
}

fn said(parts: Vec<Value>) -> Body {
    Body::Assistant { model: None, parts }
}

fn text(text: &str) -> Value {
    json!({"text": text})
}

#[test]
fn a_short_answer_is_the_results_own_text() {
    let sample = written([asked("p"), said(vec![text("hello")]), completed("p", "hello").into()]);
    assert_eq!(found(&sample, "p"), "hello");
    assert_eq!(found(&sample, "q"), "no result");
    assert_eq!(found(&Sample::new(), "p"), "no result");
}

#[test]
fn an_answer_of_any_length_is_read_whole_and_begins_with_what_the_poll_shows() {
    for units in [2 * TEXT_UNITS_MAX, 600 * 1024, 5 * 1024 * 1024] {
        let answer = long(units);
        let thought = json!({"text": long(700 * 1024), "thought": true});
        let sample = written([
            asked("p"),
            said(vec![thought, text(&answer)]),
            completed("p", &answer).into(),
            asked("q"),
            said(vec![text("later")]),
            completed("q", "later").into(),
        ]);
        assert!(found(&sample, "p") == answer, "{units}");
        let shown = find_turn_result(sample.path(), Some("p")).unwrap().unwrap();
        assert!(shown.result_truncated && answer.starts_with(&shown.result_text.unwrap()), "{units}");
        assert_eq!(shown.result_bytes, Some(answer.len() as u64));
        assert_eq!(found(&sample, "q"), "later");
    }
}

#[test]
fn every_range_of_an_answer_is_that_part_of_it() {
    let answer = long(1_200_000);
    let before = "said while the tool ran";
    let sample = written([said(vec![text(before), text(&answer)]), completed("p", &answer).into()]);
    let Some(Answer::Recorded(recorded)) = find_answer(sample.path(), "p").unwrap().map(|found| found.answer) else {
        panic!("it is recorded")
    };
    let length = answer.len() as u64;
    assert_eq!(recorded.bytes(), length, "what was said before the answer is no part of it");
    let half = 512 * 1024;
    for (from, to) in
        [(0, 0), (0, 1), (5, 9), (half - 40, half + 40), (length - 1, length), (7, length), (length, length)]
    {
        let mut bytes = Vec::new();
        let is_whole = recorded.read(from..to, |piece| {
            bytes.extend_from_slice(piece);
            true
        });
        assert!(is_whole.unwrap(), "{from}..{to}");
        assert!(bytes == answer.as_bytes()[from as usize..to as usize], "{from}..{to}");
    }
    let mut pieces = 0;
    let is_whole = recorded.read(0..length, |_| {
        pieces += 1;
        false
    });
    assert_eq!((is_whole.unwrap(), pieces), (false, 1), "who wants no more gets no more");
}

#[test]
fn a_turn_without_a_final_text_has_none_whatever_was_said_before() {
    let sample = written([
        asked("o"),
        said(vec![text("older")]),
        completed("o", "older").into(),
        asked("p"),
        completed("p", "").into(),
    ]);
    assert_eq!(found(&sample, "p"), "nothing");
    let cancelled = TurnResult::new("c", TurnState::Cancelled, START_MS).with_partial_text("half");
    let sample = written([asked("c"), cancelled.into(), said(vec![text("half")])]);
    assert_eq!(found(&sample, "c"), "nothing");
}

#[test]
fn what_the_writer_had_no_room_for_is_said_to_be_lost() {
    let answer = long(100_000);
    let result = completed("p", &answer).with_unrecorded(7);
    assert!(result.result_truncated);
    assert_eq!(found(&written([said(vec![text(&answer)]), result.into()]), "p"), "NotRecorded");
    let nothing_left = completed("p", "").with_unrecorded(7);
    assert_eq!((nothing_left.result_text.as_deref(), nothing_left.result_truncated), (Some(""), true));
    assert_eq!(found(&written([said(vec![text("x")]), nothing_left.into()]), "p"), "NotRecorded");
    assert_eq!(completed("p", "x").with_unrecorded(0), completed("p", "x"));
}

#[test]
fn another_turns_text_is_never_given() {
    let (answer, other) = (long(40_000), long(40_001).replace("quoted", "Quoted"));
    let call = json!({"functionCall": {"id": "c", "name": "f", "args": {}}});
    let response = Body::ToolResult {
        call_id: "c".into(),
        status: "success".into(),
        parts: vec![json!({"functionResponse": {"id": "c", "name": "f", "response": {}}})],
    };
    for records in [
        // The record is missing, and what stands before is somebody else's.
        vec![said(vec![text(&other)])],
        vec![],
        vec![asked("p")],
        // Something was said or done in between.
        vec![said(vec![text(&answer)]), asked("q")],
        vec![said(vec![text(&answer)]), response],
        vec![said(vec![text(&answer), call])],
        vec![said(vec![text(&answer)]), said(vec![text("more")])],
        // It is not as long as the result says, or begins otherwise.
        vec![said(vec![text(&answer[..answer.len() - 1])])],
        vec![said(vec![text(&answer), text("x")])],
        vec![said(vec![json!({"text": answer, "thought": true})])],
    ] {
        let shown = format!("{:.200}", format!("{records:?}"));
        let sample = written(records.into_iter().chain([completed("p", &answer).into()]));
        assert_eq!(found(&sample, "p"), "Uncertain", "{shown}");
    }
}

/// A result that does not say how long its answer is, as other writers write it.
fn foreign_result(uuid: &str, parent: &str, answer: &str) -> Value {
    let mut payload = serde_json::to_value(completed("p", answer)).unwrap();
    payload.as_object_mut().unwrap().remove("resultBytes");
    with(record(uuid, Some(parent), "turn_result"), json!({"systemPayload": payload}))
}

#[test]
fn another_writers_answer_is_its_records_text() {
    let answer = long(50_000);
    let (one, two) = answer.split_at(answer.len() / 2 - answer.len() / 2 % 2);
    let parts =
        json!([{"text": "hm", "thought": true}, {"text": one}, {"x": 1}, {"text": two, "thought": false}, "odd"]);
    let answered = with(record("a", None, "assistant"), json!({"message": {"role": "model", "parts": parts}}));
    let note = record("n", Some("a"), "file_history_snapshot");
    let sample = Sample::of_lines(&[answered.clone(), note, foreign_result("r", "n", &answer)]);
    assert!(found(&sample, "p") == answer);
    let from_session = with(answered, json!({"provenance": "system"}));
    let sample = Sample::of_lines(&[from_session, foreign_result("r", "a", &answer)]);
    assert_eq!(found(&sample, "p"), "Uncertain");
}

#[test]
fn an_answer_that_not_every_reader_finds_is_uncertain() {
    let answer = long(50_000);
    let answered =
        with(record("a", None, "assistant"), json!({"message": {"role": "model", "parts": [{"text": answer}]}}));
    let torn = r#"{"uuid":"torn","parentUuid":nu"#;
    let sample = Sample::of_lines(&[format!("{torn}{answered}"), foreign_result("r", "a", &answer).to_string()]);
    assert_eq!(found(&sample, "p"), "Uncertain");
}

#[test]
fn a_file_that_is_cut_while_it_is_read_gives_no_whole_answer() {
    let answer = long(300_000);
    let sample = written([said(vec![text(&answer)]), completed("p", &answer).into()]);
    let Some(Answer::Recorded(recorded)) = find_answer(sample.path(), "p").unwrap().map(|found| found.answer) else {
        panic!("it is recorded")
    };
    let bytes = sample.bytes();
    sample.write(&bytes[..bytes.len() / 4]);
    let mut length = 0;
    let read = recorded.read(0..u64::MAX, |piece| {
        length += piece.len();
        true
    });
    assert!(!read.unwrap_or(false) && length < answer.len());
}

#[test]
fn a_long_answer_in_pieces_is_one_record_and_cut_between_them_costs_only_the_rest() {
    let answer = long(1_500_000);
    let sample = written([asked("p"), said(vec![text(&answer)]), completed("p", &answer).into()]);
    let lines = sample.bytes().iter().filter(|byte| **byte == b'\n').count();
    assert!(lines > 4, "{lines}");
    assert_eq!(sample.branch().len(), 3, "whoever reads it sees one answer");
    let text = String::from_utf8(sample.bytes()).unwrap();
    let cut: String = text.split_inclusive('\n').take(3).collect();
    sample.write(cut);
    assert_eq!((sample.branch().len(), found(&sample, "p").as_str()), (2, "no result"));
}

/// What is found of a turn that did not complete, beyond what its result holds.
fn partial(sample: &Sample) -> Option<String> {
    let recorded = find_answer(sample.path(), "p").unwrap().unwrap().partial?;
    let mut bytes = Vec::new();
    let is_whole = recorded.read(0..u64::MAX, |piece| {
        bytes.extend_from_slice(piece);
        true
    });
    assert!(is_whole.unwrap() && bytes.len() as u64 == recorded.bytes());
    Some(String::from_utf8(bytes).unwrap())
}

fn cut(state: TurnState, text: &str) -> TurnResult {
    let result = TurnResult::new("p", state, START_MS).with_partial_text(text);
    if state == TurnState::Error { result.with_error("no", None) } else { result }
}

#[test]
fn all_that_was_said_in_a_turn_that_was_cut_stands_behind_its_result() {
    for state in [TurnState::Cancelled, TurnState::Error] {
        for bytes in [TEXT_UNITS_MAX, 1_500_000] {
            let words = long(2 * bytes);
            let sample = written([
                asked("p"),
                cut(state, &words).into(),
                said(vec![text(&words[..10]), json!({"text": "hm", "thought": true}), text(&words[10..])]),
                asked("q"),
                said(vec![text("later")]),
                completed("q", "later").into(),
            ]);
            assert!(partial(&sample).as_ref() == Some(&words), "{state:?} {bytes}");
            assert_eq!(found(&sample, "p"), "nothing", "it is no answer");
        }
    }
    // The result holds all of it itself.
    assert_eq!(cut(TurnState::Cancelled, "half").partial_bytes, None);
    assert_eq!(
        partial(&written([asked("p"), cut(TurnState::Cancelled, "half").into(), said(vec![text("half")])])),
        None
    );
}

#[test]
fn words_that_are_not_certainly_those_of_the_cut_turn_are_not_given() {
    let (words, other) = (long(40_000), long(40_000).replace("quoted", "Quoted"));
    assert_eq!(words.len(), other.len());
    let result = || cut(TurnState::Cancelled, &words);
    let call = json!({"functionCall": {"id": "c", "name": "f", "args": {}}});
    for behind in [
        vec![],
        vec![asked("q"), said(vec![text(&words)])],
        vec![said(vec![text(&other)])],
        vec![said(vec![text(&words[..words.len() - 1])])],
        vec![said(vec![text(&words), text("x")])],
        vec![said(vec![text(&words), call])],
        vec![said(vec![json!({"text": words, "thought": true})])],
    ] {
        let shown = format!("{:.200}", format!("{behind:?}"));
        let sample = written([asked("p"), result().into()].into_iter().chain(behind));
        assert_eq!(partial(&sample), None, "{shown}");
    }
    // A writer that had no room for all of it, and one that does not say how much it was.
    for result in [result().with_partial_unrecorded(1), TurnResult { partial_bytes: None, ..result() }] {
        assert_eq!(partial(&written([asked("p"), result.into(), said(vec![text(&words)])])), None);
    }
    assert_eq!(result().with_partial_unrecorded(0), result());
    // A writer that was killed between two pieces of it.
    let words = long(1_500_000);
    let sample = written([asked("p"), cut(TurnState::Cancelled, &words).into(), said(vec![text(&words)])]);
    assert!(partial(&sample).as_ref() == Some(&words));
    let text = String::from_utf8(sample.bytes()).unwrap();
    sample.write(text.split_inclusive('\n').take(4).collect::<String>());
    assert_eq!(partial(&sample), None);
}
