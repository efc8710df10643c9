//! The walk along the branch: what it reads, where it ends, and what it says of the file on the way.

use serde_json::{Value, json};
use transcript::{Branch, Transcript};

use crate::sample::{Sample, chain, record, with, without};

fn open(sample: &Sample) -> Transcript {
    Transcript::open(sample.path()).unwrap().unwrap()
}

/// Walks to the end and gives the uuids on the way.
fn walk(branch: &mut Branch<'_>) -> String {
    let mut uuids = Vec::new();
    while let Some(record) = branch.next_record().unwrap() {
        uuids.push(record.uuid);
    }
    uuids.join(" ")
}

#[test]
fn a_walk_says_whether_its_end_was_a_beginning() {
    let cut = |records: &[Value]| {
        let sample = Sample::of_lines(records);
        let transcript = open(&sample);
        [0, u64::MAX].map(|window_bytes| {
            let mut branch = transcript.branch(window_bytes).unwrap();
            walk(&mut branch);
            branch.is_cut()
        })
    };
    assert_eq!(cut(&chain("user assistant")), [false, false]);
    assert_eq!(cut(&chain("user assistant")[1..]), [true, true]);
    let mut rootless = chain("user assistant");
    rootless[0]["parentUuid"] = json!("");
    assert_eq!(cut(&rootless), [false, false]);
    let mut unusable = chain("user assistant user");
    unusable[1]["type"] = json!("unheard_of");
    assert_eq!(cut(&unusable), [true, true]);
    let mut beside = chain("user session_artifact_event user");
    beside[2]["parentUuid"] = json!("r1");
    assert_eq!(cut(&beside), [true, true], "a note beside the branch is nobody's parent");
}

#[test]
fn a_walk_that_is_over_stays_over() {
    let sample = Sample::of_lines(&chain("user assistant"));
    let transcript = open(&sample);
    let mut branch = transcript.branch(0).unwrap();
    assert_eq!(walk(&mut branch), "r1 r0");
    assert_eq!((walk(&mut branch), branch.wanted()), (String::new(), None));
}

#[test]
fn the_next_record_is_known_before_it_is_read() {
    let sample = Sample::of_lines(&chain("user assistant user"));
    let transcript = open(&sample);
    let mut branch = transcript.branch(0).unwrap();
    let mut seen = Vec::new();
    while let Some(wanted) = branch.wanted().map(str::to_owned) {
        assert_eq!(branch.next_record().unwrap().map(|record| record.uuid), Some(wanted.clone()));
        seen.push(wanted);
    }
    assert_eq!(seen, ["r2", "r1", "r0"]);
}

#[test]
fn nothing_is_read_that_nobody_asked_for() {
    let records = chain(&"user assistant ".repeat(500));
    let sample = Sample::of_lines(&records);
    let transcript = open(&sample);
    let last_line = records[999].to_string().len() as u64 + 1;
    let mut branch = transcript.branch(0).unwrap();
    assert!(branch.bytes_read() <= 2 * last_line, "{} bytes", branch.bytes_read());
    let mut before = branch.bytes_read();
    for _ in 0..20 {
        branch.next_record().unwrap();
        assert!(branch.bytes_read() >= before && branch.bytes_read() <= before + 2 * last_line);
        before = branch.bytes_read();
    }
    walk(&mut branch);
    assert_eq!(branch.bytes_read(), sample.bytes().len() as u64);
}

#[test]
fn the_window_is_read_at_once_and_left_in_its_time() {
    let records = chain(&"user assistant ".repeat(50));
    let sample = Sample::of_lines(&records);
    let transcript = open(&sample);
    let window_bytes: u64 = records[60..].iter().map(|record| record.to_string().len() as u64 + 1).sum();
    let mut branch = transcript.branch(window_bytes).unwrap();
    assert!(branch.bytes_read() >= window_bytes);
    for _ in 60..100 {
        branch.next_record().unwrap();
        assert!(!branch.is_beyond_window());
    }
    walk(&mut branch);
    assert!(branch.is_beyond_window());
    let mut whole = transcript.branch(u64::MAX).unwrap();
    walk(&mut whole);
    assert!(!whole.is_beyond_window());
}

