use std::io::Write;

use proptest::prelude::*;

use super::*;

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// A usable record in its shortest form.
fn record(uuid: &str) -> String {
    format!("{{\"uuid\":\"{uuid}\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"user\"}}")
}

/// The records of a line that stands somewhere in a file, held in memory and read block by block.
fn read(line: &[u8]) -> Vec<Record> {
    const BEFORE: &[u8] = b"before\n";
    let file = file_of(&[BEFORE, line, b"\nbehind"].concat());
    let start = BEFORE.len() as u64;
    let span = start..start + line.len() as u64;
    let held = records(&file, &Line { span: span.clone(), held: Some(line) }, &mut { WORK_BYTES_MAX }).unwrap();
    let in_blocks = records(&file, &Line { span, held: None }, &mut { WORK_BYTES_MAX }).unwrap();
    assert_eq!(held, in_blocks, "{}", String::from_utf8_lossy(line));
    for record in &held {
        assert!(record.span.start >= start && record.span.end <= start + line.len() as u64);
    }
    held
}

fn check(line: &str, expected: &str) {
    let uuids: Vec<_> = read(line.as_bytes()).into_iter().map(|record| record.uuid).collect();
    assert_eq!(uuids.join(" "), expected, "{line:.200}");
}

#[test]
fn a_line_that_is_one_value_is_one_record_or_none() {
    let a = record("a");
    check(&a, "a");
    check(&format!(" \t{a} "), "a");
    for line in [format!("[{a}]"), format!("{{\"x\":{a}}}"), "\"{}\"".to_owned(), "7".to_owned(), "null".to_owned()] {
        check(&line, "");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_line() {
    check(&format!("\u{feff}{}", record("a")), "a");
    check(&format!("\u{feff}[{}]", record("a")), "");
    check("\u{feff}", "");
    // A second one is damage, which is searched.
    check(&format!("\u{feff}\u{feff}{}", record("a")), "a");
}

#[test]
fn every_whole_object_of_any_other_line_counts() {
    let (a, b) = (record("a"), record("b"));
    check(&format!("{a}{b}"), "a b");
    check(&format!("{a},{b},"), "a b");
    check(&format!("[{a},{b}"), "a b");
    check(&format!("{a}]"), "a");
    check(&format!("{{}}{a}{{\"uuid\":1}}{b}"), "a b");
    check(&format!("}}{a}"), "a");
}

#[test]
fn what_is_inside_of_a_whole_object_is_no_record_of_its_own() {
    let inner = record("inner");
    check(&format!("{{\"x\":{inner}}};"), "");
    check(&format!("{};", record("a").replace("\"s\"", &format!("\"s\",\"x\":{inner}"))), "a");
}

#[test]
fn what_is_inside_of_a_torn_object_is_saved() {
    check(&format!("{{\"x\":{}", record("inner")), "inner");
    check(&format!("{{\"x\":[{{\"y\":{}", record("inner")), "inner");
}

#[test]
fn what_another_reader_loses_is_disputed() {
    let (a, b) = (record("a"), record("b"));
    let disputed = |line: &str| read(line.as_bytes()).iter().map(|record| record.is_disputed).collect::<Vec<_>>();
    for (line, expected) in [
        (a.clone(), vec![false]),
        (format!("{a}{b}"), vec![false, false]),
        (format!("\0\0{a}"), vec![false]),
        (format!("torn{a}{b}"), vec![false, false]),
        (format!("}}{a}"), vec![false]),
        (format!("\"{{\\\"\" {a}"), vec![false]),
        // A brace or a text that is left open swallows everything behind it.
        (format!("{{\"uuid\":{a}{b}"), vec![true, true]),
        (format!("\"torn{a}"), vec![true]),
        (format!("{{\"x\":\"to{a}{b}"), vec![true, true]),
        (format!("{a}{{\"uuid\":\"b\"{b}"), vec![false, true]),
    ] {
        assert_eq!(disputed(&line), expected, "{line}");
    }
}

#[test]
fn braces_inside_of_texts_are_none() {
    check(&record("a").replace("\"s\"", "\"s\",\"x\":\"}{\\\"{\""), "a");
    check(&format!("\"{{\" {}", record("a")), "a");
    check(&format!("{{\"x\":\"{}", record("a")), "a");
}

#[test]
fn an_honest_fragment_never_costs_the_record_behind_it() {
    let fragment = "{\"a\":[".repeat(30) + &"x".repeat(30_000);
    check(&format!("{fragment}{}", record("a")), "a");
}

#[test]
fn a_line_that_is_made_to_cost_loses_what_was_not_found() {
    let first = record("a");
    let costly = "{\"a\":".repeat(20_000);
    check(&format!("{first}{costly}{}", record("b")), "a");
}

#[test]
fn what_all_damaged_lines_cost_together_is_bounded() {
    let line = format!("x{}x", record("a"));
    // The bytes, and four values among them.
    let cost = record("a").len() as u64 + 4 * VALUE_WORK_BYTES;
    let mut work_left = 2 * cost;
    let mut read = || {
        let found =
            records(&file_of(b""), &Line { span: 0..line.len() as u64, held: Some(line.as_bytes()) }, &mut work_left);
        found.map(|found| found.len())
    };
    assert_eq!((read().unwrap(), read().unwrap()), (1, 1));
    assert_eq!(read().unwrap_err().to_string(), "it is too damaged to be read");
    // Of lines that are whole nothing is taken.
    let whole = record("a");
    let line = Line { span: 0..whole.len() as u64, held: Some(whole.as_bytes()) };
    assert_eq!(records(&file_of(b""), &line, &mut 0).unwrap().len(), 1);
}

#[test]
fn a_line_whose_file_was_cut_meanwhile_is_an_error() {
    let file = file_of(b"{\"uuid\":");
    assert!(records(&file, &Line { span: 0..100, held: None }, &mut { WORK_BYTES_MAX }).is_err());
}

proptest! {
    /// The assertions are those of `read`: in memory and block by block is the same.
    #[test]
    fn a_line_is_read_alike_from_memory_and_from_the_file(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "\"", "\\", ",", ":", "\u{feff}", "é", "7", "null", "\"text\"",
            "{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s\",\"type\":\"user\"",
            ",\"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"q\"}]}",
        ]), 0..20),
    ) {
        read(pieces.concat().as_bytes());
    }

    #[test]
    fn records_between_any_rubbish_without_braces_are_found(rubbish in prop::collection::vec("[^{}\"\n\r\\\\]{1,9}", 3)) {
        let line = format!("{}{}{}{}{}", rubbish[0], record("a"), rubbish[1], record("b"), rubbish[2]);
        let uuids: Vec<_> = read(line.as_bytes()).into_iter().map(|record| record.uuid).collect();
        prop_assert_eq!(uuids, ["a", "b"]);
    }
}
