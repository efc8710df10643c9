//! A ledger that moves with its transcript, and goes with it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use turnd_ledger::sidecar::{file_name, is_ledger, move_merging, move_paced, remove};
use turnd_ledger::{Durability, Ledger, Record};

use crate::scratch::{Scratch, ids};

/// The active and the archived place of one session.
fn places(scratch: &Scratch) -> (Ledger, Ledger) {
    let place = |name| Ledger::new(scratch.path(name), Durability::Process);
    (place("chats/s.ledger.jsonl"), place("chats/archive/s.ledger.jsonl"))
}

fn write(path: &Path, bytes: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn names_are_told_from_transcripts() {
    assert_eq!(file_name("1-2"), "1-2.ledger.jsonl");
    for (path, expected) in [
        ("a/1-2.ledger.jsonl", true),
        (".ledger.jsonl", true),
        ("a/1-2.jsonl", false),
        ("a.ledger.jsonl/b.jsonl", false),
        ("a/1-2.ledger.jsonl.bak", false),
        ("a/1-2ledger.jsonl", false),
        ("/", false),
    ] {
        assert_eq!(is_ledger(Path::new(path)), expected, "{path}");
    }
}

#[test]
fn a_ledger_moves_to_a_folder_that_is_made_for_it() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    active.append(&Record::in_flight("A", None, 1)).unwrap();
    let before = fs::read(active.path()).unwrap();
    move_merging(active.path(), archived.path()).unwrap();
    assert!(!active.path().exists());
    assert_eq!(fs::read(archived.path()).unwrap(), before);
    move_merging(archived.path(), active.path()).unwrap();
    assert!(!archived.path().exists());
    assert_eq!(fs::read(active.path()).unwrap(), before);
}

#[test]
fn nothing_to_move_is_done_already_and_makes_nothing() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    move_merging(active.path(), archived.path()).unwrap();
    assert!(!scratch.path("chats").exists());
    write(archived.path(), "{}\n");
    move_merging(active.path(), archived.path()).unwrap();
    assert_eq!(fs::read(archived.path()).unwrap(), b"{}\n");
}

#[test]
fn a_target_that_exists_takes_the_bytes_behind_its_own() {
    for (source, target, merged) in [
        ("b1\nb2\n", "a1\n", "a1\nb1\nb2\n"),
        ("b1\n", "a1\na", "a1\na\nb1\n"),
        ("b1\nb", "a1\n", "a1\nb1\nb"),
        ("b1\n", "", "b1\n"),
        ("", "a1\na", "a1\na"),
        ("\n", "a1", "a1\n\n"),
    ] {
        let scratch = Scratch::new();
        let (active, archived) = places(&scratch);
        write(active.path(), source);
        write(archived.path(), target);
        move_merging(active.path(), archived.path()).unwrap();
        assert_eq!(fs::read_to_string(archived.path()).unwrap(), merged, "{source:?} to {target:?}");
        assert!(!active.path().exists(), "{source:?} to {target:?}");
    }
}

#[test]
fn a_move_that_was_cut_off_between_its_two_steps_is_finished_by_the_next_one() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    write(active.path(), "a1\n");
    write(archived.path(), "");
    fs::remove_file(archived.path()).unwrap();
    fs::hard_link(active.path(), archived.path()).unwrap();
    move_merging(active.path(), archived.path()).unwrap();
    assert!(!active.path().exists());
    assert_eq!(fs::read(archived.path()).unwrap(), b"a1\n");
}

#[test]
fn a_merge_that_was_cut_off_at_any_byte_is_finished_and_doubles_no_record() {
    let (source, target) = ("b1\nb2\nb", "a1\na2\n");
    for cut in 0..=source.len() {
        let scratch = Scratch::new();
        let (active, archived) = places(&scratch);
        write(active.path(), source);
        write(archived.path(), &format!("{target}{}", &source[..cut]));
        move_merging(active.path(), archived.path()).unwrap();
        assert_eq!(fs::read_to_string(archived.path()).unwrap(), format!("{target}{source}"), "cut at {cut}");
        assert!(!active.path().exists());
    }
}

#[test]
fn a_merge_that_was_cut_off_at_any_byte_is_finished_also_by_a_move_the_other_way() {
    let (source, target) = ("b1\nb2\n", "a1\na2\n");
    for cut in 1..=source.len() {
        let scratch = Scratch::new();
        let (active, archived) = places(&scratch);
        write(active.path(), source);
        write(archived.path(), &format!("{target}{}", &source[..cut]));
        move_merging(archived.path(), active.path()).unwrap();
        assert_eq!(fs::read_to_string(active.path()).unwrap(), format!("{target}{source}"), "cut at {cut}");
        assert!(!archived.path().exists());
    }
}

