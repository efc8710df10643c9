//! Appending only to a ledger that is as it was read.

use std::fs;
use std::sync::Barrier;
use std::thread;

use turnd_ledger::{AppendError, Record};

use crate::scratch::{Scratch, ids};

#[test]
fn a_ledger_that_is_as_it_was_read_takes_the_record() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append_if_unchanged(&[Record::in_flight("A", None, 1)], 0).unwrap();
    let len_bytes = ledger.read().unwrap().len_bytes;
    ledger.append_if_unchanged(&[Record::cancelled("A", 2)], len_bytes).unwrap();
    assert_eq!(ids(&ledger), ["A", "A"]);
}

#[test]
fn any_change_of_length_refuses_the_record_and_writes_nothing() {
    for change in ["{\"v\":1,\"prom", "\n", "{\"v\":1,\"promptId\":\"B\",\"terminal\":\"cancelled\",\"at\":9}\n"] {
        let scratch = Scratch::new();
        let ledger = scratch.ledger();
        ledger.append(&Record::in_flight("A", None, 1)).unwrap();
        let seen = ledger.read().unwrap().len_bytes;
        let changed = fs::read_to_string(ledger.path()).unwrap() + change;
        fs::write(ledger.path(), &changed).unwrap();
        let refused = ledger.append_if_unchanged(&[Record::cancelled("A", 2)], seen);
        let found = changed.len() as u64;
        assert!(
            matches!(refused, Err(AppendError::Changed { expected_bytes, found_bytes }) if (expected_bytes, found_bytes) == (seen, found)),
            "{refused:?}"
        );
        assert_eq!(fs::read_to_string(ledger.path()).unwrap(), changed);
    }
}

#[test]
fn a_ledger_that_was_removed_has_changed_and_is_not_made_again() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let refused = ledger.append_if_unchanged(&[Record::cancelled("A", 2)], 60);
    assert!(matches!(refused, Err(AppendError::Changed { expected_bytes: 60, found_bytes: 0 })), "{refused:?}");
    assert!(!ledger.path().exists());
}

#[test]
fn of_many_verdicts_on_one_reading_exactly_one_is_appended() {
    const JUDGES: usize = 4;
    for _ in 0..50 {
        let scratch = Scratch::new();
        let ledger = scratch.ledger();
        ledger.append(&Record::in_flight("A", None, 1)).unwrap();
        let seen = ledger.read().unwrap().len_bytes;
        let barrier = Barrier::new(JUDGES);
        let appended = thread::scope(|scope| {
            let judge = || {
                barrier.wait();
                ledger.append_if_unchanged(&[Record::interrupted("A", "daemon_lost", 2)], seen).is_ok()
            };
            let judges: Vec<_> = (0..JUDGES).map(|_| scope.spawn(judge)).collect();
            judges.into_iter().map(|judge| judge.join().unwrap()).filter(|appended| *appended).count()
        });
        assert_eq!(appended, 1);
        assert_eq!(ids(&ledger), ["A", "A"]);
    }
}
