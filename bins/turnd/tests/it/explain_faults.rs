//! `turnd explain` when it appends, and when files, links or readers are not what they should be.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::commands::stdout;
use crate::explain_folder::{Store, admitted, explain, objects, session};

/// A session in which one prompt has a turn result of its own and another has nothing.
fn half_known(store: &Store) {
    let chats = store.chats();
    let ledger = ["a", "b", "c"].map(|id| admitted(id, 0));
    session(&chats, "half", "/ws", &ledger, &["user"]);
    let result = r#"{"uuid":"r1","parentUuid":"r0","sessionId":"half","type":"system","subtype":"turn_result","cwd":"/ws","timestamp":"2026-11-29T18:33:45.000Z","systemPayload":{"promptId":"a","state":"completed","stopReason":"end_turn","startedAt":1795977221000,"endedAt":1795977225000}}"#;
    let path = chats.join("half.jsonl");
    let transcript = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{transcript}{result}\n")).unwrap();
}

#[test]
fn one_sure_ending_is_appended_where_others_stay_unknown_and_nobody_ever_took_the_lock() {
    let store = Store::new();
    half_known(&store);
    let ledger = store.chats().join("half.ledger.jsonl");
    let (told, code) = store.told(&["--apply"]);
    assert!(told.contains("session half: 3 open prompts, 1 resolved, 2 unknown\n"), "{told}");
    assert!(told.contains("\n  written     to the ledger: completed (end_turn), at 20"), "{told}");
    assert_eq!(code, Some(3));
    let appended = fs::read_to_string(&ledger).unwrap();
    let line: Value = serde_json::from_str(appended.lines().nth(3).unwrap()).unwrap();
    assert_eq!((&line["promptId"], &line["terminal"]), (&"a".into(), &"completed".into()));
    store.told(&["--apply"]);
    assert_eq!(fs::read_to_string(&ledger).unwrap(), appended);
}

#[test]
fn what_was_appended_is_told_as_written_and_not_as_something_to_come() {
    let store = Store::new();
    let told = stdout(&explain(&store.chats().join("archive/old.jsonl"), &["--apply"]));
    assert!(told.starts_with("session old: 1 open prompt, resolved\n"), "{told}");
    let written = "\n  written     to the ledger: completed (reconstructed_from_transcript), at 20";
    assert!(told.contains(written) && !told.contains("next load"), "{told}");
}

#[test]
fn a_transcript_that_is_there_and_cannot_be_read_is_a_failure() {
    let store = Store::new();
    session(&store.chats(), "bad", "/ws", &[admitted("p", 0)], &[]);
    let transcript = store.chats().join("bad.jsonl");
    fs::create_dir(&transcript).unwrap();
    let ledger = store.chats().join("bad.ledger.jsonl");
    for flags in [&[][..], &["--json"]] {
        let output = explain(&ledger, flags);
        assert_eq!(output.status.code(), Some(1));
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains("bad.jsonl: the transcript cannot be read: "), "{words}");
    }
    let told = &objects(&explain(&ledger, &["--json"]))[0];
    assert_eq!(told["verdict"]["withheld"], "no_transcript");
    let json = stdout(&explain(&ledger, &["--json"]));
    assert!(json.contains(",\"error\":\"the transcript cannot be read: ") && json.ends_with("\"}\n"), "{json}");
    let (told, code) = store.told(&[]);
    assert!(told.ends_with("\n5 sessions: 2 nothing open, 1 resolvable, 1 unknown, 1 failed\n"), "{told}");
    assert_eq!(code, Some(1));
}

#[test]
fn a_folder_in_a_ledgers_place_is_a_failure_and_no_folder_of_sessions() {
    let store = Store::new();
    let ledger = store.chats().join("bad.ledger.jsonl");
    fs::create_dir(&ledger).unwrap();
    let output = explain(&ledger, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).starts_with("session bad: the ledger cannot be read\n"), "{}", stdout(&output));
}

#[test]
fn a_transcript_without_a_ledger_has_nothing_open() {
    let store = Store::new();
    fs::remove_file(store.chats().join("two.ledger.jsonl")).unwrap();
    let output = explain(&store.chats().join("two.jsonl"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn links_out_of_the_folder_are_not_followed_but_counted() {
    let (store, elsewhere) = (Store::new(), Store::new());
    symlink(elsewhere.path(), store.path().join("out")).unwrap();
    symlink(elsewhere.chats().join("two.ledger.jsonl"), store.path().join("x.ledger.jsonl")).unwrap();
    let (told, _) = store.told(&[]);
    assert!(told.ends_with("\n4 sessions: 2 nothing open, 1 resolvable, 1 unknown, 2 links left out\n"), "{told}");
    let json = store.explain(&["--json"]);
    assert_eq!(objects(&json).len(), 4);
    assert!(String::from_utf8_lossy(&json.stderr).contains("2 links left out"));
    let link = elsewhere.path().join("whole");
    symlink(store.chats(), &link).unwrap();
    let told = stdout(&explain(&link, &[]));
    assert!(told.ends_with("\n4 sessions: 2 nothing open, 1 resolvable, 1 unknown\n"), "{told}");
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let store = Store::new();
    for target in [store.path().to_owned(), store.chats().join("two.jsonl")] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_turnd"))
            .arg("explain")
            .arg(&target)
            .stdout(Stdio::from(writer))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(141));
    }
}

#[test]
fn a_failure_that_nobody_reads_is_still_a_failure_and_no_panic() {
    let store = Store::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    fs::create_dir(store.chats().join("old.lock")).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_turnd"))
        .arg("explain")
        .arg(store.path())
        .stdout(Stdio::null())
        .stderr(Stdio::from(writer))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}
