//! Turns in a short notation, and the records they become.
//!
//! Script: `t:` text, `?:` thought, `c:1` call 1 begins, `u:1` something about it, `p:1` permission is asked for it; a
//! `{}` behind the id brings arguments, a `+` completes, a `-` fails. Records: `A(…)` assistant (`?` a thought, `#1` call
//! 1), `T1+` a result (`-` failed, `x` cancelled), `R=…` the turn's result with the answer, or with what was said, and `!`
//! behind it where the agent has strayed, `~` where something could not be read.

use acp::Speech;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn begin() -> Turn {
    let prompt = Prompt {
        id: "p1".to_owned(),
        raw_blocks: r#"[{"type":"text","text":"go"}]"#.to_owned(),
        originator: None,
        after_ms: 0,
    };
    Turn::begin(prompt, 1, None).0
}

fn fields(id: &str) -> CallFields {
    let status = match id.chars().last() {
        Some('+') => Some(CallStatus::Completed),
        Some('-') => Some(CallStatus::Failed),
        _ => None,
    };
    let id = id.trim_end_matches(['+', '-']);
    let args = id.ends_with("{}").then(|| json!({ "a": 1 }));
    CallFields { id: id.trim_end_matches("{}").to_owned(), args, status, ..CallFields::default() }
}

fn step(turn: &mut Turn, word: &str) -> Vec<Body> {
    let (kind, rest) = word.split_once(':').unwrap();
    match kind {
        "t" => turn.observe(Update::Text(rest.to_owned())),
        "?" => turn.observe(Update::Thought(rest.to_owned())),
        "c" => turn.observe(Update::CallBegins(fields(rest))),
        "u" => turn.observe(Update::CallGoesOn(fields(rest))),
        "p" => turn.permission_asked(&fields(rest)),
        _ => panic!("no step: {word}"),
    }
}

fn ending(word: &str) -> Ending {
    match word {
        "cancelled" => Ending::Cancelled { cancelled_at: Some(2), agent_stop_reason: None },
        "error" => Ending::Failed { message: "why".to_owned(), code: "c".to_owned() },
        reason => Ending::Completed { stop_reason: reason.to_owned() },
    }
}

fn shown_part(part: &Value) -> String {
    if let Some(id) = part.pointer("/functionCall/id") {
        return format!("#{}", id.as_str().unwrap());
    }
    let mark = if part.get("thought").is_some() { "?" } else { "" };
    format!("{mark}{}", part["text"].as_str().unwrap())
}

pub(crate) fn shown(record: &Body) -> String {
    match record {
        Body::User { prompt_id, .. } => format!("U({})", prompt_id.as_deref().unwrap()),
        Body::MidTurn { .. } => "M".to_owned(),
        Body::Assistant { parts, .. } => format!("A({})", parts.iter().map(shown_part).collect::<Vec<_>>().join(" ")),
        Body::ToolResult { call_id, status, .. } => {
            let mark = match status.as_str() {
                "success" => '+',
                "cancelled" => 'x',
                _ => '-',
            };
            format!("T{call_id}{mark}")
        }
        Body::System { subtype, payload } => match TurnResult::from_payload(payload) {
            Some(result) => format!(
                "R={}({}){}{}",
                result.state.as_str(),
                result.result_text.or(result.partial_text).unwrap_or_default(),
                match (result.stray_words, result.unreadable_words) {
                    (true, true) => "!~",
                    (true, false) => "!",
                    (false, true) => "~",
                    (false, false) => "",
                },
                result.contradiction.map_or(String::new(), |contradiction| format!("{contradiction:?}")),
            ),
            None => subtype.clone(),
        },
    }
}

fn check(script: &str, end: &str, expected: &str) {
    let mut turn = begin();
    let mut records: Vec<_> = script.split_whitespace().flat_map(|word| step(&mut turn, word)).collect();
    records.extend(turn.end(3, ending(end)));
    let shown: Vec<_> = records.iter().map(shown).collect();
    assert_eq!(shown.join(" "), expected, "{script} → {end}");
}

#[test]
fn an_answer_is_written_with_its_result_and_not_before() {
    check("t:hel t:lo", "end_turn", "A(hello) R=completed(hello)");
    check("?:hm t:hello", "max_tokens", "A(?hm hello) R=completed(hello)");
    check("?:hm", "end_turn", "A(?hm) R=completed()");
    check("", "end_turn", "R=completed()");
}

#[test]
fn a_turn_that_did_not_complete_says_so_before_its_last_words() {
    check("t:hel", "cancelled", "R=cancelled(hel) A(hel)");
    check("t:hel", "error", "R=error(hel) A(hel)");
    check("?:hm", "error", "R=error()");
    check("", "cancelled", "R=cancelled()");
}