/// Stops a move before each of its changes to the disk, and moves again, the same way and the other one.
#[test]
fn a_move_that_is_stopped_before_any_of_its_steps_is_healed_by_the_next_one() {
    for target in ["", "a1\n", "a1\na"] {
        for (stop, again_back) in (0..8_u32).flat_map(|stop| [(stop, false), (stop, true)]) {
            let scratch = Scratch::new();
            let (active, archived) = places(&scratch);
            write(active.path(), "b1\nb2\n");
            if !target.is_empty() {
                write(archived.path(), target);
            }
            let left = std::cell::Cell::new(stop);
            let pace = || {
                let fewer = left.get().checked_sub(1).ok_or_else(|| std::io::Error::other("stopped"))?;
                left.set(fewer);
                Ok(())
            };
            let _ = move_paced(active.path(), archived.path(), &pace);
            let (from, to) = if again_back { (&archived, &active) } else { (&active, &archived) };
            move_merging(from.path(), to.path()).unwrap();
            let mut lines: Vec<String> = fs::read_to_string(to.path()).unwrap().lines().map(str::to_owned).collect();
            lines.sort_unstable();
            let mut expected: Vec<&str> = target.lines().chain(["b1", "b2"]).collect();
            expected.sort_unstable();
            assert_eq!(lines, expected, "{target:?}, stopped before step {stop}, back: {again_back}");
            assert!(!from.path().exists());
        }
    }
}

#[test]
fn a_ledger_moved_onto_itself_stays() {
    let scratch = Scratch::new();
    let (active, _) = places(&scratch);
    write(active.path(), "a1\n");
    move_merging(active.path(), active.path()).unwrap();
    move_merging(active.path(), &scratch.path("chats/../chats/s.ledger.jsonl")).unwrap();
    assert_eq!(fs::read(active.path()).unwrap(), b"a1\n");
}

#[test]
fn a_move_that_fails_leaves_the_source_and_names_both_full_paths() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    write(active.path(), "a1\n");
    fs::create_dir_all(archived.path()).unwrap();
    let error = move_merging(active.path(), archived.path()).unwrap_err();
    assert_eq!((&error.from, &error.to), (&active.path().to_owned(), &archived.path().to_owned()));
    let message = error.to_string();
    assert!(message.contains(active.path().to_str().unwrap()), "{message}");
    assert!(message.contains(archived.path().to_str().unwrap()), "{message}");
    assert!(error.source().is_some());
    assert_eq!(fs::read(active.path()).unwrap(), b"a1\n");
}

#[test]
fn the_paths_of_an_error_are_full_where_those_of_the_call_were_not() {
    let error = move_merging(Path::new("Cargo.toml/none"), Path::new("elsewhere")).unwrap_err();
    assert!(error.from.is_absolute() && error.to.is_absolute());
    assert!(error.from.ends_with("Cargo.toml/none"));
}

#[test]
fn a_folder_in_the_sources_place_stays_and_makes_no_target() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    fs::create_dir_all(active.path()).unwrap();
    assert!(move_merging(active.path(), archived.path()).is_err());
    assert!(active.path().is_dir() && !archived.path().exists());
}

#[test]
fn both_states_are_removed_and_missing_ones_are_removed_already() {
    for (has_active, has_archived) in [(true, true), (true, false), (false, true), (false, false)] {
        let scratch = Scratch::new();
        let (active, archived) = places(&scratch);
        for (ledger, exists) in [(&active, has_active), (&archived, has_archived)] {
            if exists {
                write(ledger.path(), "a1\n");
            }
        }
        remove(active.path(), archived.path()).unwrap();
        assert!(!active.path().exists() && !archived.path().exists());
    }
}

#[test]
fn one_state_that_cannot_be_removed_does_not_keep_the_other() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    fs::create_dir_all(active.path()).unwrap();
    write(archived.path(), "a1\n");
    let error = remove(active.path(), archived.path()).unwrap_err();
    assert_eq!(error.path, active.path());
    assert!(error.to_string().contains(active.path().to_str().unwrap()));
    assert!(!archived.path().exists() && error.also.is_none());
}

#[test]
fn two_states_that_cannot_be_removed_are_both_named() {
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    fs::create_dir_all(active.path()).unwrap();
    fs::create_dir_all(archived.path()).unwrap();
    let message = remove(active.path(), archived.path()).unwrap_err().to_string();
    for ledger in [&active, &archived] {
        assert!(message.contains(ledger.path().to_str().unwrap()), "{message}");
    }
}

/// Moves back and forth with merges, while others append to the active place: every record ends up in one of the two.
#[test]
fn records_appended_during_moves_are_kept() {
    const RECORDS: u64 = 1_500;
    let scratch = Scratch::new();
    let (active, archived) = places(&scratch);
    thread::scope(|scope| {
        let writers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|writer| {
                let active = &active;
                scope.spawn(move || {
                    for number in 0..RECORDS {
                        active.append(&Record::cancelled(format!("{writer}{number}"), number)).unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            move_merging(active.path(), archived.path()).unwrap();
        }
    });
    move_merging(active.path(), archived.path()).unwrap();
    let mut found = ids(&archived);
    found.sort_unstable();
    let mut expected: Vec<String> =
        (0..RECORDS).flat_map(|number| [format!("a{number}"), format!("b{number}")]).collect();
    expected.sort_unstable();
    assert_eq!(archived.read().unwrap().dropped_lines, 0);
    assert_eq!(found, expected);
}

#[test]
fn two_moves_of_one_ledger_at_once_copy_it_once() {
    for _ in 0..100 {
        let scratch = Scratch::new();
        let (active, archived) = places(&scratch);
        write(active.path(), "b1\n");
        write(archived.path(), "a1\n");
        let paths: (PathBuf, PathBuf) = (active.path().to_owned(), archived.path().to_owned());
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| move_merging(&paths.0, &paths.1).unwrap());
            }
        });
        assert_eq!(fs::read(archived.path()).unwrap(), b"a1\nb1\n");
    }
}
