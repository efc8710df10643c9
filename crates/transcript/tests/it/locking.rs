//! The session's lock.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use transcript::{LockError, Owner, SessionLock};

use crate::sample::Sample;

fn owner(pid: u32) -> Owner {
    Owner { pid, started_at: 1_795_977_220_000, start_ticks: Some(42) }
}

fn holder(refused: Result<SessionLock, LockError>) -> Option<Owner> {
    match refused {
        Err(LockError::Held { owner, .. }) => owner,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_comes_second_is_told_who_came_first() {
    let sample = Sample::new();
    let path = sample.folder().join("s1.lock");
    let held = SessionLock::acquire(&path, &owner(7)).unwrap();
    assert_eq!(holder(SessionLock::acquire(&path, &owner(8))), Some(owner(7)));
    drop(held);
    let held = SessionLock::acquire(&path, &owner(8)).unwrap();
    assert_eq!(holder(SessionLock::acquire(&path, &owner(9))), Some(owner(8)));
    drop(held);
}

#[test]
fn a_name_that_was_left_behind_locks_nobody_out() {
    let sample = Sample::new();
    let path = sample.folder().join("s1.lock");
    std::fs::write(&path, "{\"pid\":1,\"startedAt\":2}\nmore of it").unwrap();
    let _held = SessionLock::acquire(&path, &owner(8)).unwrap();
    assert_eq!(holder(SessionLock::acquire(&path, &owner(9))), Some(owner(8)));
}

#[test]
fn the_message_names_the_holder() {
    let sample = Sample::new();
    let path = sample.folder().join("s1.lock");
    let _held = SessionLock::acquire(&path, &owner(7)).unwrap();
    let message = SessionLock::acquire(&path, &owner(8)).unwrap_err().to_string();
    assert!(message.ends_with("s1.lock is held by process 7 (started at 1795977220000)"), "{message}");
}

#[test]
fn a_lock_dies_with_its_holder() {
    let sample = Sample::new();
    let path = sample.folder().join("s1.lock");
    let mut child = hold_elsewhere(&path);
    assert_eq!(holder(SessionLock::acquire(&path, &owner(8))), Some(owner(7)));
    child.kill().unwrap();
    child.wait().unwrap();
    SessionLock::acquire(&path, &owner(8)).unwrap();
}

/// Another process that holds the lock until it is killed.
fn hold_elsewhere(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locking::hold_for_another_test", "--ignored", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{}", path.display()).unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line.contains("the lock is held")));
    child
}

#[test]
#[ignore = "not a test: the other process of a_lock_dies_with_its_holder"]
fn hold_for_another_test() {
    let mut lines = std::io::stdin().lines();
    let Some(Ok(path)) = lines.next() else { return };
    let _held = SessionLock::acquire(Path::new(&path), &owner(7)).unwrap();
    println!("the lock is held");
    // Until the other side goes away.
    while lines.next().is_some() {}
}