#[test]
fn words_before_a_call_are_written_with_it_and_are_no_answer() {
    check("t:wait c:1{} u:1+ t:done", "end_turn", "A(wait #1) T1+ A(done) R=completed(done)");
    check("t:wait c:1{} u:1+", "end_turn", "A(wait #1) T1+ R=completed()");
    check("t:wait c:1{} u:1-", "end_turn", "A(wait #1) T1- R=completed()");
}

#[test]
fn words_while_a_call_is_open_are_kept_and_are_no_answer() {
    check("c:1{} t:busy u:1+ t:done", "end_turn", "A(#1) T1+ A(busy done) R=completed(done)");
    check("c:1{} t:busy u:1+", "end_turn", "A(#1) T1+ A(busy) R=completed()");
}

#[test]
fn a_call_waits_for_its_arguments_as_long_as_nothing_else_happens() {
    check("c:1 u:1{} u:1+ t:ok", "end_turn", "A(#1) T1+ A(ok) R=completed(ok)");
    check("t:a c:1 c:2 u:1{} u:2+ u:1+", "end_turn", "A(a #1 #2) T2+ T1+ R=completed()");
    check("c:1 t:b u:1+", "end_turn", "A(#1) T1+ A(b) R=completed()");
    check("c:1 p:1{} u:1+ t:ok", "end_turn", "A(#1) T1+ A(ok) R=completed(ok)");
}

#[test]
fn a_call_never_announced_is_recorded_with_its_first_sign() {
    check("u:1+ t:ok", "end_turn", "A(#1) T1+ A(ok) R=completed(ok)");
    check("p:1{} u:1+ t:ok", "end_turn", "A(#1) T1+ A(ok) R=completed(ok)");
}

#[test]
fn calls_left_open_are_closed_before_the_end() {
    check("c:1{} c:2", "end_turn", "A(#1) A(#2) T1- T2- R=completed()");
    check("c:1{} t:hel", "cancelled", "A(#1) T1x R=cancelled(hel) A(hel)");
    check("t:a c:1", "error", "A(a #1) T1- R=error()");
}

#[test]
fn what_is_said_about_a_finished_call_is_left_out_unless_it_begins_anew() {
    check("c:1{} u:1+ u:1+ u:1 u:1- t:ok", "end_turn", "A(#1) T1+ A(ok) R=completed(ok)");
    check("c:1{} u:1+ c:1{} u:1- t:ok", "end_turn", "A(#1) T1+ A(#1) T1- A(ok) R=completed(ok)");
    check("c:1{} c:1{} u:1+", "end_turn", "A(#1) T1+ R=completed()");
}

#[test]
fn a_call_without_an_id_still_shows_that_a_tool_was_called() {
    check("t:a c: u:+ t:b", "end_turn", "A(a #turnd-call-0) Tturnd-call-0- A(b) R=completed(b)");
}

#[test]
fn calls_beyond_the_bound_are_left_out() {
    let mut turn = begin();
    let mut records = Vec::new();
    for id in 0..crate::limits::CALLS_MAX + 10 {
        records.extend(step(&mut turn, &format!("c:{id}")));
    }
    records.extend(turn.end(3, ending("end_turn")));
    let results = records.iter().filter(|record| matches!(record, Body::ToolResult { .. })).count();
    assert_eq!(results, crate::limits::CALLS_MAX);
}

#[test]
fn a_result_names_the_prompt_its_text_and_its_times() {
    let prompt = Prompt {
        id: "p1".to_owned(),
        raw_blocks: r#"[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AAAA"}]"#.to_owned(),
        originator: Some("client_1".to_owned()),
        after_ms: 0,
    };
    let (mut turn, user) = Turn::begin(prompt, 10, Some("m".to_owned()));
    let Body::User { prompt_id, parts } = user else { panic!("no user record") };
    assert_eq!(prompt_id.as_deref(), Some("p1"));
    assert_eq!(parts, [json!({ "text": "a" }), json!({ "text": "[image image/png]" })]);
    turn.observe(Update::Text("yes".to_owned()));
    let Some(Body::System { payload, .. }) = turn.end(20, ending("end_turn")).pop() else { panic!("no result") };
    let expected = json!({
        "promptId": "p1", "state": "completed", "stopReason": "end_turn", "startedAt": 10, "endedAt": 20,
        "promptText": "a\n[image image/png]", "resultText": "yes", "originatorClientId": "client_1",
    });
    assert_eq!(payload, expected);
}

