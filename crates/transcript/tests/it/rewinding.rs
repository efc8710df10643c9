//! The places a conversation can be taken back to, and the record that does it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript::{
    AppendError, Body, Durability, Identity, Rewind, RewindError, RewindPoint, TurnResult, TurnState, Writer,
    find_turn_result, last_rewind_at_ms, rewind_points,
};

use crate::sample::{SESSION_ID, START_MS, Sample, WORKSPACE, chain, record, with};

fn open(path: &Path) -> Writer {
    let identity =
        Identity { session_id: SESSION_ID.to_owned(), cwd: WORKSPACE.to_owned(), version: "0.0.0".to_owned() };
    Writer::open(path, identity, Durability::Process).unwrap()
}

/// A transcript with one answered turn for each prompt, written as the host writes it.
fn turns(sample: &Sample, prompts: &[&str]) -> Writer {
    let mut writer = open(sample.path());
    for (number, prompt) in (0..).zip(prompts) {
        let at_ms = START_MS + number * 1_000;
        let text = |text: &str| vec![json!({ "text": text })];
        writer.append(at_ms, &Body::User { prompt_id: Some((*prompt).to_owned()), parts: text(prompt) }).unwrap();
        let answer = Body::Assistant { model: None, parts: text(&format!("echo {prompt}")) };
        let result = TurnResult::new(*prompt, TurnState::Completed, at_ms + 1);
        writer.append_all(&[(at_ms + 1, answer), (at_ms + 1, result.into())]).unwrap();
    }
    writer
}

fn point(sample: &Sample, name: &str) -> (Option<String>, RewindPoint) {
    let found = rewind_points(sample.path(), Some(name)).unwrap();
    let [point] = <[RewindPoint; 1]>::try_from(found.points).unwrap();
    (found.leaf, point)
}

fn place(sample: &Sample, name: &str) -> Rewind {
    let (leaf, point) = point(sample, name);
    Rewind { leaf, before: point.before, truncated_count: point.entries }
}

/// The texts that the branch says, oldest first.
fn said(sample: &Sample) -> Vec<String> {
    let lines = String::from_utf8(sample.bytes()).unwrap();
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let text = |uuid: &str| {
        let line = lines.iter().find(|line| line["uuid"] == uuid)?;
        line.pointer("/message/parts/0/text").map(|text| text.as_str().unwrap().to_owned())
    };
    sample.branch().iter().filter_map(|record| text(&record.uuid)).collect()
}

#[test]
fn a_rewind_takes_the_branch_back_and_the_next_turn_hangs_on_it() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A", "B", "C"]);
    writer.rewind(START_MS + 9_000, &place(&sample, "B")).unwrap();
    assert_eq!(said(&sample), ["A", "echo A"]);
    assert_eq!(last_rewind_at_ms(sample.path()).unwrap(), Some(START_MS + 9_000));
    for (prompt, is_there) in [("A", true), ("B", false), ("C", false)] {
        assert_eq!(find_turn_result(sample.path(), Some(prompt)).unwrap().is_some(), is_there, "{prompt}");
    }
    writer.append(START_MS, &Body::User { prompt_id: Some("D".into()), parts: vec![json!({"text": "D"})] }).unwrap();
    assert_eq!(said(&sample), ["A", "echo A", "D"]);
    let (_, point) = point(&sample, "D");
    assert_eq!((point.turn_index, point.entries), (1, 1));
    assert!(rewind_points(sample.path(), Some("B")).unwrap().points.is_empty(), "it is on no branch any more");
}

#[test]
fn a_rewind_to_the_first_prompt_leaves_nothing() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A", "B"]);
    let place = place(&sample, "A");
    assert_eq!((place.before.as_deref(), place.truncated_count), (None, 4));
    writer.rewind(START_MS, &place).unwrap();
    assert!(said(&sample).is_empty());
    assert_eq!(sample.branch().len(), 1, "the record itself");
}

#[test]
fn a_writer_that_has_written_since_rewinds_nothing() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A", "B"]);
    let place = place(&sample, "B");
    writer.append(START_MS, &Body::System { subtype: "late_output".into(), payload: json!({}) }).unwrap();
    let before = sample.bytes();
    assert!(matches!(writer.rewind(START_MS, &place), Err(RewindError::Grown)));
    assert_eq!(sample.bytes(), before);
}

