//! Whatever lies in a ledger's place: what is read of it, and that nothing is lost by what is done to it.
#![no_main]

use std::collections::HashMap;

use ledger::{
    AppendError, Durability, Fact, Ledger, Reading, Record, Terminal, Wish, dangling, recent_terminals, sidecar,
};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use turnd_fuzz::{mutate, path, read, split, write};

fuzz_target!(|input: &[u8]| {
    let (bytes, archived) = split(input);
    let ledger = Ledger::new(path("s.ledger.jsonl"), Durability::Process);
    write(ledger.path(), bytes);
    let reading = ledger.read().expect("a regular file is read");
    check_lines(bytes, &reading);
    check_tails(bytes, &ledger, &reading);
    check_dangling(&reading.records);
    check_appending(bytes, &ledger, &reading);
    write(ledger.path(), bytes);
    check_moving(archived, &ledger, &reading);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

/// Every line is a record, a wish, blank or dropped; a record and a wish are what a strict reader finds in the line, and they survive being
/// written again.
fn check_lines(bytes: &[u8], reading: &Reading) {
    assert_eq!(reading.len_bytes, bytes.len() as u64);
    let (mut records, mut wishes) = (reading.records.iter(), reading.wishes.iter());
    let (mut passed, mut dropped) = (0, 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        let (parsed, wished) = (Record::parse(line), Wish::parse(line));
        if let Some(record) = &parsed {
            assert_eq!(records.next(), Some(record), "records stand in the order of the file");
            assert_eq!(Record::parse(record.to_line().as_bytes()).as_ref(), Some(record));
            passed += 1;
        } else if let Some(wish) = &wished {
            assert_eq!(wishes.next(), Some(&(passed, wish.clone())), "wishes stand in their places");
            assert_eq!(Wish::parse(wish.to_line().as_bytes()).as_ref(), Some(wish));
        } else if !line.iter().all(|byte| b" \t\r".contains(byte)) {
            dropped += 1;
        }
        if let Ok(value) = serde_json::from_slice(line) {
            let text = String::from_utf8_lossy(line);
            let record = plainly(&value);
            assert_eq!(wished, record.is_none().then(|| plain_wish(&value)).flatten(), "{text}");
            assert_eq!(parsed, record, "{text}");
        }
    }
    assert_eq!((records.next(), wishes.next(), reading.dropped_lines), (None, None, dropped));
}

/// The record in a JSON value, as the format describes it.
fn plainly(value: &Value) -> Option<Record> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    number("v").filter(|version| *version == 1.0)?;
    let fact = if text("state").as_deref() == Some("in_flight") {
        Fact::InFlight { tail_uuid: text("tailUuid").filter(|uuid| !uuid.is_empty()) }
    } else {
        let word = text("terminal")?;
        let terminal = Terminal::ALL.into_iter().find(|terminal| terminal.as_str() == word)?;
        Fact::Terminal { terminal, code: text("code"), stop_reason: text("stopReason") }
    };
    Some(Record { prompt_id: text("promptId")?, at_ms: number("at")?, fact })
}

/// The wish in a JSON value that holds no record.
fn plain_wish(value: &Value) -> Option<Wish> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    number("v").filter(|version| *version == 1.0)?;
    text("state").filter(|state| state == "cancel_requested")?;
    Some(Wish { prompt_id: text("promptId")?, at_ms: number("at")? })
}

/// A tail is what a reading of its own bytes gives, the first line left out where it may be cut: the end of the whole.
fn check_tails(bytes: &[u8], ledger: &Ledger, whole: &Reading) {
    for window in [0, 1, bytes.len() / 2, bytes.len().saturating_sub(1), bytes.len(), usize::MAX] {
        let tail = ledger.read_tail(window as u64).expect("a regular file is read");
        assert!(whole.records.ends_with(&tail.records) && tail.dropped_lines <= whole.dropped_lines);
        assert_eq!(tail.len_bytes, whole.len_bytes);
        if window >= bytes.len() {
            assert_eq!(tail, *whole);
        } else {
            let cut = &bytes[bytes.len() - window..];
            let from = cut.iter().position(|byte| *byte == b'\n').map_or(cut.len(), |lf| lf + 1);
            let expected: Vec<_> = cut[from..].split(|byte| *byte == b'\n').filter_map(Record::parse).collect();
            assert_eq!(tail.records, expected);
        }
    }
    let terminals: Vec<_> = whole.records.iter().filter(|record| !record.is_in_flight()).cloned().collect();
    let recent = recent_terminals(ledger).expect("a regular file is read");
    assert_eq!(recent, terminals[terminals.len().saturating_sub(ledger::RECENT_TERMINALS_MAX)..]);
}

