//! The replay, row by row of the wire's table on the display projection.

use serde_json::{Value, json};
use transcript::display::{Frame, Replay, replay};

use crate::sample::{Sample, chain, record, with, without};

/// Room for everything.
const AMPLE_BYTES: usize = 1_000_000;

fn shown(records: &[Value]) -> Replay {
    replay(Sample::of_lines(records).path(), AMPLE_BYTES).unwrap()
}

/// The update of a frame as a value.
fn update(frame: &Frame) -> Value {
    serde_json::from_str(&frame.update).unwrap()
}

/// The updates of one record, without the metadata.
fn bare(record: Value) -> Vec<Value> {
    let without_meta = |update: Value| without(without(update, "_meta"), "timestamp");
    shown(&[record]).frames.iter().map(|frame| without_meta(update(frame))).collect()
}

/// The metadata of the updates of one record, without what every update has.
fn meta(record: Value) -> Vec<Value> {
    let own = |update: &Value| {
        let common = ["timestamp", "qwenTranscript", "qwen.session.recordId"];
        common.iter().fold(update["_meta"].clone(), |meta, field| without(meta, field))
    };
    shown(&[record]).frames.iter().map(|frame| own(&update(frame))).collect()
}

fn said(kind: &str, parts: Value) -> Value {
    let role = if kind == "assistant" { "model" } else { "user" };
    with(record("r", None, kind), json!({"message": {"role": role, "parts": parts}}))
}

fn note(subtype: &str, payload: Value) -> Value {
    with(record("r", None, subtype), json!({"systemPayload": payload}))
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[test]
fn of_a_prompt_the_displayable_parts_are_shown() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AA"});
    let sound = json!({"type": "audio", "mimeType": "audio/ogg", "data": "BB"});
    for (part, content) in [
        (json!({"text": "q"}), Some(json!({"type": "text", "text": "q"}))),
        (json!({"text": ""}), None),
        (json!({"text": " "}), Some(json!({"type": "text", "text": " "}))),
        (json!({"text": "<system-reminder>x</system-reminder>\n"}), None),
        (json!({"text": "<system-reminder>x"}), Some(json!({"type": "text", "text": "<system-reminder>x"}))),
        (json!({"inlineData": {"mimeType": "image/png", "data": "AA"}}), Some(image)),
        (json!({"inlineData": {"mimeType": "audio/ogg", "data": "BB"}}), Some(sound)),
        (json!({"inlineData": {"mimeType": "video/mp4", "data": "CC"}}), None),
        (json!({"inlineData": {"mimeType": "application/pdf", "data": "CC"}}), None),
        (json!({"inlineData": {"data": "CC"}}), None),
        (json!({"inlineData": {"mimeType": "image/png"}}), None),
        (json!({"functionResponse": {"id": "c"}}), None),
        (json!({}), None),
        (json!(7), None),
    ] {
        let expected = content.map(|content| json!({"sessionUpdate": "user_message_chunk", "content": content}));
        assert_eq!(bare(said("user", json!([part]))), Vec::from_iter(expected), "{part}");
    }
}

#[test]
fn a_prompt_names_the_request_that_asked_it() {
    let asked = said("user", json!([{"text": "a"}, {"text": "b"}]));
    assert_eq!(meta(asked.clone()), [json!({}), json!({})]);
    let stamped = with(asked, json!({"daemonPromptId": "p"}));
    assert_eq!(meta(stamped), [json!({"promptId": "p"}), json!({"promptId": "p"})]);
}

#[test]
fn what_is_shown_instead_keeps_the_attachments() {
    let parts =
        json!([{"inlineData": {"mimeType": "image/png", "data": "AA"}}, {"text": "a"}, {"text": "b"}, {"text": "c"}]);
    let replaced = with(said("user", parts), json!({"systemPayload": {"displayText": "/do"}}));
    let kinds: Vec<_> = bare(replaced).iter().map(|update| update["content"].clone()).collect();
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AA"});
    assert_eq!(kinds, [image, json!({"type": "text", "text": "/do"})]);
    let odd = with(said("user", json!([{"text": "a"}])), json!({"systemPayload": {"displayText": 7}}));
    assert_eq!(bare(odd), [chunk("user_message_chunk", "a")]);
}