#[test]
fn one_session_is_named_and_two_are_not() {
    let session = |records: &[Value], window_bytes: u64| {
        let sample = Sample::of_lines(records);
        let transcript = open(&sample);
        transcript.branch(window_bytes).unwrap().session_id().map(str::to_owned)
    };
    let mut records = chain("user assistant user");
    assert_eq!(session(&records, u64::MAX).as_deref(), Some("s1"));
    records[0]["sessionId"] = json!("s2");
    assert_eq!(session(&records, u64::MAX), None);
    // Of what was not read nothing is said.
    assert_eq!(session(&records, 0).as_deref(), Some("s1"));
    assert_eq!(session(&[without(record("r0", None, "user"), "uuid")], u64::MAX), None);
}

#[test]
fn the_first_record_is_the_first_usable_one() {
    let first =
        |bytes: String| open(&Sample::of(bytes)).first_record().unwrap().map(|record| record.uuid).unwrap_or_default();
    let (a, b) = (record("a", None, "user").to_string(), record("b", Some("a"), "user").to_string());
    assert_eq!(first(format!("{a}\n{b}\n")), "a");
    assert_eq!(first(format!("\n\r\n \n{b}\n{a}")), "b");
    assert_eq!(first(format!("garbage\n[{a}]\nnull\n{b}\n")), "b");
    assert_eq!(first(format!("{{\"torn\":\"{a}{b}\n")), "a");
    assert_eq!(first(without(record("a", None, "user"), "type").to_string() + "\n" + &b), "b");
    // Beside the branch or not: it was written first.
    assert_eq!(first(format!("{}\n{b}", record("beside", None, "session_artifact_event"))), "beside");
    assert_eq!(first("garbage".to_owned()), "");
}

#[test]
fn a_record_s_places_in_the_file_are_its_own() {
    let mut records = chain("user assistant turn_result");
    records[2]["systemPayload"] = json!({"promptId": "p"});
    let sample = Sample::of_lines(&records);
    let transcript = open(&sample);
    for (found, written) in sample.branch().iter().zip(&records) {
        assert_eq!(transcript.value(&found.span, 10_000).unwrap().as_ref(), Some(written));
        let payload = found.payload_span.as_ref().map(|span| transcript.value(span, 10_000).unwrap().unwrap());
        assert_eq!(payload.as_ref(), written.get("systemPayload"));
        for span in found.message.iter().flat_map(|message| &message.spans) {
            assert_eq!(transcript.value(span, 10_000).unwrap().as_ref(), written.get("message"));
        }
    }
}

#[test]
fn what_is_appended_while_one_reads_is_not_seen() {
    let sample = Sample::of_lines(&chain("user assistant"));
    let transcript = open(&sample);
    let mut bytes = sample.bytes();
    bytes.extend_from_slice(with(record("r2", Some("r1"), "user"), json!({"sessionId": "s2"})).to_string().as_bytes());
    sample.write(&bytes);
    let mut branch = transcript.branch(u64::MAX).unwrap();
    assert_eq!((walk(&mut branch).as_str(), branch.session_id()), ("r1 r0", Some("s1")));
}

#[test]
fn a_prompt_in_pieces_before_the_cut_is_one_prompt() {
    let stamped = |prompt_id: &str| json!({"daemonPromptId": prompt_id});
    let mut records = chain("user user user assistant");
    records[0] = with(records[0].clone(), stamped("early"));
    records[1] = with(records[0].clone(), stamped("late"));
    records[2]["uuid"] = json!("beside");
    records[2]["subtype"] = json!("cron");
    records[3]["parentUuid"] = json!("nowhere");
    let sample = Sample::of_lines(&records);
    let transcript = open(&sample);
    for window_bytes in [0, 500, u64::MAX] {
        let mut branch = transcript.branch(window_bytes).unwrap();
        assert_eq!(walk(&mut branch), "r3");
        let prompt = branch.prompt_before_cut().unwrap();
        assert_eq!(prompt.prompt_id.as_deref(), Some("early"), "window of {window_bytes}");
    }
}
