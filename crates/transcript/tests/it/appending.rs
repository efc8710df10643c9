//! Where the next record goes: behind which one, on which line, as whose child.

use serde_json::{Value, json};
use transcript::{AppendError, Body, Durability, Identity, TAIL_BYTES_MAX, Writer, is_off_branch_subtype, tail_uuid};

use crate::sample::{SESSION_ID, START_MS, Sample, WORKSPACE, chain, record, with};

fn open(sample: &Sample) -> Writer {
    let identity =
        Identity { session_id: SESSION_ID.to_owned(), cwd: WORKSPACE.to_owned(), version: "0.0.0".to_owned() };
    Writer::open(sample.path(), identity, Durability::Process).unwrap()
}

fn user() -> Body {
    Body::User { prompt_id: None, parts: vec![json!({"text": "q"})] }
}

fn note(subtype: &str) -> Body {
    Body::System { subtype: subtype.to_owned(), payload: json!({}) }
}

/// What a next record would name as its parent.
fn leaf(bytes: impl AsRef<[u8]>) -> Option<String> {
    open(&Sample::of(bytes)).parent().map(str::to_owned)
}

fn check_leaf(bytes: impl AsRef<[u8]>, expected: Option<&str>) {
    assert_eq!(leaf(&bytes).as_deref(), expected, "{}", String::from_utf8_lossy(bytes.as_ref()));
}

const BESIDE: [&str; 7] = [
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_sources_snapshot",
    "managed_session_header_v1",
    "managed_session_event_v1",
    "managed_session_commit_v1",
    "managed_session_",
];

/// Notes whose names come close to those.
const ON_THE_BRANCH: [&str; 8] = [
    "session_artifact",
    "session_artifact_events",
    "session_source",
    "session_sources_snapshot_v1",
    "managed_session",
    "Managed_session_event_v1",
    "turn_result",
    "",
];

#[test]
fn notes_beside_the_branch_are_told_by_their_subtype() {
    for subtype in BESIDE {
        assert!(is_off_branch_subtype(subtype), "{subtype}");
    }
    for subtype in ON_THE_BRANCH {
        assert!(!is_off_branch_subtype(subtype), "{subtype}");
    }
}

#[test]
fn the_leaf_is_the_last_record_that_is_not_beside_the_branch() {
    let with_last = |subtype: &str| {
        let mut records = chain("user assistant");
        records.push(record("last", Some("r1"), subtype));
        Sample::of_lines(&records).bytes()
    };
    for subtype in BESIDE {
        check_leaf(with_last(subtype), Some("r1"));
    }
    for subtype in ON_THE_BRANCH {
        check_leaf(with_last(subtype), Some("last"));
    }
}

#[test]
fn a_message_is_on_the_branch_whatever_its_subtype() {
    for kind in ["user", "assistant", "tool_result"] {
        for subtype in BESIDE {
            let last = with(record("last", None, kind), json!({"subtype": subtype}));
            check_leaf(Sample::of_lines(&[last]).bytes(), Some("last"));
        }
    }
}

#[test]
fn a_file_of_nothing_but_notes_beside_the_branch_has_no_leaf() {
    let records: Vec<_> = BESIDE.iter().map(|subtype| record(subtype, None, subtype)).collect();
    check_leaf(Sample::of_lines(&records).bytes(), None);
    check_leaf("", None);
    check_leaf("\n\n", None);
    check_leaf("garbage\n{}\nnull\n", None);
}

#[test]
fn the_leaf_is_found_behind_any_damage() {
    let whole = String::from_utf8(Sample::of_lines(&chain("user assistant")).bytes()).unwrap();
    for damage in ["garbage", "{\"uuid\":\"x\"", "\0\0\0", "[1,2]", "{\"uuid\":\"x\"}", "\r\r", "  ", "\u{feff}"] {
        check_leaf(format!("{whole}{damage}"), Some("r1"));
        check_leaf(format!("{whole}{damage}\n"), Some("r1"));
    }
    let glued = record("glued", Some("r1"), "user");
    check_leaf(format!("{whole}{{\"uuid\":\"torn\",\"text\":\"{glued}\n"), Some("glued"));
    check_leaf(format!("{}{glued}", whole.trim_end()), Some("glued"));
}