#[test]
fn of_an_answer_texts_come_first_then_usage_then_calls() {
    let parts = json!([
        {"functionCall": {"id": "c", "name": "glob", "args": {"pattern": "*"}}},
        {"text": "hm", "thought": true},
        {"text": "so", "thought": false},
    ]);
    let usage = json!({"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12});
    let answer = with(said("assistant", parts), json!({"usageMetadata": usage}));
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress", "title": "glob", "kind": "search",
        "content": [], "locations": [], "rawInput": {"pattern": "*"},
    });
    let found = bare(answer.clone());
    assert_eq!(
        found[..4],
        [
            chunk("agent_thought_chunk", "hm"),
            chunk("agent_message_chunk", "so"),
            chunk("agent_message_chunk", ""),
            call,
        ]
    );
    assert_eq!((found.len(), found[4]["status"].as_str()), (5, Some("failed")));
    let counted = json!({
        "inputTokens": 5, "outputTokens": 7, "totalTokens": 12, "thoughtTokens": 0, "cachedReadTokens": 0,
    });
    assert_eq!(meta(answer)[2..4], [json!({"usage": counted}), json!({"toolName": "glob"})]);
}

#[test]
fn usage_that_is_no_usage_is_not_shown() {
    for usage in [json!(null), json!("many"), json!([1])] {
        let answer = with(said("assistant", json!([{"text": "a"}])), json!({"usageMetadata": usage}));
        assert_eq!(bare(answer), [chunk("agent_message_chunk", "a")], "{usage}");
    }
}

#[test]
fn a_call_has_the_kind_of_its_tool() {
    for (name, kind) in [
        ("run_shell_command", "execute"),
        ("read_file", "read"),
        ("read_many_files", "read"),
        ("list_directory", "read"),
        ("write_file", "edit"),
        ("edit", "edit"),
        ("replace", "edit"),
        ("glob", "search"),
        ("grep_search", "search"),
        ("search_file_content", "search"),
        ("web_fetch", "fetch"),
        ("unheard_of", "other"),
    ] {
        let call = &bare(said("assistant", json!([{"functionCall": {"id": "c", "name": name}}])))[0];
        assert_eq!((call["title"].as_str(), call["kind"].as_str()), (Some(name), Some(kind)));
        assert_eq!(call["rawInput"], json!({}));
    }
}

#[test]
fn a_call_without_an_id_is_not_shown_and_one_without_a_name_is() {
    for call in [json!({"name": "ls"}), json!({"id": 7, "name": "ls"}), json!("ls"), json!(null)] {
        assert_eq!(bare(said("assistant", json!([{"functionCall": call}]))), Vec::<Value>::new(), "{call}");
    }
    assert_eq!(bare(said("assistant", json!([{"functionCall": {"id": "c"}}])))[0]["title"], json!("unknown"));
}

#[test]
fn an_answer_of_a_tool_succeeds_or_fails() {
    for (status, response, expected, text) in [
        (json!("success"), json!({"output": "x"}), "completed", Some("x")),
        (json!("error"), json!({"error": "no"}), "failed", Some("no")),
        (json!("cancelled"), json!({"error": "cut"}), "failed", Some("cut")),
        (json!("error"), json!({"output": "x"}), "failed", Some("x")),
        (json!(null), json!({"output": "x"}), "completed", Some("x")),
        (json!(null), json!({"error": "no"}), "failed", Some("no")),
        (json!(null), json!({"output": "x", "error": "no"}), "completed", Some("x")),
        (json!(null), json!({"output": {"a": 1}}), "completed", Some("{\"a\":1}")),
        (json!(null), json!({}), "completed", None),
        (json!(null), json!(null), "completed", None),
    ] {
        let answer =
            said("tool_result", json!([{"functionResponse": {"id": "c", "name": "ls", "response": response}}]));
        let answer = with(answer, json!({"toolCallResult": {"callId": "other", "status": status}}));
        let content = text.map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}));
        let update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": expected, "content": Vec::from_iter(content),
        });
        assert_eq!(bare(answer.clone()), [update], "{status}, {response}");
        assert_eq!(meta(answer), [json!({"toolName": "ls"})]);
    }
}

