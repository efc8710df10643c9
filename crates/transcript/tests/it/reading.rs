//! The active branch of damaged files. The rows are those of the wire's table on damage.

use std::fmt::Write;

use serde_json::{Value, json};
use transcript::{History, HistoryTail, Interruption, Kind, Role, classify};

use crate::sample::{Sample, chain, record, with, without};

/// What the active branch of a file with these bytes is.
fn check(bytes: impl AsRef<[u8]>, branch: &str) {
    let sample = Sample::of(&bytes);
    assert_eq!(sample.uuids(), branch, "{:?}", String::from_utf8_lossy(bytes.as_ref()));
}

fn lines(records: &[Value]) -> Vec<String> {
    records.iter().map(Value::to_string).collect()
}

#[test]
fn lines_end_in_any_way() {
    let lines = lines(&chain("user assistant user"));
    for end in ["\n", "\r\n", "\r", "\n\n \n"] {
        check(lines.join(end) + end, "r0 r1 r2");
        check(lines.join(end), "r0 r1 r2");
    }
}

#[test]
fn what_is_no_record_is_passed_over() {
    let lines = lines(&chain("user assistant"));
    for junk in ["garbage", "\0\0\0", "", "[1,2]", "5", "null", "\"text\"", "{}", "{\"uuid\":\"x\"}", "{", "\u{feff}"] {
        check(format!("{}\n{junk}\n{}\n{junk}", lines[0], lines[1]), "r0 r1");
    }
    // One JSON value that is no object is not searched.
    check(format!("{}\n[{}]\n", lines[0], lines[1]), "r0");
}

#[test]
fn a_byte_order_mark_hides_nothing() {
    check(format!("\u{feff}{}\n", lines(&chain("user"))[0]), "r0");
}

#[test]
fn records_on_one_line_are_told_apart() {
    let lines = lines(&chain("user assistant user"));
    check(lines.concat(), "r0 r1 r2");
    check(format!("\0\0{}, {} ;\t{}]", lines[0], lines[1], lines[2]), "r0 r1 r2");
}

#[test]
fn a_record_behind_a_torn_one_is_saved_at_every_cut() {
    let [first, torn, glued] = &lines(&chain("user assistant session_model"))[..] else { panic!() };
    let glued = glued.replace("\"r1\"", "\"r0\"");
    for cut in 1..torn.len() {
        check(format!("{first}\n{}{glued}\n", &torn[..cut]), "r0 r2");
    }
}

#[test]
fn a_torn_last_line_ends_the_history_one_record_earlier() {
    let whole = Sample::of_lines(&chain("user assistant")).bytes();
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first_line..whole.len() - 1 {
        check(&whole[..cut], "r0");
    }
}

#[test]
fn a_line_of_open_braces_costs_what_its_length_costs() {
    let first = lines(&chain("user")).concat();
    let hostile = "{\"a\":".repeat(400_000);
    check(format!("{first}\n{hostile}"), "r0");
}

#[test]
fn an_unusable_record_cuts_the_branch_behind_it() {
    let whole = chain("user assistant user assistant");
    let damaged = |damage: fn(Value) -> Value| {
        let mut records = whole.clone();
        records[1] = damage(records[1].clone());
        Sample::of_lines(&records).bytes()
    };
    check(damaged(|record| without(record, "uuid")), "r2 r3");
    check(damaged(|record| with(record, json!({"uuid": ""}))), "r2 r3");
    check(damaged(|record| without(record, "sessionId")), "r2 r3");
    check(damaged(|record| without(record, "parentUuid")), "r2 r3");
    check(damaged(|record| with(record, json!({"parentUuid": 7}))), "r2 r3");
    check(damaged(|record| with(record, json!({"type": "unheard_of"}))), "r2 r3");
    check(damaged(|record| with(record, json!({"type": "system", "subtype": "unheard_of"}))), "r0 r1 r2 r3");
    check(damaged(|record| with(record, json!({"parentUuid": ""}))), "r1 r2 r3");
}

#[test]
fn the_last_record_picks_the_branch() {
    let mut records = chain("user assistant user assistant");
    records.push(record("w", Some("r1"), "rewind"));
    records.push(record("again", Some("w"), "user"));
    check(Sample::of_lines(&records).bytes(), "r0 r1 w again");
    records.push(record("beside", None, "session_artifact_snapshot"));
    records.push(record("beside", None, "managed_session_event_v1"));
    check(Sample::of_lines(&records).bytes(), "r0 r1 w again");
}

#[test]
fn a_loop_ends_where_it_began() {
    let mut records = chain("user assistant");
    records[0]["parentUuid"] = json!("r1");
    check(Sample::of_lines(&records).bytes(), "r0 r1");
    records[1]["parentUuid"] = json!("r1");
    check(Sample::of_lines(&records).bytes(), "r1");
}

#[test]
fn a_parent_may_stand_behind_its_child() {
    let records = [record("b", Some("a"), "assistant"), record("a", None, "user"), record("c", Some("b"), "user")];
    check(Sample::of_lines(&records).bytes(), "a b c");
}

