//! What is synced before an append that promises it is answered. A sync leaves nothing to be seen, but one that cannot
//! be done does: these tests make the file, its folder, and the folder above it impossible to sync, one at a time.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;

use turnd_ledger::{AppendError, Durability, Ledger, Record};

use crate::child::{self, NOBODY, Part};
use crate::scratch::Scratch;

/// A folder in which its user may make files and whose list he may not open, used by a child without the right to
/// disregard that.
fn check_folder(name: &str) {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o333)).unwrap();
    let mut command = child::playing(Part::FindNotSynced, &scratch.path(name), r#"exec "$0" "$@""#);
    if fs::read_dir(scratch.folder()).is_ok() {
        command.uid(NOBODY);
    }
    let status = command.status().unwrap();
    fs::set_permissions(scratch.folder(), Permissions::from_mode(0o755)).unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn the_folder_that_names_the_file_is_synced() {
    check_folder("s.ledger.jsonl");
}

#[test]
fn the_folder_that_names_a_folder_made_for_the_file_is_synced() {
    check_folder("made/here/s.ledger.jsonl");
}

#[test]
#[cfg(target_os = "linux")]
fn the_file_is_synced() {
    let scratch = Scratch::new();
    // A file of the kernel's that takes any bytes and knows no sync, in a folder that can be synced.
    symlink("/proc/thread-self/comm", scratch.path("s.ledger.jsonl")).unwrap();
    let record = Record::cancelled("A", 1);
    Ledger::new(scratch.path("s.ledger.jsonl"), Durability::Process).append(&record).unwrap();
    let unsynced = Ledger::new(scratch.path("s.ledger.jsonl"), Durability::Fsync).append(&record);
    assert!(matches!(unsynced, Err(AppendError::NotSynced(_))), "{unsynced:?}");
}