#[test]
fn the_leaf_is_found_behind_more_than_one_block_of_notes() {
    let mut records = chain("user assistant");
    for index in 0..2_000 {
        records.push(record(&format!("n{index}"), Some("r1"), "session_artifact_event"));
    }
    check_leaf(Sample::of_lines(&records).bytes(), Some("r1"));
}

#[test]
fn a_rewind_is_the_parent_of_what_follows_it() {
    let mut records = chain("user assistant user assistant");
    records.push(record("w", Some("r1"), "rewind"));
    let sample = Sample::of_lines(&records);
    let next = open(&sample).append(START_MS, &user()).unwrap();
    assert_eq!(sample.uuids(), format!("r0 r1 w {next}"));
}

#[test]
fn notes_beside_the_branch_within_a_batch_are_nobody_s_parent() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let batch = [user(), note("session_artifact_event"), note("turn_result"), note("managed_session_x"), user()];
    let records: Vec<_> = batch.into_iter().map(|body| (START_MS, body)).collect();
    let uuids = writer.append_all(&records).unwrap();
    let text = String::from_utf8(sample.bytes()).unwrap();
    let parents: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["parentUuid"].clone()).collect();
    let [first, _, third, _, last] = &uuids[..] else { panic!("{uuids:?}") };
    assert_eq!(parents, [json!(null), json!(first), json!(first), json!(third), json!(third)]);
    assert_eq!((sample.uuids(), writer.parent()), (format!("{first} {third} {last}"), Some(last.as_str())));
}

#[test]
fn a_batch_that_ends_beside_the_branch_leaves_the_leaf_where_it_is() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let uuids = writer.append_all(&[(START_MS, user()), (START_MS, note("session_sources_snapshot"))]).unwrap();
    assert_eq!(writer.parent(), Some(uuids[0].as_str()));
    assert_eq!(open(&sample).parent(), Some(uuids[0].as_str()), "and another writer finds the same");
    writer.append(START_MS, &note("managed_session_event_v1")).unwrap();
    assert_eq!(writer.parent(), Some(uuids[0].as_str()));
}

#[test]
fn a_batch_of_nothing_makes_no_file() {
    let sample = Sample::new();
    assert_eq!(open(&sample).append_all(&[]).unwrap(), Vec::<String>::new());
    assert!(!sample.path().exists());
    let torn = Sample::of("torn");
    open(&torn).append_all(&[]).unwrap();
    assert_eq!(torn.bytes(), b"torn");
}

#[test]
fn no_two_records_have_one_uuid() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let records: Vec<_> = (0..200).map(|_| (START_MS, user())).collect();
    let mut uuids = [writer.append_all(&records).unwrap(), writer.append_all(&records).unwrap()].concat();
    assert_eq!(sample.branch().len(), 400);
    uuids.sort();
    uuids.dedup();
    assert_eq!(uuids.len(), 400);
}

#[test]
fn only_a_torn_end_is_sealed_and_a_batch_is_sealed_once() {
    for (end, seal) in [("", ""), ("x", "\n"), ("x\n", ""), ("x\r\n", ""), ("x\r", "\n"), ("\n", ""), ("x\0", "\n")] {
        let sample = Sample::of(end);
        open(&sample).append_all(&[(START_MS, user()), (START_MS, user())]).unwrap();
        let text = String::from_utf8(sample.bytes()).unwrap();
        assert!(text.starts_with(&format!("{end}{seal}{{\"uuid\":")), "{end:?}: {text}");
        assert!(text.ends_with("}\n"), "{end:?}");
        assert_eq!(sample.branch().len(), 2, "{end:?}");
        assert_eq!(text.matches("\n{").count(), if end.is_empty() { 1 } else { 2 }, "{end:?}: {text}");
    }
}

