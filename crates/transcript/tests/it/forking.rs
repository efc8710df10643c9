//! A copy of a conversation under another session's id.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use transcript::display::{Bounds, replay_within};
use transcript::{
    Body, Durability, Fork, ForkError, ForkPoint, Identity, Rewind, TurnResult, TurnState, Writer, find_answer,
    find_title, find_turn_result, fork, last_rewind_at_ms, rewind_points,
};

use crate::sample::{SESSION_ID, START_MS, Sample, WORKSPACE, branch_of, chain, record, with};

fn identity(session: &str) -> Identity {
    Identity { session_id: session.to_owned(), cwd: WORKSPACE.to_owned(), version: "0.0.0".to_owned() }
}

fn order(source: &Path, at: ForkPoint) -> Fork {
    Fork {
        source: source.to_owned(),
        source_session: SESSION_ID.to_owned(),
        at,
        identity: identity("s2"),
        title: "copy(1)".to_owned(),
        at_ms: START_MS,
        durability: Durability::Fsync,
    }
}

/// The copy of a sample: its path, and its lines.
fn copied(sample: &Sample, at: ForkPoint) -> Result<(PathBuf, Vec<Value>), ForkError> {
    let target = sample.folder().join("copy");
    fork(&order(sample.path(), at), &target).map(|()| (target.clone(), lines(&target)))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The uuids of a copy's branch but for its title, which is the last one.
fn uuids(path: &Path) -> String {
    let mut branch = branch_of(path, transcript::WINDOW_BYTES);
    assert!(branch.pop().unwrap().is_note("custom_title"));
    branch.into_iter().map(|record| record.uuid).collect::<Vec<_>>().join(" ")
}

/// A transcript of answered turns, as the host writes it.
fn turns(sample: &Sample, prompts: &[&str]) -> Writer {
    let mut writer = Writer::open(sample.path(), identity(SESSION_ID), Durability::Process).unwrap();
    for prompt in prompts {
        let text = |text: &str| vec![json!({ "text": text })];
        let asked = Body::User { prompt_id: Some((*prompt).to_owned()), parts: text(prompt) };
        let answer = Body::Assistant { model: None, parts: text(&format!("echo {prompt}")) };
        let result = TurnResult::new(*prompt, TurnState::Completed, START_MS).with_result_text(prompt);
        writer.append_all(&[(START_MS, asked), (START_MS, answer), (START_MS, result.into())]).unwrap();
    }
    writer
}

#[test]
fn a_copy_has_the_branch_under_its_own_id_and_hangs_on_what_is_left() {
    let sample = Sample::new();
    turns(&sample, &["A", "B"]);
    let source = sample.branch();
    let (path, lines) = copied(&sample, ForkPoint::Tip).unwrap();
    let kept = [0, 1, 3, 4].map(|place: usize| source[place].uuid.as_str());
    assert_eq!(uuids(&path), kept.join(" "));
    for (line, uuid) in lines.iter().zip(kept) {
        assert_eq!((&line["sessionId"], &line["uuid"]), (&json!("s2"), &json!(uuid)));
        assert_eq!(line["forkedFrom"]["sessionId"], SESSION_ID);
        assert_eq!(line["forkedFrom"]["messageUuid"], uuid);
    }
    let title = &lines[4];
    assert_eq!(title["systemPayload"], json!({"customTitle": "copy(1)", "titleSource": "manual"}));
    assert_eq!((&title["parentUuid"], &title["sessionId"]), (&json!(kept[3]), &json!("s2")));
    assert!(transcript::check(&path, "s2", Path::new(WORKSPACE)).is_ok());
    let shown = |path: &Path| {
        let bounds = Bounds { bytes_max: 1_000_000, records_max: 100 };
        let frames = replay_within(path, bounds).unwrap().frames;
        frames
            .iter()
            .map(|frame| {
                let update: Value = serde_json::from_str(&frame.update).unwrap();
                update["content"]["text"].clone()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(&path), shown(sample.path()), "a person sees the same");
}

#[test]
fn a_copy_inherits_no_prompts_identity() {
    let sample = Sample::new();
    turns(&sample, &["A", "B"]);
    let (path, lines) = copied(&sample, ForkPoint::Tip).unwrap();
    for prompt in ["A", "B"] {
        assert_eq!(find_turn_result(&path, Some(prompt)).unwrap(), None);
        assert!(find_answer(&path, prompt).unwrap().is_none());
        assert!(rewind_points(&path, Some(prompt)).unwrap().points.is_empty(), "it is no name of a place there");
    }
    assert!(branch_of(&path, 0).iter().all(|record| record.prompt_id.is_none()));
    assert_eq!(lines[0]["forkedFrom"]["promptId"], "A", "where it came from can be seen");
}

#[test]
fn a_session_is_called_what_it_was_called_last_wherever_its_branch_goes_and_one_whose_name_was_taken_back_nothing() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A"]);
    let named = |bytes_max: u64| find_title(sample.path(), bytes_max).unwrap();
    assert_eq!(named(1_000_000), None);
    let (path, _) = copied(&sample, ForkPoint::Tip).unwrap();
    assert_eq!(find_title(&path, 16_000).unwrap().as_deref(), Some("copy(1)"));
    let parts = vec![json!({ "text": "x".repeat(80_000) })];
    writer.append(START_MS, &Body::User { prompt_id: Some("B".into()), parts: parts.clone() }).unwrap();
    let title = |title: &str| Body::System { subtype: "custom_title".into(), payload: json!({ "customTitle": title }) };
    for name in ["first", "second"] {
        writer.append(START_MS, &title(name)).unwrap();
    }
    assert_eq!(named(16_000).as_deref(), Some("second"));
    let found = rewind_points(sample.path(), Some("B")).unwrap();
    let rewind = Rewind { leaf: found.leaf, before: found.points[0].before.clone(), truncated_count: 1 };
    writer.rewind(START_MS, &rewind).unwrap();
    assert_eq!(named(16_000).as_deref(), Some("second"), "the list says the same");
    writer.append(START_MS, &Body::User { prompt_id: None, parts }).unwrap();
    assert_eq!(named(1_000_000).as_deref(), Some("second"));
    assert_eq!(named(1_000), None, "nobody looked that far");
    writer.append(START_MS, &title("")).unwrap();
    assert_eq!(named(1_000_000), None);
}

#[test]
fn a_copy_ends_where_it_is_told_to() {
    let sample = Sample::new();
    turns(&sample, &["A", "B", "C"]);
    let source = sample.branch();
    let point = rewind_points(sample.path(), Some("B")).unwrap().points.remove(0);
    let (path, lines) = copied(&sample, ForkPoint::Record(point.last)).unwrap();
    let kept = [0, 1, 3, 4].map(|place: usize| source[place].uuid.as_str());
    assert_eq!(uuids(&path), kept.join(" "));
    assert_eq!(lines.last().unwrap()["parentUuid"], kept[3], "the result of the turn is left out");
}

#[test]
fn only_a_checkpoint_on_the_branch_is_one() {
    let mut lines = chain("user assistant branch_checkpoint user assistant branch_checkpoint");
    lines.push(record("w", Some("r2"), "rewind"));
    let sample = Sample::of_lines(&lines);
    let at = |uuid: &str| {
        let copied = copied(&sample, ForkPoint::Checkpoint(uuid.to_owned()));
        let _ = std::fs::remove_file(sample.folder().join("copy"));
        copied
    };
    assert_eq!(at("r2").unwrap().1.len(), 4);
    for uuid in ["r1", "r5", "nope", ""] {
        assert!(matches!(at(uuid), Err(ForkError::NoPoint)), "{uuid}");
    }
}

#[test]
fn what_hung_on_a_record_that_is_left_out_hangs_on_the_one_before() {
    let mut lines = chain("user turn_result parent_session session_source turn_result assistant");
    lines.push(record("a1", Some("r4"), "session_artifact_event"));
    lines.push(record("a2", Some("r5"), "session_artifact_snapshot"));
    lines.push(record("a3", Some("r5"), "session_sources_snapshot"));
    lines.push(record("a4", Some("elsewhere"), "session_artifact_event"));
    lines.push(record("a5", Some("r5"), "managed_session_event_v1"));
    let (_, lines) = copied(&Sample::of_lines(&lines), ForkPoint::Tip).unwrap();
    let chain: Vec<_> =
        lines.iter().map(|line| (line["uuid"].as_str().unwrap(), line["parentUuid"].as_str())).collect();
    assert_eq!(chain[..4], [("r0", None), ("r5", Some("r0")), ("a1", Some("r0")), ("a2", Some("r5"))]);
    assert_eq!((chain.len(), chain[4].1), (5, Some("r5")), "the title");
}

#[test]
fn what_was_rewound_is_not_copied_and_the_rewind_is() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A", "B"]);
    let found = rewind_points(sample.path(), Some("B")).unwrap();
    let rewind = Rewind { leaf: found.leaf, before: found.points[0].before.clone(), truncated_count: 2 };
    writer.rewind(START_MS + 5, &rewind).unwrap();
    let (path, lines) = copied(&sample, ForkPoint::Tip).unwrap();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert_eq!(last_rewind_at_ms(&path).unwrap(), Some(START_MS + 5));
    assert!(!std::fs::read_to_string(&path).unwrap().contains("echo B"));
}

#[test]
fn a_record_in_pieces_a_huge_line_and_odd_members_are_copied_as_they_are() {
    let sample = Sample::new();
    let mut writer = turns(&sample, &["A"]);
    let long = "ä\"\\".repeat(400_000);
    writer.append(START_MS, &Body::Assistant { model: None, parts: vec![json!({ "text": long })] }).unwrap();
    let parent = writer.parent().unwrap().to_owned();
    let huge = "x".repeat(9 * 1024 * 1024);
    let odd = format!(
        r#" {{"uuid":"odd" ,"odd\ud83d":"\ud83d", "n":1e999,"parentUuid":"{parent}","sessionId":"s1","type":"assistant","daemonPromptId":"P","daemonPromptId":"Q","deep":[{{"sessionId":"s1"}}],"message":{{"role":"model","parts":[{{"text":"{huge}"}}]}},"forkedFrom":{{"sessionId":"s0"}}}}"#
    );
    let bytes = [sample.bytes(), odd.into_bytes(), b"\n".to_vec()].concat();
    sample.write(bytes);
    let target = sample.folder().join("copy");
    fork(&order(sample.path(), ForkPoint::Tip), &target).unwrap();
    let text = std::fs::read_to_string(&target).unwrap();
    let line = text.lines().find(|line| line.contains(r#""uuid":"odd""#)).unwrap();
    for kept in [r#""odd\ud83d":"\ud83d""#, r#""n":1e999"#, r#""deep":[{"sessionId":"s1"}]"#, &huge] {
        assert!(line.contains(kept));
    }
    assert!(line.contains(r#""sessionId":"s2""#) && !line.contains("s0") && !line.contains("daemonPromptId"));
    let copy = branch_of(&target, transcript::WINDOW_BYTES);
    let source = sample.branch();
    let weights = |branch: &[transcript::Record]| {
        let said = branch.iter().filter(|record| record.message.is_some());
        said.map(|record| record.message.as_ref().map(|message| message.calls.len())).collect::<Vec<_>>()
    };
    assert_eq!(weights(&copy), weights(&source));
    let pieces = |bytes: &str| bytes.lines().filter(|line| line.contains(&source[3].uuid)).count();
    assert!(pieces(&text) > 1, "every piece of the long answer is there");
}

#[test]
fn damaged_lines_are_left_behind_and_what_is_saved_of_them_stands_alone() {
    let lines = chain("user assistant user assistant");
    let torn = r#"{"uuid":"torn","parentUuid":"r1","#;
    let text = format!("{}\n\n{}\nnonsense\n{torn}{}\n{}\n", lines[0], lines[1], lines[2], lines[3]);
    let sample = Sample::of(text);
    let (path, copy) = copied(&sample, ForkPoint::Tip).unwrap();
    assert_eq!(uuids(&path), "r0 r1 r2 r3");
    assert_eq!(copy.len(), 5);
}

#[test]
fn a_branch_that_lost_its_beginning_is_copied_as_it_is() {
    let lines = chain("user assistant user assistant");
    let sample = Sample::of_lines(&lines[1..]);
    let (path, _) = copied(&sample, ForkPoint::Tip).unwrap();
    assert_eq!(uuids(&path), "r1 r2 r3");
}

#[test]
fn a_branch_that_comes_back_to_itself_among_what_is_left_out_is_copied_all_the_same() {
    for (first, parent) in [("turn_result", "r0"), ("session_source", "r1")] {
        let mut lines = chain(&format!("{first} turn_result assistant"));
        lines[0] = with(lines[0].clone(), json!({ "parentUuid": parent }));
        let sample = Sample::of_lines(&lines);
        let (path, lines) = copied(&sample, ForkPoint::Tip).unwrap();
        assert_eq!((uuids(&path).as_str(), &lines[0]["parentUuid"]), ("r2", &Value::Null));
    }
}

#[test]
fn there_is_nothing_to_copy_of_a_session_without_a_word_and_two_sessions_are_none() {
    assert!(matches!(copied(&Sample::new(), ForkPoint::Tip), Err(ForkError::NoPoint)));
    assert!(matches!(copied(&Sample::of_lines(&chain("turn_result")), ForkPoint::Tip), Err(ForkError::NoPoint)));
    let mut lines = chain("user assistant");
    lines[0] = with(lines[0].clone(), json!({"sessionId": "other"}));
    let refused = copied(&Sample::of_lines(&lines), ForkPoint::Tip);
    assert!(matches!(refused, Err(ForkError::Unreadable(_))), "{refused:?}");
}

#[test]
fn a_copy_takes_no_others_place() {
    let sample = Sample::of_lines(&chain("user"));
    std::fs::write(sample.folder().join("copy"), "mine").unwrap();
    assert!(matches!(copied(&sample, ForkPoint::Tip), Err(ForkError::Write(_))));
    assert_eq!(std::fs::read_to_string(sample.folder().join("copy")).unwrap(), "mine");
}

/// The sessions that the peer recorded: one, and the branch it made of it.
fn peer(folder: &str, session: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/qwen-serve");
    fixtures.join(folder).join(format!("{session}.jsonl"))
}

#[test]
fn a_copy_is_what_the_peer_makes_of_the_same_session_but_for_the_stamps_of_its_prompts() {
    const SOURCE: &str = "213b8f69-39ad-451f-8db7-e74e00733512";
    const BRANCH: &str = "9091f166-976e-4b4c-8fff-5dfbf97d69d4";
    let text = std::fs::read_to_string(peer("rewind", SOURCE)).unwrap();
    // As it was when it was branched: before its rewind.
    let until = text.lines().position(|line| line.contains(r#""subtype":"rewind""#)).unwrap();
    let sample = Sample::of_lines(&text.lines().take(until).collect::<Vec<_>>());
    let target = sample.folder().join("copy");
    let order = Fork {
        source_session: SOURCE.to_owned(),
        identity: identity(BRANCH),
        title: "my branch(1)".to_owned(),
        ..order(sample.path(), ForkPoint::Tip)
    };
    fork(&order, &target).unwrap();
    let (ours, theirs) = (lines(&target), lines(&peer("branch-at-tip", BRANCH)));
    assert_eq!(ours.len(), theirs.len());
    for (mut ours, mut theirs) in ours.into_iter().zip(theirs) {
        if let Some(stamp) = theirs.as_object_mut().unwrap().remove("daemonPromptId") {
            assert_eq!(ours["forkedFrom"].as_object_mut().unwrap().remove("promptId"), Some(stamp));
        }
        if theirs["subtype"] == "custom_title" {
            for line in [&mut ours, &mut theirs] {
                for own in ["uuid", "timestamp", "version", "provenance"] {
                    line.as_object_mut().unwrap().remove(own);
                }
            }
        }
        assert_eq!(ours, theirs);
    }
}