#[test]
fn fragments_are_one_record() {
    let mut records = chain("user assistant");
    let earlier = with(records[1].clone(), json!({"timestamp": "2026-11-29T18:33:50.000Z"}));
    let later = with(
        records[1].clone(),
        json!({"parentUuid": "elsewhere", "message": {"role": "user", "parts": [{"functionCall": {"id": "c1"}}]}}),
    );
    records.splice(1.., [earlier, record("r2", Some("r1"), "user"), later]);
    let sample = Sample::of_lines(&records);
    assert_eq!(sample.uuids(), "r0 r1");
    let joined = sample.branch().pop().unwrap();
    let message = joined.message.unwrap();
    assert_eq!((joined.at_ms, message.role, message.spans.len()), (Some(1_795_977_230_000), Role::Model, 2));
    assert_eq!(message.calls[0].id.as_deref(), Some("c1"));
}

#[test]
fn a_fragment_without_a_time_leaves_the_record_undated() {
    let mut records = chain("user");
    records.push(without(records[0].clone(), "timestamp"));
    assert_eq!(Sample::of_lines(&records).branch()[0].at_ms, None);
}

#[test]
fn a_browser_s_json_is_read_as_a_browser_reads_it() {
    let usable = |line: &str| !Sample::of(line).branch().is_empty();
    let line =
        |extra: &str| format!("{{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s1\",\"type\":\"user\",{extra}}}");
    for extra in [
        "\"x\":1e999",
        "\"x\":-0.0E+12",
        "\"x\":\"half \\ud800 of it\"",
        "\"x\":\"\\ud800\\ud800\\udc00\"",
        "\"x\":\"\\ud83e\\uddea\"",
        "\"uuid\":\"b\"",
        "\"parentUuid\":7,\"parentUuid\":\"p\"",
        &format!("\"x\":{}{}", "[".repeat(100_000), "]".repeat(100_000)),
        &format!("\"x\":{}null{}", "{\"y\":".repeat(100_000), "}".repeat(100_000)),
    ] {
        assert!(usable(&line(extra)), "{:.80}", line(extra));
    }
    for extra in [
        "\"x\":01",
        "\"x\":.5",
        "\"x\":1.",
        "\"x\":+1",
        "\"x\":nul",
        "\"x\":'a'",
        "\"x\":\"\t\"",
        "\"x\":\"\\x\"",
        "x:1",
    ] {
        assert!(!usable(&line(extra)), "{}", line(extra));
    }
}

#[test]
fn bytes_that_are_no_text_are_replaced() {
    let mut line = lines(&chain("user")).concat().into_bytes();
    let at = line.windows(5).position(|window| window == b"asked").unwrap();
    line[at] = 0xff;
    check(line, "r0");
}

/// The history of a branch in one word for each entry, oldest first.
fn history(records: &[Value]) -> String {
    let sample = Sample::of_lines(records);
    let mut tail = HistoryTail::default();
    for record in sample.branch().iter().rev() {
        tail.push(record);
    }
    tail.reach_the_beginning();
    let Ok(History { entries, .. }) = tail.finish() else { return "unreadable".to_owned() };
    let mut text = String::new();
    for entry in &entries {
        let role = match entry.role {
            Role::User => "user",
            Role::Model => "model",
            Role::Other => "other",
        };
        write!(text, "{role}{} ", entry.spans.len()).unwrap();
    }
    match classify(&entries) {
        Interruption::None => text + "none",
        Interruption::Prompt { entries } => text + &format!("prompt {}", entries.len()),
        Interruption::Turn { calls } => text + &format!("turn {}", calls.len()),
    }
}

fn parts(parts: Value) -> Value {
    json!({"message": {"role": "model", "parts": parts}})
}

#[test]
fn messages_are_entries_and_notes_are_none() {
    assert_eq!(history(&chain("user ui_telemetry assistant branch_checkpoint")), "user1 model1 none");
    assert_eq!(history(&chain("user assistant tool_result")), "user1 model1 user1 prompt 1");
    assert_eq!(history(&chain("user user")), "user1 user1 prompt 2");
    assert_eq!(history(&chain("session_model")), "none");
}

#[test]
fn what_was_spoken_is_no_entry() {
    let mut records = chain("user assistant user");
    records[2]["subtype"] = json!("realtime_message");
    assert_eq!(history(&records), "user1 model1 none");
}

#[test]
fn what_is_said_into_a_turn_joins_the_tools_answer() {
    let mut records = chain("user assistant tool_result user");
    records[3]["subtype"] = json!("mid_turn_user_message");
    assert_eq!(history(&records), "user1 model1 user2 prompt 1");
    let mut alone = chain("user assistant user");
    alone[2]["subtype"] = json!("mid_turn_user_message");
    assert_eq!(history(&alone), "user1 model1 user1 prompt 1");
}

