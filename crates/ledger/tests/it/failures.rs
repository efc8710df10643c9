//! What cannot be read or appended to, and what is said then.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use turnd_ledger::{AppendError, Durability, Ledger, ReadError, Record};

use crate::child::{self, NOBODY, Part};
use crate::scratch::{Scratch, ids};

fn record() -> Record {
    Record::cancelled("A", 1)
}

#[test]
fn a_folder_in_the_ledgers_place_is_named_as_such() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    fs::create_dir(ledger.path()).unwrap();
    assert!(matches!(ledger.append(&record()), Err(AppendError::IsADirectory)));
    assert!(matches!(ledger.read(), Err(ReadError::IsADirectory)));
    assert!(matches!(ledger.read_tail(10), Err(ReadError::IsADirectory)));
    assert!(matches!(ledger.len_bytes(), Err(ReadError::IsADirectory)));
    assert_eq!(ledger.read().unwrap_err().to_string(), "a folder is in the ledger's place");
}

#[test]
fn a_file_in_the_folders_place_is_an_error_and_not_an_empty_ledger() {
    let scratch = Scratch::new();
    fs::write(scratch.path("file"), "").unwrap();
    let ledger = Ledger::new(scratch.path("file/s.ledger.jsonl"), Durability::Process);
    assert!(matches!(ledger.read(), Err(ReadError::Io(_))));
    assert!(matches!(ledger.append(&record()), Err(AppendError::Io(_))));
}

#[test]
fn what_is_no_file_is_neither_read_nor_waited_for() {
    let device = Ledger::new("/dev/null", Durability::Process);
    assert!(matches!(device.append(&record()), Err(AppendError::NotAFile)));
    assert!(matches!(device.read(), Err(ReadError::NotAFile)));

    let scratch = Scratch::new();
    let pipe = scratch.ledger();
    assert!(Command::new("mkfifo").arg(pipe.path()).status().unwrap().success());
    assert!(matches!(pipe.read(), Err(ReadError::NotAFile)));
    assert!(matches!(pipe.len_bytes(), Err(ReadError::NotAFile)));

    let socket = Ledger::new(scratch.path("socket"), Durability::Process);
    let _listener = UnixListener::bind(socket.path()).unwrap();
    assert!(matches!(socket.read(), Err(ReadError::NotAFile)));
    assert!(matches!(socket.append(&record()), Err(AppendError::Io(_))));
}

#[test]
fn a_link_that_leads_nowhere_is_an_error_and_ends() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    std::os::unix::fs::symlink(scratch.path("no/where"), ledger.path()).unwrap();
    assert!(matches!(ledger.append(&record()), Err(AppendError::Io(_))));
}

/// A folder without the right to write, used by a child without the right to disregard that.
fn check_read_only(name: &str) {
    let scratch = Scratch::new();
    fs::write(scratch.path("s.ledger.jsonl"), "").unwrap();
    fs::set_permissions(scratch.path("s.ledger.jsonl"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o555)).unwrap();
    let mut command = child::playing(Part::FindReadOnly, &scratch.path(name), r#"exec "$0" "$@""#);
    if fs::write(scratch.path("probe"), "").is_ok() {
        command.uid(NOBODY);
    }
    let status = command.status().unwrap();
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o755)).unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_read_only_folder_is_named_as_such() {
    check_read_only("new.ledger.jsonl");
    check_read_only("deeper/new.ledger.jsonl");
}

#[test]
fn a_read_only_file_is_named_as_such() {
    check_read_only("s.ledger.jsonl");
}

#[test]
fn a_ledger_that_may_not_grow_says_so_and_the_next_append_seals_what_was_cut() {
    // First lines of several lengths, so that the limit cuts the last one in several places.
    let mut cut = 0;
    for length in 0..6 {
        let scratch = Scratch::new();
        let ledger = scratch.ledger();
        ledger.append(&Record::cancelled("A".repeat(7 * length), 1)).unwrap();
        child::run(Part::FillUp, ledger.path(), r#"trap '' XFSZ; ulimit -f 1; exec "$0" "$@""#);
        let before = ledger.read().unwrap();
        assert!(before.records.len() > 3 && before.dropped_lines <= 1, "{before:?}");
        cut += before.dropped_lines;

        ledger.append(&Record::cancelled("room again", 2)).unwrap();
        let after = ledger.read().unwrap();
        assert_eq!(after.records.len(), before.records.len() + 1);
        assert_eq!(after.dropped_lines, before.dropped_lines);
        assert_eq!(ids(&ledger).last().unwrap(), "room again");
        assert!(!ids(&ledger).contains(&"never".to_owned()));
    }
    assert!(cut > 0, "no write was short");
}

#[test]
fn a_time_that_is_not_finite_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    for at_ms in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = ledger.append_all(&[record(), Record { at_ms, ..record() }]);
        assert!(matches!(refused, Err(AppendError::TimeNotFinite)));
    }
    assert!(!ledger.path().exists());
}

#[test]
fn no_records_are_no_io() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append_all(&[]).unwrap();
    ledger.append_if_unchanged(&[], 99).unwrap();
    assert!(!ledger.path().exists());
}

#[test]
fn an_appender_stays_usable_after_an_error() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    fs::create_dir(ledger.path()).unwrap();
    assert!(matches!(appender.append(&record()), Err(AppendError::IsADirectory)));
    fs::remove_dir(ledger.path()).unwrap();
    appender.append(&record()).unwrap();
    assert!(appender.append(&Record { at_ms: f64::NAN, ..record() }).is_err());
    appender.append(&record()).unwrap();
    assert_eq!(ids(&ledger), ["A", "A"]);
}
