//! Several writers at once, and a writer that is killed.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::thread;

use turnd_ledger::{Durability, Ledger, Record};

use crate::child::{self, Part};
use crate::scratch::Scratch;

const RECORDS: u32 = 400;

/// Every record of every writer is there, whole, and in its writer's order.
fn check_all(ledger: &Ledger, writers: &[String]) {
    check_each(ledger, writers.iter().map(|writer| (writer.as_str(), RECORDS)));
}

fn check_each<'a>(ledger: &Ledger, writers: impl IntoIterator<Item = (&'a str, u32)>) {
    let reading = ledger.read().unwrap();
    assert_eq!(reading.dropped_lines, 0);
    let mut next: HashMap<&str, u32> = HashMap::new();
    for record in &reading.records {
        let (writer, _) = record.prompt_id.rsplit_once('-').unwrap();
        let number = next.entry(writer).or_default();
        assert_eq!(*record, child::numbered(writer, *number));
        *number += 1;
    }
    assert_eq!(next, writers.into_iter().collect());
}

#[test]
fn lines_of_several_threads_never_interleave() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let writers: Vec<String> = (0..6).map(|writer| writer.to_string()).collect();
    thread::scope(|scope| {
        for (index, writer) in writers.iter().enumerate() {
            let ledger = &ledger;
            scope.spawn(move || {
                let mut appender = ledger.appender();
                for number in 0..RECORDS {
                    let record = child::numbered(writer, number);
                    if index % 2 == 0 { ledger.append(&record) } else { appender.append(&record) }.unwrap();
                }
            });
        }
    });
    check_all(&ledger, &writers);
}

#[test]
fn lines_of_several_processes_never_interleave() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let children: Vec<_> =
        (0..5).map(|writer| child::spawn(Part::Append { writer, records: RECORDS }, ledger.path())).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let writers: Vec<String> = (0..5).map(|writer| writer.to_string()).collect();
    check_all(&ledger, &writers);
}

/// Appends as another daemon might, that knows no lock.
fn append_without_lock(path: &Path, record: &Record) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all((record.to_line() + "\n").as_bytes()).unwrap();
}

#[test]
fn a_writer_that_knows_no_lock_loses_nothing_and_costs_nothing() {
    const LOCKED: u32 = 3_000;
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut lockless = 0;
    thread::scope(|scope| {
        let locked = scope.spawn(|| {
            for number in 0..LOCKED {
                ledger.append(&child::numbered("locked", number)).unwrap();
            }
        });
        while !locked.is_finished() {
            append_without_lock(ledger.path(), &child::numbered("lockless", lockless));
            lockless += 1;
        }
    });
    check_each(&ledger, [("locked", LOCKED), ("lockless", lockless)]);
}

/// The look at the last byte and the write are one step: a tail torn by one writer between the two steps of another
/// would swallow the other's record.
#[test]
fn a_writer_that_tears_the_tail_under_the_lock_costs_no_other_writer_a_record() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append(&Record::cancelled("first", 0)).unwrap();
    thread::scope(|scope| {
        let writers: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|writer| {
                let ledger = &ledger;
                scope.spawn(move || {
                    let mut appender = ledger.appender();
                    for number in 0..2_000 {
                        let record = Record::cancelled(format!("{writer}-{number}"), number);
                        if writer == "a" { ledger.append(&record) } else { appender.append(&record) }.unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            let mut file = OpenOptions::new().append(true).open(ledger.path()).unwrap();
            file.lock().unwrap();
            file.write_all(b"{\"v\":1,\"promptId\":\"torn").unwrap();
        }
    });
    let reading = ledger.read().unwrap();
    assert_eq!(reading.records.len(), 1 + 2 * 2_000);
    assert!(reading.dropped_lines > 0);
}

#[test]
fn a_writer_that_was_stopped_under_the_lock_does_not_stop_the_others() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append(&Record::cancelled("before", 1)).unwrap();
    let stopped = OpenOptions::new().append(true).open(ledger.path()).unwrap();
    stopped.lock().unwrap();
    ledger.append(&Record::cancelled("meanwhile", 2)).unwrap();
    assert_eq!(ledger.read().unwrap().records.len(), 2);
}

/// Lets a child append until the ledger has grown by this much, and kills it without warning.
fn append_and_kill(ledger: &Ledger, durability: Durability, growth_bytes: u64) {
    let before_bytes = ledger.len_bytes().unwrap();
    let mut child = child::spawn(Part::AppendLong { durability }, ledger.path());
    while ledger.len_bytes().unwrap() < before_bytes + growth_bytes {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_writer_costs_at_most_the_record_it_was_writing() {
    for durability in [Durability::Process, Durability::Fsync] {
        let scratch = Scratch::new();
        let ledger = Ledger::new(scratch.path("s.ledger.jsonl"), durability);
        for life in 1..=6 {
            append_and_kill(&ledger, durability, 50_000 * life);
            ledger.append(&Record::cancelled(format!("after {life}"), life)).unwrap();
            let reading = ledger.read().unwrap();
            assert!(reading.dropped_lines <= life as usize, "{} lines lost in {life} lives", reading.dropped_lines);
            assert_lives_are_whole(&reading.records, life);
        }
    }
}

/// Each life counts from 0 without a gap, up to the record that follows its end.
fn assert_lives_are_whole(records: &[Record], lives: u64) {
    let mut lives_seen = 0;
    let mut next = 0;
    for record in records {
        if record.prompt_id == format!("after {}", lives_seen + 1) {
            lives_seen += 1;
            next = 0;
        } else {
            assert_eq!(record.prompt_id, next.to_string());
            next += 1;
        }
    }
    assert_eq!(lives_seen, lives);
}

#[test]
fn several_records_are_appended_as_one() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    thread::scope(|scope| {
        for writer in 0..4_u64 {
            let ledger = &ledger;
            scope.spawn(move || {
                let triple = [0, 1, 2].map(|number| Record::cancelled(writer.to_string(), number));
                for _ in 0..200 {
                    ledger.append_all(&triple).unwrap();
                }
            });
        }
    });
    let records = ledger.read().unwrap().records;
    assert_eq!(records.len(), 4 * 200 * 3);
    for triple in records.chunks(3) {
        let times: Vec<f64> = triple.iter().map(|record| record.at_ms).collect();
        assert_eq!(times, [0.0, 1.0, 2.0]);
        assert!(triple.iter().all(|record| record.prompt_id == triple[0].prompt_id));
    }
}