#[test]
fn a_command_that_the_session_answered_leaves_the_history() {
    let command = |payload: Value| {
        let mut records = chain("user assistant user slash_command");
        records[2]["message"]["parts"] = json!([{"text": "/about"}]);
        records[3]["systemPayload"] = payload;
        history(&records)
    };
    let answer = json!([{"type": "assistant", "text": "about: 1.0"}]);
    let result = json!({"phase": "result", "rawCommand": "/about", "outputHistoryItems": answer});
    assert_eq!(command(result.clone()), "user1 model1 none");
    for fields in [
        json!({"phase": "invocation"}),
        json!({"rawCommand": "/other"}),
        json!({"rawCommand": null}),
        json!({"sentToModel": true}),
        json!({"outputHistoryItems": []}),
        json!({"outputHistoryItems": [{"type": "assistant"}, {"type": "stats"}]}),
    ] {
        assert_eq!(command(with(result.clone(), fields.clone())), "user1 model1 user1 prompt 1", "{fields}");
    }
}

#[test]
fn a_snapshot_takes_the_place_of_the_history() {
    let compressed = |payload: Value| {
        let mut records = chain("user assistant chat_compression user");
        records[2]["systemPayload"] = payload;
        history(&records)
    };
    let entry = json!({"role": "model", "parts": [{"text": "summary"}]});
    assert_eq!(compressed(json!({"compressedHistory": [entry, entry]})), "model1 model1 user1 prompt 1");
    assert_eq!(compressed(json!({"compressedHistory": []})), "user1 prompt 1");
    assert_eq!(compressed(json!({"compressedHistory": null})), "user1 model1 user1 prompt 1");
    assert_eq!(compressed(json!({})), "user1 model1 user1 prompt 1");
    assert_eq!(compressed(json!({"compressedHistory": false})), "user1 model1 user1 prompt 1");
    assert_eq!(compressed(json!({"compressedHistory": ""})), "user1 model1 user1 prompt 1");
    assert_eq!(compressed(json!({"compressedHistory": "text"})), "unreadable");
    assert_eq!(compressed(json!({"compressedHistory": {}})), "unreadable");
    assert_eq!(compressed(json!({"compressedHistory": true})), "unreadable");
    assert_eq!(compressed(json!({"compressedHistory": [7]})), "unreadable");
    assert_eq!(compressed(json!({"compressedHistory": [{"role": "user", "parts": "x"}]})), "unreadable");
}

#[test]
fn a_list_of_parts_that_are_no_objects_makes_a_history_unreadable() {
    for (value, readable) in [
        (json!([{"text": "a"}]), true),
        (json!([]), true),
        (json!(null), true),
        // What is no list is left out, as the peer leaves it out.
        (json!("text"), true),
        (json!({"text": "a"}), true),
        (json!(["text"]), false),
        (json!([null]), false),
        (json!([["x"]]), false),
    ] {
        let mut records = chain("user assistant");
        records[1] = with(records[1].clone(), parts(value.clone()));
        assert_eq!(history(&records) != "unreadable", readable, "{value}");
    }
}

#[test]
fn the_classifier_looks_at_what_is_left_open() {
    let model = |value: Value| {
        let mut records = chain("user assistant");
        records[1] = with(records[1].clone(), parts(value));
        history(&records)
    };
    let call = json!({"functionCall": {"id": "c1", "name": "ls"}});
    assert_eq!(model(json!([{"text": "a"}, call, {"text": "b"}])), "user1 model1 turn 1");
    assert_eq!(model(json!([call, call])), "user1 model1 turn 2");
    assert_eq!(model(json!([{"functionCall": {"name": "ls"}}])), "user1 model1 none");
    assert_eq!(model(json!([{"functionCall": {"id": "", "name": "ls"}}])), "user1 model1 none");
    assert_eq!(model(json!([{"thought": true, "text": "hm"}])), "user1 model1 none");

    let asked = |value: Value| {
        let mut records = chain("assistant user");
        records[1]["message"]["parts"] = value;
        history(&records)
    };
    let reminder = json!({"text": "<system-reminder>\nx\n</system-reminder>\n "});
    assert_eq!(asked(json!([reminder])), "model1 user1 none");
    assert_eq!(asked(json!([reminder, reminder])), "model1 user1 none");
    assert_eq!(asked(json!([reminder, {"text": "q"}])), "model1 user1 prompt 1");
    assert_eq!(asked(json!([{"text": "<system-reminder>x</system-reminder> q"}])), "model1 user1 prompt 1");
    assert_eq!(asked(json!([{"text": "see <system-reminder>x</system-reminder>"}])), "model1 user1 prompt 1");
    assert_eq!(asked(json!([{"text": "<system-reminder>x"}])), "model1 user1 prompt 1");
    assert_eq!(asked(json!([])), "model1 user1 none");
}

#[test]
fn only_the_end_of_a_long_history_is_kept() {
    let kinds = "user assistant ".repeat(60);
    let words = history(&chain(&kinds));
    assert_eq!(words.split_whitespace().count(), 51);
    assert!(words.starts_with("user1 model1"));
}

#[test]
fn who_speaks_is_read_off_the_type() {
    let kinds: Vec<_> =
        Sample::of_lines(&chain("user assistant tool_result note")).branch().iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [Kind::User, Kind::Assistant, Kind::ToolResult, Kind::System]);
}
