//! A name that a list finds, however long the conversation is.

use serde_json::json;
use transcript::{Body, Durability, HEADLINE_BYTES_MAX, Headline, Identity, Rewind, Writer};

fn writer(path: &std::path::Path) -> Writer {
    let identity = Identity { session_id: "s1".into(), cwd: "/ws".into(), version: "0".into() };
    Writer::open(path, identity, Durability::Process).unwrap().keeping_title().unwrap()
}

fn name(text: &str) -> Body {
    let payload = json!({ "customTitle": text, "titleSource": "manual" });
    Body::System { subtype: "custom_title".into(), payload }
}

fn said(bytes: usize) -> Body {
    Body::User { prompt_id: None, parts: vec![json!({ "text": "\"".repeat(bytes / 2) })] }
}

fn names(path: &std::path::Path) -> usize {
    std::fs::read_to_string(path).unwrap().matches("custom_title").count()
}

fn is_named(path: &std::path::Path, text: &str) {
    let headline = Headline::read(path).unwrap();
    assert_eq!((headline.title.as_deref(), headline.title_source.as_deref()), (Some(text), Some("manual")));
}

#[test]
fn a_name_is_within_reach_behind_every_record_whatever_its_size_and_repeated_once_for_each_window() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [10, 3_000, 50_000, 61_000, 65_000, 200_000] {
        let path = folder.path().join(format!("{bytes}.jsonl"));
        let mut writer = writer(&path);
        writer.append(1, &said(70_000)).unwrap();
        writer.append(1, &name("mine")).unwrap();
        let rounds = (500_000 / bytes).clamp(4, 600);
        for _ in 0..rounds {
            writer.append_all(&[(2, said(bytes)), (2, said(10))]).unwrap();
            is_named(&path, "mine");
        }
        let windows = std::fs::metadata(&path).unwrap().len() / (HEADLINE_BYTES_MAX - 8 * 1024);
        assert!(names(&path) as u64 <= windows + 2, "{bytes}: {} in {windows}", names(&path));
    }
}

#[test]
fn a_name_in_the_beginning_is_never_repeated_and_a_newer_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let mut writer = writer(&path);
    writer.append(1, &name("first")).unwrap();
    for _ in 0..4 {
        writer.append(2, &said(60_000)).unwrap();
        is_named(&path, "first");
    }
    assert_eq!(names(&path), 1);
    writer.append(3, &name("second")).unwrap();
    writer.append(4, &said(100_000)).unwrap();
    is_named(&path, "second");
    assert_eq!(names(&path), 3);
}

#[test]
fn the_next_writer_finds_a_name_that_was_pushed_out_of_sight_and_one_that_was_not_costs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let identity = Identity { session_id: "s1".into(), cwd: "/ws".into(), version: "0".into() };
    let mut careless = Writer::open(&path, identity, Durability::Process).unwrap();
    for body in [said(70_000), name("mine"), said(90_000)] {
        careless.append(1, &body).unwrap();
    }
    assert_eq!(Headline::read(&path).unwrap().title, None);
    writer(&path).repeat_title(2).unwrap();
    is_named(&path, "mine");
    for _ in 0..3 {
        let mut next = writer(&path);
        assert_eq!(next.title().unwrap()["customTitle"], "mine");
        next.append(3, &said(10)).unwrap();
        next.repeat_title(3).unwrap();
    }
    assert_eq!(names(&path), 2);
}

#[test]
fn a_name_that_does_not_say_who_gave_it_is_repeated_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let payload = json!({ "customTitle": "mine" });
    let mut writer = writer(&path);
    writer.append(1, &said(70_000)).unwrap();
    writer.append(1, &Body::System { subtype: "custom_title".into(), payload: payload.clone() }).unwrap();
    drop(writer);
    let mut next = self::writer(&path);
    assert_eq!(next.title(), Some(&payload));
    next.append(1, &said(70_000)).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["subtype"], &last["systemPayload"]), (&json!("custom_title"), &payload));
}

#[test]
fn a_rewind_and_a_torn_line_leave_a_name_within_reach() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s1.jsonl");
    let mut writer = writer(&path);
    writer.append(1, &said(70_000)).unwrap();
    writer.append(1, &name("mine")).unwrap();
    let before = writer.parent().map(str::to_owned);
    for _ in 0..400 {
        let leaf = writer.parent().map(str::to_owned);
        writer.rewind(2, &Rewind { leaf, before: before.clone(), truncated_count: 1 }).unwrap();
        is_named(&path, "mine");
    }
    let torn = std::fs::read_to_string(&path).unwrap() + "{\"torn";
    std::fs::write(&path, torn).unwrap();
    writer.append(3, &said(61_000)).unwrap();
    is_named(&path, "mine");
}
