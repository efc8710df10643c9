//! `turnd explain` on sessions that another process has: nothing of them is settled.

use std::fs;
use std::process::{Command, Stdio};

use transcript::{Owner, SessionLock};

use crate::commands::stdout;
use crate::explain_folder::{Store, admitted, content, explain, objects, session};
use crate::world::{World, chats};

/// Holds the lock of a session as its host would.
fn hold(store: &Store, session: &str) -> SessionLock {
    let owner = Owner { pid: 4_242, started_at: 1_795_977_220_000, start_ticks: None };
    SessionLock::acquire(&store.chats().join(format!("{session}.lock")), &owner).unwrap()
}

const LIVE: &str = "\
live: process 4242 (started 2026-11-29T18:33:40.000Z) has this session, and nothing of it is settled
while that runs

session old: 1 open prompt, not settled
  ledger      1 record
  transcript  2 records on the active branch (the conversation as it stands)
              asked last: record r0, by the user at 2026-11-29T18:33:41.000Z, stamped with no prompt
              said last: record r1, by the agent at 2026-11-29T18:33:42.000Z
              ends with: an answer, and nothing is left open

prompt p: open; if everything died now, a load would say completed (reconstructed_from_transcript)
  admitted    2026-11-29T18:33:40.000Z, nothing queued in front of it
              without a marker, so that only times tell what came after it
  because     inferred, with no check against it: the conversation ends with an answer, and nothing
              is left open
  next        nothing, while the session runs: it may yet end otherwise
";

#[test]
fn of_a_session_that_another_process_has_nothing_is_settled() {
    let store = Store::new();
    let ledger = store.chats().join("archive/old.ledger.jsonl");
    let held = hold(&store, "old");
    let before = content(store.path());
    let told = explain(&ledger, &[]);
    assert_eq!((stdout(&told).as_str(), told.status.code()), (LIVE, Some(3)));
    let json = explain(&ledger, &["--json"]);
    assert!(stdout(&json).ends_with(",\"live\":true}\n"), "{}", stdout(&json));
    assert_eq!(json.status.code(), Some(3));
    assert_eq!(content(store.path()), before, "the lock is only looked at");

    drop(held);
    let died = explain(&ledger, &["--json"]);
    assert!(!stdout(&died).contains("\"live\""), "{}", stdout(&died));
    assert_eq!(died.status.code(), Some(0));
}

#[test]
fn a_name_that_was_left_in_a_lock_makes_no_session_live() {
    let store = Store::new();
    let lock = store.chats().join("old.lock");
    fs::write(&lock, "{\"pid\":1,\"startedAt\":2}\n").unwrap();
    let told = explain(&store.chats().join("archive/old.jsonl"), &[]);
    assert!(stdout(&told).starts_with("session old: 1 open prompt, resolvable\n"), "{}", stdout(&told));
    assert_eq!(told.status.code(), Some(0));
}

#[test]
fn a_prompt_that_no_check_settles_is_worth_waiting_for_while_its_session_is_live() {
    let store = Store::new();
    let _held = hold(&store, "two");
    let told = stdout(&explain(&store.chats().join("two.jsonl"), &[]));
    assert!(told.contains("\nsession two: 2 open prompts, not settled\n"), "{told}");
    assert!(told.contains("\nprompt p: open; if everything died now, a load would say unknown\n"), "{told}");
    assert!(told.contains("  meanwhile   wait: it may yet end"), "{told}");
}

#[test]
fn a_folder_counts_the_sessions_that_another_process_has() {
    let store = Store::new();
    let _held = [hold(&store, "old"), hold(&store, "done")];
    let (told, code) = store.told(&[]);
    assert!(told.contains(&format!("archive/old.ledger.jsonl (archived)\n{LIVE}")), "{told}");
    assert!(told.ends_with("\n4 sessions: 1 nothing open, 0 resolvable, 1 unknown, 2 live\n"), "{told}");
    assert_eq!(code, Some(3));
    let live: Vec<_> = objects(&store.explain(&["--json"])).iter().map(|told| told["live"] == true).collect();
    assert_eq!(live, [true, false, false, true]);
}

#[test]
fn nothing_is_pronounced_on_a_session_whose_lock_cannot_be_looked_at() {
    let store = Store::new();
    fs::create_dir(store.chats().join("old.lock")).unwrap();
    let told = explain(&store.chats().join("archive/old.jsonl"), &[]);
    assert_eq!((stdout(&told).as_str(), told.status.code()), ("", Some(1)));
    assert!(String::from_utf8_lossy(&told.stderr).contains("old.lock: "));
    let (told, code) = store.told(&[]);
    assert!(told.ends_with("\n4 sessions: 2 nothing open, 0 resolvable, 1 unknown, 1 failed\n"), "{told}");
    assert_eq!(code, Some(1));
}

/// The host has the lock also when its daemon is gone.
#[test]
fn a_turn_that_its_host_still_runs_is_live_with_and_without_a_daemon() {
    let mut world = World::new();
    let live = world.session();
    let running = world.prompt(&live, "slow 60000");
    world.until_chunk(&live, &running);
    let chats = chats(&world);
    session(&chats, "dead", world.base().join("workspace").to_str().unwrap(), &[admitted("p", 0)], &["user"]);
    let family = world.family();
    for is_daemon_new in [false, true] {
        if is_daemon_new {
            world.kill_daemon();
        }
        let told = explain(&chats.join(format!("{live}.ledger.jsonl")), &[]);
        assert!(stdout(&told).starts_with("live: process "), "{}", stdout(&told));
        assert_eq!(told.status.code(), Some(3));
        let folder = stdout(&explain(&chats, &[]));
        assert!(folder.ends_with("\n2 sessions: 0 nothing open, 1 resolvable, 0 unknown, 1 live\n"), "{folder}");
    }
    let pids: Vec<String> = family.iter().map(ToString::to_string).collect();
    let kill = format!("kill -KILL {}", pids.join(" "));
    // The daemon among them is dead already.
    Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap();
    world.until_dead(&family);
    let told = explain(&chats.join(format!("{live}.ledger.jsonl")), &[]);
    assert!(stdout(&told).contains(": 1 open prompt, resolvable\n"), "{}", stdout(&told));
    assert_eq!(told.status.code(), Some(0));
}
