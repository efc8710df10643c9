//! The file, its folder, and who may read them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use turnd_ledger::{Durability, Ledger, Record};

use crate::child::{self, Part};
use crate::scratch::{Scratch, ids};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_new_ledger_is_for_its_owner_alone_whatever_the_mask() {
    for mask in ["0", "022", "077", "0177", "0777"] {
        let scratch = Scratch::new();
        let path = scratch.path("s.ledger.jsonl");
        let one = Part::Append { writer: 0, records: 1 };
        child::run(one, &path, &format!(r#"umask {mask}; exec "$0" "$@""#));
        assert_eq!(mode(&path), 0o600, "mask {mask}");
        assert_eq!(ids(&Ledger::new(path, Durability::Process)), ["0-0"]);
    }
}

#[test]
fn a_folder_that_is_made_for_a_ledger_is_for_its_owner_alone() {
    let scratch = Scratch::new();
    let path = scratch.path("projects/-ws/chats/s.ledger.jsonl");
    let one = Part::Append { writer: 0, records: 1 };
    child::run(one, &path, r#"umask 0; exec "$0" "$@""#);
    for folder in ["projects", "projects/-ws", "projects/-ws/chats"] {
        assert_eq!(mode(&scratch.path(folder)), 0o700, "{folder}");
    }
}

#[test]
fn the_mode_of_a_ledger_that_exists_is_left_alone() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger_of(b"");
    fs::set_permissions(ledger.path(), Permissions::from_mode(0o640)).unwrap();
    ledger.append(&Record::cancelled("A", 1)).unwrap();
    assert_eq!(mode(ledger.path()), 0o640);
}

#[test]
fn both_promises_write_the_same_bytes_and_make_what_is_missing() {
    let records = [Record::in_flight("A", Some("u"), 1), Record::cancelled("A", 2)];
    let written = [Durability::Process, Durability::Fsync].map(|durability| {
        let scratch = Scratch::new();
        let ledger = Ledger::new(scratch.path("made/here/s.ledger.jsonl"), durability);
        ledger.append(&records[0]).unwrap();
        ledger.appender().append(&records[1]).unwrap();
        fs::read(ledger.path()).unwrap()
    });
    assert_eq!(written[0], written[1]);
    assert_eq!(written[0], format!("{}\n{}\n", records[0].to_line(), records[1].to_line()).into_bytes());
}

#[test]
fn an_appender_whose_file_was_removed_makes_a_new_one() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    appender.append(&Record::cancelled("gone", 1)).unwrap();
    fs::remove_file(ledger.path()).unwrap();
    appender.append(&Record::cancelled("kept", 2)).unwrap();
    appender.append(&Record::cancelled("kept too", 3)).unwrap();
    assert_eq!(ids(&ledger), ["kept", "kept too"]);
    assert_eq!(mode(ledger.path()), 0o600);
}

#[test]
fn an_appender_follows_its_file_through_a_rename() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    appender.append(&Record::cancelled("here", 1)).unwrap();
    let moved = Ledger::new(scratch.path("moved.ledger.jsonl"), Durability::Process);
    fs::rename(ledger.path(), moved.path()).unwrap();
    appender.append(&Record::cancelled("there", 2)).unwrap();
    assert_eq!(ids(&moved), ["here", "there"]);
    assert!(!ledger.path().exists());
}