#[test]
fn a_rewind_cut_anywhere_leaves_the_branch_as_it_was_or_taken_back() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A", "B"]);
    let (before, old) = (sample.bytes(), said(&sample));
    writer.rewind(START_MS, &place(&sample, "B")).unwrap();
    let (after, new) = (sample.bytes(), said(&sample));
    assert!(after.starts_with(&before) && old != new);
    for cut in before.len()..=after.len() {
        let torn = Sample::of(&after[..cut]);
        // The line counts as soon as its last brace is there, whether its end is or not.
        let is_whole = cut >= after.len() - 1;
        assert_eq!(said(&torn), if is_whole { new.clone() } else { old.clone() }, "cut at {cut}");
        let mut next = open(torn.path());
        next.append(START_MS, &Body::User { prompt_id: None, parts: vec![json!({"text": "next"})] }).unwrap();
        let expected = if is_whole { &new } else { &old };
        assert_eq!(said(&torn), [expected.as_slice(), &["next".to_owned()]].concat(), "cut at {cut}, written on");
    }
}

#[test]
fn a_rewind_that_cannot_be_written_changes_nothing() {
    let sample = Sample::new();
    let mut writer = open(Path::new("/dev/full"));
    turns(&sample, &["A"]);
    let refused = writer.rewind(START_MS, &Rewind { leaf: None, before: None, truncated_count: 1 });
    assert!(matches!(refused, Err(RewindError::Append(AppendError::Write { .. }))), "{refused:?}");
    assert_eq!(writer.parent(), None);
}

#[test]
fn a_place_is_known_by_any_of_its_names_and_by_how_many_prompts_stand_before_it() {
    let sample = Sample::new();
    turns(&sample, &["A", "B", "C"]);
    let all = rewind_points(sample.path(), None).unwrap();
    let seen: Vec<_> =
        all.points.iter().map(|point| (point.prompt_id.as_deref(), point.turn_index, point.entries)).collect();
    assert_eq!(seen, [(Some("A"), 0, 6), (Some("B"), 1, 4), (Some("C"), 2, 2)]);
    assert_eq!(all.leaf.as_deref(), Some(&*all.points[2].last), "the last turn reaches to the end");
    assert_eq!(Some(&all.points[0].last), all.points[1].before.as_ref(), "each turn reaches to the next");
    for point in &all.points {
        for name in [&point.record, point.prompt_id.as_ref().unwrap()] {
            assert_eq!(rewind_points(sample.path(), Some(name)).unwrap().points, std::slice::from_ref(point), "{name}");
        }
    }
    assert!(rewind_points(sample.path(), Some("D")).unwrap().points.is_empty());
}

#[test]
fn words_of_a_running_turn_and_of_the_session_begin_no_turn() {
    let mut lines = chain("user user user assistant");
    lines[1] = with(lines[1].clone(), json!({"subtype": "mid_turn_user_message"}));
    lines[2] = with(lines[2].clone(), json!({"provenance": "system"}));
    let found = rewind_points(Sample::of_lines(&lines).path(), None).unwrap();
    let records: Vec<_> = found.points.iter().map(|point| point.record.as_str()).collect();
    assert_eq!(records, ["r0"]);
    assert!(!found.is_compressed);
}

#[test]
fn a_history_that_was_replaced_is_told() {
    let compression = json!({"systemPayload": {"compressedHistory": []}});
    let mut lines = chain("user assistant chat_compression user");
    lines[2] = with(lines[2].clone(), compression);
    assert!(rewind_points(Sample::of_lines(&lines).path(), None).unwrap().is_compressed);
}

#[test]
fn a_file_of_two_sessions_has_no_places_and_a_missing_one_none() {
    let mut lines = chain("user assistant");
    lines.push(with(record("x", Some("r1"), "user"), json!({"sessionId": "s2"})));
    assert_eq!(
        rewind_points(Sample::of_lines(&lines).path(), None).unwrap_err().code(),
        "transcript_snapshot_unavailable"
    );
    assert_eq!(rewind_points(Sample::new().path(), None).unwrap(), transcript::RewindPoints::default());
}

/// A session of qwen-code that was rewound to its second prompt and went on with a fourth.
fn recorded() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/qwen-serve/rewind");
    folder.join("213b8f69-39ad-451f-8db7-e74e00733512.jsonl")
}

#[test]
fn the_snapshots_of_a_recorded_session_are_matched_to_their_prompts_also_behind_a_rewind() {
    let found = rewind_points(&recorded(), None).unwrap();
    let seen: Vec<_> = found
        .points
        .iter()
        .map(|point| {
            let snapshot = point.snapshot_id.as_deref().map(|id| id.rsplit('#').next().unwrap());
            (point.prompt_id.as_deref().map(|id| &id[..8]), snapshot, point.turn_index)
        })
        .collect();
    // The record behind the rewind repeats the snapshots 1 and 2, which are not the first prompt's last ones.
    assert_eq!(seen, [(Some("3bd4148d"), Some("1"), 0), (Some("c1996e69"), Some("4"), 1)]);
}