#[test]
fn what_another_one_tore_meanwhile_is_sealed_too() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let first = writer.append(START_MS, &user()).unwrap();
    let mut bytes = sample.bytes();
    bytes.extend_from_slice(b"{\"uuid\":\"torn");
    sample.write(&bytes);
    let second = writer.append(START_MS, &user()).unwrap();
    assert_eq!(sample.uuids(), format!("{first} {second}"));
}

#[test]
fn a_time_that_no_timestamp_can_say_writes_nothing() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    for at_ms in [253_402_300_800_000, u64::MAX, i64::MAX as u64] {
        assert!(
            matches!(writer.append(at_ms, &user()), Err(AppendError::Time { at_ms: of }) if of == at_ms),
            "{at_ms}"
        );
    }
    assert!(!sample.path().exists());
    writer.append(0, &user()).unwrap();
    assert_eq!(sample.branch()[0].at_ms, Some(0));
}

#[test]
fn whatever_is_said_stays_on_one_line() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let text = "\n\r\u{2028}\u{2029}\0\"\\\u{feff}🧪\u{7f}";
    let said = Body::Assistant { model: Some(text.to_owned()), parts: vec![json!({"text": text})] };
    let uuids = [writer.append(START_MS, &said).unwrap(), writer.append(START_MS, &note(text)).unwrap()];
    let bytes = sample.bytes();
    assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 2);
    let first: Value = serde_json::from_slice(bytes.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    assert_eq!((&first["model"], &first["message"]["parts"][0]["text"]), (&json!(text), &json!(text)));
    assert_eq!(sample.uuids(), uuids.join(" "));
    assert_eq!(sample.branch()[1].subtype.as_deref(), Some(text));
}

#[test]
fn the_marker_is_the_last_record_that_was_appended() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    for body in [user(), note("session_artifact_event"), note("turn_result")] {
        let uuid = writer.append(START_MS, &body).unwrap();
        // Beside the branch or not: it marks a place in the file.
        assert_eq!(tail_uuid(sample.path()), Some(uuid));
    }
}

#[test]
fn a_record_longer_than_the_window_is_no_marker_and_the_next_one_is() {
    let sample = Sample::new();
    let mut writer = open(&sample);
    let text = "x".repeat(usize::try_from(TAIL_BYTES_MAX).unwrap());
    let long = Body::User { prompt_id: None, parts: vec![json!({"text": text})] };
    let first = writer.append(START_MS, &long).unwrap();
    assert_eq!((tail_uuid(sample.path()), writer.parent()), (None, Some(first.as_str())));
    let second = writer.append(START_MS, &user()).unwrap();
    assert_eq!(tail_uuid(sample.path()), Some(second));
}

#[test]
fn empty_lines_hide_the_marker_only_when_they_fill_the_window() {
    let window = usize::try_from(TAIL_BYTES_MAX).unwrap();
    let line = "{\"uuid\":\"a\"}";
    for (ends, expected) in [
        (1, Some("a")),
        (window - line.len(), Some("a")),
        (window - line.len() + 1, None),
        (window, None),
        (window + 1, None),
    ] {
        let sample = Sample::of(format!("x\n{line}{}", "\n".repeat(ends)));
        assert_eq!(tail_uuid(sample.path()).as_deref(), expected, "{ends} line ends");
    }
}

#[test]
fn a_uuid_of_the_marker_s_inside_is_none() {
    for (line, expected) in [
        ("{\"x\":{\"uuid\":\"b\"}}", None),
        ("{\"x\":{\"uuid\":\"b\"},\"uuid\":\"a\"}", Some("a")),
        ("{\"uuid\":\"a\",\"uuid\":null}", None),
        ("{\"u\\u0075id\":\"a\"}", Some("a")),
        ("{\"uuid\":\"\\u0061\"}", Some("a")),
        ("{\"UUID\":\"a\"}", None),
        ("{\"uuid\":\"a\"} x", None),
        ("{\"uuid\":\"a\",}", None),
    ] {
        assert_eq!(tail_uuid(Sample::of(format!("{line}\n")).path()).as_deref(), expected, "{line}");
    }
}