#[test]
fn updates_are_read_as_agents_really_write_them() {
    let read = |update: &str| Update::read(&format!(r#"{{"sessionId":"s","update":{update}}}"#));
    let text = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\ud83d"}}"#;
    assert_eq!(read(text), Update::Text("a\u{fffd}".to_owned()));
    assert_eq!(read(r#"{"sessionUpdate":"usage_update","used":null}"#), Update::State);
    assert_eq!(read("null"), Update::State);
    let call = read(r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","rawInput":{},"content":[]}"#);
    let expected = CallFields { id: "t".to_owned(), name: Some("ls".to_owned()), ..CallFields::default() };
    assert_eq!(call, Update::CallBegins(expected));
    let done = r#"{"toolCallId":"t","status":"completed","rawOutput":{"n":1},"content":null}"#;
    let Some(output) = CallFields::read(done).output else { panic!("no output") };
    assert_eq!(output, r#"{"n":1}"#);
    let shown = r#"{"toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"x"}},
        {"type":"diff","path":"/a"},{"type":"terminal"}],"rawOutput":"y"}"#;
    assert_eq!(CallFields::read(shown).output.as_deref(), Some("x\nchanged /a"));
}

#[test]
fn what_a_subagent_says_and_does_is_not_the_turns() {
    for meta in [r#"{"claudeCode":{"parentToolUseId":"t"}}"#, r#"{"parentToolCallId":"t"}"#] {
        for kind in ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"] {
            let update = format!(
                r#"{{"sessionUpdate":"{kind}","toolCallId":"u","content":{{"type":"text","text":"x"}},"_meta":{meta}}}"#
            );
            assert_eq!(Update::read(&format!(r#"{{"update":{update}}}"#)), Update::Echo, "{update}");
        }
    }
}

/// What the daemon takes for the answer, who hears the same.
fn daemons(said: &[(Speech, Update)]) -> String {
    let (mut course, mut answer) = (Course::default(), String::new());
    for (speech, _) in said {
        if course.hear(speech) == Bearing::BeginsAnew {
            answer.clear();
        }
        if let Speech::Text(text) = speech {
            answer.push_str(text);
        }
    }
    answer
}

fn updates() -> impl Strategy<Value = Vec<String>> {
    let chunk = prop::sample::select(vec![
        r#""content":{"type":"text","text":"a"}"#,
        r#""content":{"type":"text","text":"b"}"#,
        r#""content":{"type":"text","text":""}"#,
        r#""content":{"type":"image","text":"c"}"#,
        r#""content":{"text":"d"}"#,
        r#""content":[{"type":"text","text":"e"}]"#,
        r#""content":null"#,
    ]);
    let call = (
        prop::sample::select(vec!["1", "2", ""]),
        prop::sample::select(vec![
            "",
            r#","status":"pending""#,
            r#","status":"in_progress","rawInput":{"a":1}"#,
            r#","status":"completed""#,
            r#","status":"failed""#,
            r#","status":"cancelled""#,
            r#","_meta":{"parentToolCallId":"p"}"#,
        ]),
    )
        .prop_map(|(id, rest)| format!(r#""toolCallId":"{id}"{rest}"#));
    let chunks = ["agent_message_chunk", "agent_message_chunk", "agent_thought_chunk", "user_message_chunk"];
    let calls = ["tool_call", "tool_call_update", "tool_call_update", "asked"];
    let update = prop_oneof![
        (prop::sample::select(chunks.to_vec()), chunk.prop_map(str::to_owned)),
        (prop::sample::select(calls.to_vec()), call),
    ];
    let update = update.prop_map(|(kind, rest)| format!(r#"{{"sessionUpdate":"{kind}",{rest}}}"#));
    prop::collection::vec(update, 0..14)
}

proptest! {
    /// Two readings of one turn would be two answers, both certain.
    #[test]
    fn the_answer_on_record_is_the_one_that_the_daemon_has_heard(updates in updates()) {
        let mut turn = begin();
        let mut said = Vec::new();
        for raw in &updates {
            if raw.contains("asked") {
                let speech = Speech::asked_about(raw);
                if matches!(speech, Speech::ToolCallUpdate { .. }) {
                    turn.permission_asked(&CallFields::read(raw));
                    said.push((speech, Update::State));
                }
                continue;
            }
            let update = Update::read(&format!(r#"{{"update":{raw}}}"#));
            said.push((Speech::read(raw), update.clone()));
            turn.observe(update);
        }
        let expected = daemons(&said);
        let is_unclear = said.iter().any(|(speech, _)| *speech == Speech::Unclear);
        turn.note_echo(None);
        let records = turn.end(3, ending("end_turn"));
        let result = records.iter().find_map(|record| match record {
            Body::System { payload, .. } => TurnResult::from_payload(payload),
            _ => None,
        });
        let result = result.unwrap();
        prop_assert_eq!(result.result_text.unwrap_or_default(), expected);
        prop_assert_eq!(result.stray_words, is_unclear);
    }
}
