//! A tail that was torn anywhere: cut, reopen, append, read.

use std::fs::{self, OpenOptions};
use std::io::Write;

use turnd_ledger::{Fact, Ledger, Record, Terminal, dangling};

use crate::scratch::Scratch;

/// Records of every shape, with characters of one to four bytes.
fn records() -> Vec<Record> {
    let both = Fact::Terminal {
        terminal: Terminal::Error,
        code: Some("daemon_shutdown".to_owned()),
        stop_reason: Some("\u{4efb}\"\u{1f9ea}\\\n".to_owned()),
    };
    vec![
        Record::in_flight("0b54b3ad-6f44-4ac3-8f0c-6ab1f3b2a111", Some("5b7c1a52-uuid"), 1_795_977_220_000),
        Record::in_flight("caf\u{e9}-\u{4efb}\u{52a1}-\u{1f9ea}", None, 1_795_977_220_001),
        Record::completed("p", "end_turn", 1_795_977_220_002),
        Record::cancelled("", 0),
        Record::interrupted("a\"b\\c", "daemon_lost", 1_795_977_220_003),
        Record { prompt_id: "q".to_owned(), at_ms: 1.5, fact: both },
    ]
}

fn file_of(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| (record.to_line() + "\n").into_bytes()).collect()
}

/// Everything before the last line stays, what is appended arrives, and the torn record is there exactly if it was
/// whole up to its LF.
fn check_cut(ledger: &Ledger, before: &[Record], last: &Record, cut: usize) {
    let whole = file_of(before);
    let line = file_of(std::slice::from_ref(last));
    fs::write(ledger.path(), [&whole[..], &line[..cut]].concat()).unwrap();
    let next = Record::cancelled("next", 9);
    ledger.append(&next).unwrap();

    let survives = cut >= line.len() - 1;
    let mut expected = before.to_vec();
    expected.extend(survives.then(|| last.clone()));
    expected.push(next);
    let reading = ledger.read().unwrap();
    assert_eq!(reading.records, expected, "cut at {cut}");
    assert_eq!(reading.dropped_lines, usize::from(!survives && cut > 0), "cut at {cut}");
    assert_eq!(reading.len_bytes, fs::metadata(ledger.path()).unwrap().len());
}

#[test]
fn a_last_record_cut_at_any_byte_costs_at_most_itself() {
    let scratch = Scratch::new();
    let records = records();
    for last in &records {
        for cut in 0..=last.to_line().len() + 1 {
            check_cut(&scratch.ledger(), &records, last, cut);
        }
    }
}

#[test]
fn a_first_record_cut_at_any_byte_costs_at_most_itself() {
    let scratch = Scratch::new();
    let last = &records()[1];
    for cut in 0..=last.to_line().len() + 1 {
        check_cut(&scratch.ledger(), &[], last, cut);
    }
}

#[test]
fn a_seal_and_its_record_cut_at_any_byte_are_sealed_again() {
    let scratch = Scratch::new();
    let [first, second, third] =
        [Record::in_flight("A", None, 1), Record::cancelled("A", 2), Record::cancelled("B", 3)];
    let torn = [first.to_line().as_bytes(), b"\n{\"v\":1,\"prom"].concat();
    let ledger = scratch.ledger_of(&torn);
    ledger.append(&second).unwrap();
    let sealed = fs::read(ledger.path()).unwrap();
    for cut in torn.len()..=sealed.len() {
        fs::write(ledger.path(), &sealed[..cut]).unwrap();
        ledger.append(&third).unwrap();
        let second_survives = cut >= sealed.len() - 1;
        let mut expected = vec![first.clone()];
        expected.extend(second_survives.then(|| second.clone()));
        expected.push(third.clone());
        assert_eq!(ledger.read().unwrap().records, expected, "cut at {cut}");
    }
}

