//! The kept files: every past shape of a ledger, whole and damaged, and lines that are easily read wrongly.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use turnd_ledger::{Durability, Ledger, Record, dangling, recent_terminals};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ledger").join(name)
}

/// Line by line: the record as it would be written, `-` for a dropped line, nothing for a blank one.
fn reread(ledger: &[u8]) -> String {
    let mut lines: Vec<&[u8]> = ledger.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let spell = |line: &[u8]| match Record::parse(line) {
        Some(record) => record.to_line(),
        None if line.iter().all(|byte| b" \t\r".contains(byte)) => String::new(),
        None => "-".to_owned(),
    };
    lines.into_iter().map(|line| spell(line) + "\n").collect()
}

/// Line by line against the kept answers, so that a failure names its line.
fn check_lines(name: &str) {
    let ledger = fs::read(fixture(&format!("{name}.ledger.jsonl"))).unwrap();
    let expected = fs::read_to_string(fixture(&format!("{name}.expected"))).unwrap();
    let read = reread(&ledger);
    for (number, (line, (read, expected))) in
        ledger.split(|byte| *byte == b'\n').zip(read.lines().zip(expected.lines())).enumerate()
    {
        assert_eq!(read, expected, "line {} of {name}: {}", number + 1, String::from_utf8_lossy(line));
    }
    assert_eq!(read, expected);
    let reading = Ledger::new(fixture(&format!("{name}.ledger.jsonl")), Durability::Process).read().unwrap();
    assert_eq!(reading.records.len(), expected.lines().filter(|line| line.starts_with('{')).count());
    assert_eq!(reading.dropped_lines, expected.lines().filter(|line| *line == "-").count());
}

/// All that the crate can say about a kept file.
fn described(name: &str) -> String {
    let ledger = Ledger::new(fixture(name), Durability::Process);
    let reading = ledger.read().unwrap();
    let mut text = format!("{} bytes, {} lines dropped\n", reading.len_bytes, reading.dropped_lines);
    for record in &reading.records {
        writeln!(text, "record   {}", record.to_line()).unwrap();
    }
    for (records_before, wish) in &reading.wishes {
        writeln!(text, "wish     {} behind {records_before} records", wish.to_line()).unwrap();
    }
    for wish in reading.open_wishes() {
        writeln!(text, "counts   {}", wish.to_line()).unwrap();
    }
    for id in dangling(&reading.records) {
        writeln!(text, "dangling {id}").unwrap();
    }
    for record in recent_terminals(&ledger).unwrap() {
        writeln!(text, "terminal {}", record.to_line()).unwrap();
    }
    text
}

fn check_described(name: &str) {
    let expected = fs::read_to_string(fixture(&format!("{name}.expected"))).unwrap();
    assert_eq!(described(&format!("{name}.ledger.jsonl")), expected);
}

#[test]
fn every_line_is_read_as_a_browser_reads_it() {
    check_lines("browser");
}

/// Lines that a plausible reader gets wrong, ours at some time included; their ids say how. Found ones are added.
#[test]
fn lines_that_are_easily_read_wrongly_are_read_rightly() {
    check_lines("counter-examples");
}

#[test]
fn a_whole_file_of_version_one_says_what_it_said() {
    check_described("v1-whole");
}

#[test]
fn a_damaged_file_of_version_one_says_what_is_left_of_it() {
    check_described("v1-damaged");
}

#[test]
fn lines_of_a_newer_version_are_left_alone_and_counted() {
    check_described("v1-among-newer");
}

#[test]
fn a_file_with_wishes_says_which_prompts_are_open_and_which_of_them_nobody_wants() {
    check_described("v1-wishes");
}

#[test]
fn our_own_lines_are_the_bytes_of_the_kept_file() {
    let bytes = fs::read(fixture("v1-whole.ledger.jsonl")).unwrap();
    assert_eq!(reread(&bytes).into_bytes(), bytes);
}