/// An id that is exact dangles once, if its last record is an admission; order is that of the first appearance.
fn check_dangling(records: &[Record]) {
    let open = dangling(records);
    let mut last_by_id: HashMap<&str, (usize, bool)> = HashMap::new();
    for (place, record) in records.iter().enumerate() {
        last_by_id.entry(&record.prompt_id).or_insert((place, false)).1 = record.is_in_flight();
        if !record.has_exact_id() && record.is_in_flight() && last_by_id.len() == records.len() {
            assert!(open.contains(&record.prompt_id.as_str()));
        }
    }
    let mut expected: Vec<_> = last_by_id.iter().filter(|(_, (_, is_open))| *is_open).collect();
    expected.sort_by_key(|(_, (place, _))| *place);
    let is_exact = |id: &str| !id.contains(char::REPLACEMENT_CHARACTER);
    let expected: Vec<&str> = expected.into_iter().map(|(id, _)| *id).filter(|id| is_exact(id)).collect();
    let exact: Vec<&str> = open.iter().copied().filter(|id| is_exact(id)).collect();
    assert_eq!(exact, expected);
    assert!(open.iter().all(|id| last_by_id.contains_key(id)));
}

/// Whatever is there stays readable, byte for byte, and what is appended is read behind it.
fn check_appending(bytes: &[u8], ledger: &Ledger, before: &Reading) {
    let id = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).into_owned();
    let appended = [Record::in_flight(id.clone(), Some(&id), 1), Record::error(id.clone(), Some(&id), 2)];
    let refused = ledger.append_if_unchanged(&appended, before.len_bytes + 1);
    assert!(matches!(refused, Err(AppendError::Changed { .. })), "{refused:?}");
    assert_eq!(read(ledger.path()), bytes, "a refused append writes nothing");
    let mut appender = ledger.appender();
    appender.append_if_unchanged(&appended[..1], before.len_bytes).expect("there is room");
    appender.append(&appended[1]).expect("there is room");
    let after = ledger.read().expect("a regular file is read");
    assert_eq!(after.records, [&before.records[..], &appended].concat());
    assert_eq!(after.dropped_lines, before.dropped_lines);
    let written = read(ledger.path());
    assert!(written.starts_with(bytes) && written.ends_with(b"\n"));
    assert_eq!(after.len_bytes, written.len() as u64);
}

/// A merge keeps the records of both, the target's first.
fn check_moving(archived: &[u8], active: &Ledger, active_reading: &Reading) {
    let target = Ledger::new(path("archived.ledger.jsonl"), Durability::Process);
    write(target.path(), archived);
    let (before, moved) = (target.read().expect("a regular file is read"), read(active.path()));
    sidecar::move_merging(active.path(), target.path()).expect("both are in one folder");
    let (after, merged) = (target.read().expect("a regular file is read"), read(target.path()));
    // Where the end of one is the beginning of the other, a move may have been cut off there, and the lines stand once.
    let mut both = before.records.iter().chain(&active_reading.records);
    assert!(both.all(|record| after.records.contains(record)));
    assert!(after.records.len() <= before.records.len() + active_reading.records.len());
    assert!(after.dropped_lines <= before.dropped_lines + active_reading.dropped_lines);
    let has = |part: &[u8]| part.is_empty() || merged.windows(part.len()).any(|window| window == part);
    assert!(!active.path().exists() && has(archived) && has(&moved));
    sidecar::remove(active.path(), target.path()).expect("a file can be removed");
}