#[test]
fn an_answer_of_a_tool_without_an_id_takes_the_record_s() {
    let answer = said("tool_result", json!([{"functionResponse": {"response": {}}}]));
    let named = with(answer.clone(), json!({"toolCallResult": {"callId": "c", "resultDisplay": {"fileDiff": "+"}}}));
    let update = &bare(named)[0];
    assert_eq!((&update["toolCallId"], &update["rawOutput"]), (&json!("c"), &json!({"fileDiff": "+"})));
    assert_eq!(bare(answer), Vec::<Value>::new());
}

#[test]
fn of_a_command_the_session_s_output_is_shown() {
    let command = |payload: Value| bare(note("slash_command", payload));
    let items =
        json!([{"type": "assistant", "text": "one\ntwo"}, {"type": "stats"}, {"type": "info", "text": "three"}]);
    let result = json!({"phase": "result", "outputHistoryItems": items});
    assert_eq!(
        command(result.clone()),
        [chunk("agent_message_chunk", "one  \ntwo"), chunk("agent_message_chunk", "three")]
    );
    assert_eq!(meta(note("slash_command", result))[0], json!({"source": "slash_command"}));
    for payload in [
        json!({"phase": "invocation", "outputHistoryItems": items}),
        json!({"outputHistoryItems": items}),
        json!({"phase": "result"}),
        json!({"phase": "result", "outputHistoryItems": "text"}),
        json!({"phase": "result", "outputHistoryItems": [7, {"text": 7}]}),
        json!(null),
    ] {
        assert_eq!(command(payload.clone()), Vec::<Value>::new(), "{payload}");
    }
}

#[test]
fn of_a_turn_s_end_only_a_cancel_is_shown() {
    let end = |payload: Value| meta(note("turn_result", payload));
    let cancelled = |fields: Value| [json!({"qwenDiscreteMessage": true, "promptCancelled": fields})];
    let payload = json!({"promptId": "p", "state": "cancelled", "cancelledAt": 9, "startedAt": 4, "endedAt": 10});
    assert_eq!(end(payload.clone()), cancelled(json!({"promptId": "p", "cancelledAt": 9, "elapsedMs": 5})));
    let unstarted = without(payload.clone(), "startedAt");
    assert_eq!(end(unstarted), cancelled(json!({"promptId": "p", "cancelledAt": 9})));
    // A clock that was set back made no turn shorter than nothing.
    let set_back = with(payload.clone(), json!({"startedAt": 20}));
    assert_eq!(end(set_back), cancelled(json!({"promptId": "p", "cancelledAt": 9, "elapsedMs": 0})));
    for silent in [
        with(payload.clone(), json!({"state": "completed"})),
        with(payload.clone(), json!({"state": "error"})),
        without(payload, "cancelledAt"),
    ] {
        assert_eq!(end(silent.clone()), Vec::<Value>::new(), "{silent}");
    }
}

#[test]
fn notes_about_the_session_are_not_shown() {
    for subtype in [
        "ui_telemetry",
        "branch_checkpoint",
        "file_history_snapshot",
        "custom_title",
        "rewind",
        "session_model",
        "goal_state",
        "unheard_of",
    ] {
        assert_eq!(bare(note(subtype, json!({"text": "x"}))), Vec::<Value>::new(), "{subtype}");
        // Not even with a message.
        let with_message = with(note(subtype, json!({})), json!({"message": {"parts": [{"text": "x"}]}}));
        assert_eq!(bare(with_message), Vec::<Value>::new(), "{subtype}");
    }
}

#[test]
fn what_was_compressed_is_shown_in_full() {
    let mut records = chain("user assistant chat_compression user");
    records[2]["systemPayload"] = json!({"compressedHistory": [{"role": "user", "parts": [{"text": "summary"}]}]});
    let texts: Vec<_> = shown(&records).frames.iter().map(|frame| update(frame)["content"]["text"].clone()).collect();
    assert_eq!(texts, ["asked in r0", "said in r1", "asked in r3"]);
}