#[test]
fn a_torn_admission_is_not_dangling_and_a_torn_terminal_leaves_its_prompt_open() {
    let scratch = Scratch::new();
    let admission = Record::in_flight("A", None, 1);
    let terminal = Record::completed("A", "end_turn", 2);
    let line = terminal.to_line();
    for cut in 0..line.len() {
        let ledger = scratch.ledger_of(format!("{}\n{}", admission.to_line(), &line[..cut]).as_bytes());
        assert_eq!(dangling(&ledger.read().unwrap().records), ["A"], "cut at {cut}");
    }
    let line = admission.to_line();
    for cut in 0..line.len() {
        let ledger = scratch.ledger_of(&line.as_bytes()[..cut]);
        assert_eq!(ledger.read().unwrap().records, [], "cut at {cut}");
    }
}

#[test]
fn the_seal_is_one_newline_and_only_where_one_is_missing() {
    let record = Record::cancelled("A", 1);
    let line = record.to_line() + "\n";
    let cases: [(&[u8], &str); 8] = [
        (b"", ""),
        (b"\n", ""),
        (b"{}\n", ""),
        (b"{}\r\n", ""),
        (b"{", "\n"),
        (b"{}\r", "\n"),
        (b"\xe4\xbb", "\n"),
        (b"{}\n\0\0\0\0", "\n"),
    ];
    for (before, seal) in cases {
        let scratch = Scratch::new();
        let ledger = scratch.ledger_of(before);
        ledger.append(&record).unwrap();
        let expected = [before, seal.as_bytes(), line.as_bytes()].concat();
        assert_eq!(fs::read(ledger.path()).unwrap(), expected, "{before:x?}");
    }
}

#[test]
fn an_appender_seals_what_another_writer_left_torn_between_two_of_its_records() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    for (record, tear) in [("A", ""), ("B", "{\"v\":1"), ("C", "\r"), ("D", "x\n"), ("E", "")] {
        appender.append(&Record::cancelled(record, 1)).unwrap();
        OpenOptions::new().append(true).open(ledger.path()).unwrap().write_all(tear.as_bytes()).unwrap();
    }
    let line = |id: &str| Record::cancelled(id, 1).to_line();
    let expected = [&line("A"), &line("B"), "{\"v\":1", &line("C"), "\r", &line("D"), "x", &line("E"), ""].join("\n");
    assert_eq!(fs::read_to_string(ledger.path()).unwrap(), expected);
}

#[test]
fn rubbish_behind_every_record_over_ten_restarts_costs_no_record() {
    let rubbish: [&[u8]; 5] = [b"{", b"\0\0\0\0", b"\xff\xfe", b"\r", b"[[[[[[\"\\ud8"];
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut expected = Vec::new();
    for restart in 0..10_usize {
        let record = Record::in_flight(format!("p{restart}"), Some("u"), restart as u64);
        ledger.append(&record).unwrap();
        expected.push(record);
        let mut file = fs::read(ledger.path()).unwrap();
        file.extend_from_slice(rubbish[restart % rubbish.len()]);
        fs::write(ledger.path(), file).unwrap();
        assert_eq!(ledger.read().unwrap().records, expected);
    }
}

#[test]
fn one_flipped_bit_anywhere_costs_no_record_of_another_line() {
    let records = records();
    let file = file_of(&records);
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let scratch = Scratch::new();
    let mut start = 0;
    for (number, line) in lines.iter().enumerate() {
        for (at, bit) in (start..start + line.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            let ledger = scratch.ledger_of(&damaged);
            let read = ledger.read().unwrap().records;
            // The LF between two lines belongs to both of them.
            let fused = at == start + line.len() - 1;
            let spared =
                records.iter().enumerate().filter(|(other, _)| *other != number && !(fused && *other == number + 1));
            for (_, record) in spared {
                assert!(read.contains(record), "bit {bit} of byte {at} cost {record:?}");
            }
        }
        start += line.len();
    }
}
