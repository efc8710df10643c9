use serde_json::json;
use tempfile::NamedTempFile;

use super::*;
use crate::projection::HistoryTail;

/// What is left open at the end of a history whose entries are written as `user` or `model` and their parts, in one line.
fn left(entries: &[(&str, Value)]) -> String {
    match classified(entries) {
        Classified::None => "none".to_owned(),
        Classified::Prompt { parts } => format!("prompt {}", json!(parts)),
        Classified::Turn { calls } => {
            let calls: Vec<_> = calls.iter().map(|(id, name)| format!("{id}={name}")).collect();
            format!("turn {}", calls.join(" "))
        }
    }
}

fn classified(entries: &[(&str, Value)]) -> Classified {
    let file = NamedTempFile::new().unwrap();
    let line = |(index, (role, parts)): (usize, &(&str, Value))| {
        let parent = index.checked_sub(1).map(|before| format!("r{before}"));
        let message = json!({"role": role, "parts": parts});
        let uuid = format!("r{index}");
        json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "user", "message": message}).to_string()
    };
    let lines: Vec<_> = entries.iter().enumerate().map(line).collect();
    std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
    let transcript = Transcript::open(file.path()).unwrap().unwrap();
    let mut branch = transcript.branch(u64::MAX).unwrap();
    let mut tail = HistoryTail::default();
    while let Some(record) = branch.next_record().unwrap() {
        tail.push(&record);
    }
    tail.reach_the_beginning();
    transcript.classified(&tail.finish().unwrap().entries).unwrap()
}

fn text(text: &str) -> Value {
    json!([{"text": text}])
}

fn reminder() -> Value {
    text("<system-reminder>x</system-reminder>")
}

fn call(id: &str, name: &str) -> Value {
    json!({"functionCall": {"id": id, "name": name}})
}

#[test]
fn an_empty_history_is_left_with_nothing() {
    assert_eq!(classify(&[]), Interruption::None);
}

#[test]
fn trailing_user_entries_are_a_prompt_left_open() {
    let answer = || ("model", text("a"));
    assert_eq!(left(&[("user", text("q"))]), r#"prompt [{"text":"q"}]"#);
    assert_eq!(left(&[("user", text("old")), answer(), ("user", text("q"))]), r#"prompt [{"text":"q"}]"#);
    assert_eq!(left(&[answer(), ("user", text("a")), ("user", text("b"))]), r#"prompt [{"text":"a"},{"text":"b"}]"#);
}

#[test]
fn the_run_of_a_prompt_ends_at_a_reminder() {
    assert_eq!(left(&[("user", text("old")), ("user", reminder()), ("user", text("q"))]), r#"prompt [{"text":"q"}]"#);
    assert_eq!(left(&[("user", text("q")), ("user", reminder())]), "none");
    assert_eq!(left(&[("user", reminder())]), "none");
}

#[test]
fn a_prompt_without_parts_is_none() {
    assert_eq!(left(&[("model", text("a")), ("user", json!([]))]), "none");
    assert_eq!(left(&[("user", json!([])), ("user", json!(null))]), "none");
    assert_eq!(left(&[("user", json!([])), ("user", text("q"))]), r#"prompt [{"text":"q"}]"#);
}

#[test]
fn the_answers_of_tools_come_first_and_else_in_order() {
    let answer = |id: &str| json!({"functionResponse": {"id": id}});
    let (a, b) = (json!({"text": "a"}), json!({"text": "b"}));
    assert_eq!(
        left(&[("user", json!([a, answer("1")])), ("user", json!([b, answer("2")]))]),
        format!("prompt {}", json!([answer("1"), answer("2"), a, b]))
    );
}

#[test]
fn calls_that_nobody_answered_are_a_turn_left_open() {
    let model = |parts: Value| left(&[("user", text("q")), ("model", parts)]);
    assert_eq!(model(json!([{"text": "a"}, call("c1", "ls")])), "turn c1=ls");
    assert_eq!(model(json!([call("c2", "cat"), {"text": "a"}, call("c1", "ls")])), "turn c2=cat c1=ls");
    assert_eq!(model(json!([{"functionCall": {"id": "c1"}}])), "turn c1=unknown");
    assert_eq!(model(json!([{"functionCall": {"id": "c1", "name": 7}}])), "turn c1=unknown");
}

#[test]
fn calls_without_an_id_are_nobody_s_to_answer() {
    let model = |parts: Value| left(&[("model", parts)]);
    assert_eq!(model(json!([{"functionCall": {"name": "ls"}}])), "none");
    assert_eq!(model(json!([call("", "ls")])), "none");
    assert_eq!(model(json!([{"functionCall": {"id": 7, "name": "ls"}}])), "none");
    assert_eq!(model(json!([call("", "ls"), call("c1", "cat")])), "turn c1=cat");
}

#[test]
fn an_answer_leaves_nothing_open() {
    let model = |parts: Value| left(&[("user", text("q")), ("model", parts)]);
    assert_eq!(model(text("a")), "none");
    assert_eq!(model(json!([])), "none");
    assert_eq!(left(&[("model", json!([call("c1", "ls")])), ("model", text("a"))]), "none");
}

#[test]
fn a_role_that_nobody_knows_leaves_nothing_open() {
    assert_eq!(left(&[("user", text("q")), ("system", text("x"))]), "none");
    assert_eq!(left(&[("system", json!([call("c1", "ls")]))]), "none");
    // And it ends the run of a prompt.
    assert_eq!(left(&[("user", text("a")), ("system", text("x")), ("user", text("b"))]), r#"prompt [{"text":"b"}]"#);
}