#[test]
fn what_was_rewound_is_not_shown() {
    let mut records = chain("user assistant user assistant");
    records.push(record("w", Some("r1"), "rewind"));
    records.push(record("again", Some("w"), "user"));
    let ids: Vec<_> =
        shown(&records).frames.iter().map(|frame| update(frame)["_meta"]["qwen.session.recordId"].clone()).collect();
    assert_eq!(ids, ["r0", "r1", "again"]);
}

#[test]
fn every_update_names_its_record_and_its_time() {
    let parts = json!([{"text": "a"}, {"functionCall": {"id": "c"}}, {"text": "b"}]);
    let frames = shown(&[said("assistant", parts)]).frames;
    let segments: Vec<_> =
        frames.iter().map(|frame| update(frame)["_meta"]["qwenTranscript"]["segmentId"].clone()).collect();
    assert_eq!(segments, [json!("r:0"), json!("r:1"), Value::Null, Value::Null]);
    for frame in &frames {
        let at = json!(1_795_977_220_001_u64);
        assert_eq!(update(frame)["_meta"]["qwenTranscript"]["sourceRecordIds"], json!(["r"]));
        assert_eq!((frame.at_ms, &update(frame)["timestamp"]), (Some(1_795_977_220_001), &at));
        assert_eq!(update(frame)["_meta"]["timestamp"], at);
    }
}

#[test]
fn an_update_of_an_undated_record_has_no_time() {
    for timestamp in ["once", "1969-12-31T23:59:59Z"] {
        let undated = with(record("r", None, "user"), json!({"timestamp": timestamp}));
        let frame = shown(&[undated]).frames.remove(0);
        assert_eq!((frame.at_ms, update(&frame).get("timestamp").cloned()), (None, None), "{timestamp}");
        assert_eq!(update(&frame)["_meta"].get("timestamp"), None, "{timestamp}");
    }
}

#[test]
fn a_call_has_failed_only_if_nobody_answered_it() {
    let calls = json!([{"functionCall": {"id": "a"}}, {"functionCall": {"id": "b"}}, {"functionCall": {"id": "c"}}]);
    let mut records = chain("user assistant tool_result user");
    records[1]["message"]["parts"] = calls;
    records[2]["message"]["parts"] = json!([{"functionResponse": {"id": "b", "response": {}}}]);
    let ends: Vec<_> = shown(&records)
        .frames
        .iter()
        .map(update)
        .filter(|update| update["sessionUpdate"] == "tool_call_update")
        .map(|update| format!("{}: {}", update["toolCallId"], update["status"]))
        .collect();
    // What nobody answered is said at the very end.
    assert_eq!(ends, ["\"b\": \"completed\"", "\"a\": \"failed\"", "\"c\": \"failed\""]);
}

/// What a replay of these records weighs within a bound, and whether it says that something is missing.
fn weight(records: &[Value], bytes_max: usize) -> (usize, bool) {
    let found = replay(Sample::of_lines(records).path(), bytes_max).unwrap();
    (found.frames.iter().map(|frame| frame.update.len()).sum(), found.is_truncated)
}

#[test]
fn the_ends_of_unanswered_calls_count_as_bytes() {
    let calls: Vec<_> = (0..40).map(|index| json!({"functionCall": {"id": format!("c{index}")}})).collect();
    let mut records = chain("user assistant");
    records[1]["message"]["parts"] = json!(calls);
    let (whole, _) = weight(&records, AMPLE_BYTES);
    for bytes_max in [0, 1_000, 10_000, whole / 2, whole - 1, whole] {
        let (bytes, is_truncated) = weight(&records, bytes_max);
        assert!(bytes <= bytes_max, "{bytes} bytes within {bytes_max}");
        assert_eq!(is_truncated, bytes_max < whole);
    }
}

#[test]
fn the_notice_of_a_gap_counts_as_bytes() {
    let records = [record("r", Some("gone"), "user")];
    let (whole, _) = weight(&records, AMPLE_BYTES);
    assert_eq!(weight(&records, whole), (whole, false));
    let (bytes, is_truncated) = weight(&records, whole - 1);
    assert!(bytes > 0 && bytes < whole && is_truncated, "{bytes} of {whole}");
}
