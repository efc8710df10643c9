//! Reading: whole, tail, lengths, and the reductions over a file.

use std::fs;

use turnd_ledger::{
    Durability, Ledger, RECENT_TERMINALS_MAX, RECENT_WINDOW_BYTES, Reading, Record, dangling, recent_terminals,
};

use crate::scratch::{Scratch, ids};

/// Three records as lines of equal length, closed with LF.
fn three() -> (Vec<Record>, String) {
    let records: Vec<Record> = (0..3).map(|number| Record::cancelled(format!("p{number}"), number)).collect();
    let file = records.iter().map(|record| record.to_line() + "\n").collect();
    (records, file)
}

#[test]
fn a_missing_file_or_folder_reads_as_empty() {
    let scratch = Scratch::new();
    for path in [scratch.path("none.ledger.jsonl"), scratch.path("no/such/folder.ledger.jsonl")] {
        let ledger = Ledger::new(&path, Durability::Process);
        assert_eq!(ledger.read().unwrap(), Reading::default());
        assert_eq!(ledger.read_tail(10).unwrap(), Reading::default());
        assert_eq!(ledger.len_bytes().unwrap(), 0);
        assert_eq!(recent_terminals(&ledger).unwrap(), []);
        assert!(!path.exists());
    }
}

#[test]
fn blank_lines_are_skipped_and_other_lines_counted() {
    let scratch = Scratch::new();
    let (records, file) = three();
    let cases = [
        ("", 0),
        ("\n\n \n\t\r\n", 0),
        ("nonsense\n", 1),
        ("nonsense", 1),
        ("{}\n[]\nnull\n", 3),
        ("\0\0\0\0", 1),
        ("\u{feff}\n\u{a0}\n", 2),
        ("{\"v\":2,\"promptId\":\"p\",\"state\":\"in_flight\",\"at\":1}\n", 1),
    ];
    for (extra, dropped_lines) in cases {
        let ledger = scratch.ledger_of(format!("{file}{extra}").as_bytes());
        let reading = ledger.read().unwrap();
        assert_eq!((reading.records, reading.dropped_lines), (records.clone(), dropped_lines), "{extra:?}");
    }
}

#[test]
fn a_line_ends_at_lf_only() {
    let scratch = Scratch::new();
    let (records, file) = three();
    assert_eq!(scratch.ledger_of(file.replace('\n', "\r\n").as_bytes()).read().unwrap().records, records);
    assert_eq!(scratch.ledger_of(file.trim_end().as_bytes()).read().unwrap().records, records);
    let fused = scratch.ledger_of(file.replace('\n', "\r").as_bytes()).read().unwrap();
    assert_eq!((fused.records.len(), fused.dropped_lines), (0, 1));
    let fused = scratch.ledger_of(file.replace('\n', "\u{2028}").as_bytes()).read().unwrap();
    assert_eq!((fused.records.len(), fused.dropped_lines), (0, 1));
}

#[test]
fn two_records_on_one_line_are_both_lost_and_no_other() {
    let scratch = Scratch::new();
    let (records, file) = three();
    let reading = scratch.ledger_of(file.replacen('\n', "", 1).as_bytes()).read().unwrap();
    assert_eq!((reading.records, reading.dropped_lines), (records[2..].to_vec(), 1));
}

#[test]
fn a_byte_order_mark_costs_the_first_line() {
    let scratch = Scratch::new();
    let (records, file) = three();
    let reading = scratch.ledger_of(format!("\u{feff}{file}").as_bytes()).read().unwrap();
    assert_eq!((reading.records, reading.dropped_lines), (records[1..].to_vec(), 1));
}

#[test]
fn a_tail_leaves_out_its_first_line_exactly_when_the_file_is_longer() {
    let scratch = Scratch::new();
    let (records, file) = three();
    let ledger = scratch.ledger_of(file.as_bytes());
    let line = file.len() / 3;
    for window in 0..file.len() + 10 {
        let whole_lines = if window >= file.len() { 3 } else { window.saturating_sub(1) / line };
        let reading = ledger.read_tail(window as u64).unwrap();
        assert_eq!(reading.records, records[3 - whole_lines..], "window of {window}");
        assert_eq!((reading.dropped_lines, reading.len_bytes), (0, file.len() as u64), "window of {window}");
    }
    assert_eq!(ledger.read_tail(u64::MAX).unwrap(), ledger.read().unwrap());
}

#[test]
fn a_tail_that_begins_inside_a_character_reads_what_follows() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append(&Record::cancelled("\u{1f9ea}".repeat(50), 1)).unwrap();
    let last = Record::cancelled("\u{1f9ea}", 2);
    ledger.append(&last).unwrap();
    for window in last.to_line().len() + 2..last.to_line().len() + 200 {
        assert_eq!(ledger.read_tail(window as u64).unwrap().records, std::slice::from_ref(&last));
    }
}

#[test]
fn a_reading_knows_how_long_the_file_was() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    for number in 0..3 {
        ledger.append(&Record::cancelled("p", number)).unwrap();
        let len_bytes = fs::metadata(ledger.path()).unwrap().len();
        assert_eq!(ledger.read().unwrap().len_bytes, len_bytes);
        assert_eq!(ledger.read_tail(1).unwrap().len_bytes, len_bytes);
        assert_eq!(ledger.len_bytes().unwrap(), len_bytes);
    }
}

#[test]
fn recent_terminals_are_the_last_sixty_four_terminal_records_in_file_order() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    for number in 0..100 {
        appender.append(&Record::in_flight(format!("p{number}"), None, number)).unwrap();
        appender.append(&Record::completed(format!("p{number}"), "end_turn", 1_000 - number)).unwrap();
    }
    let recent: Vec<String> = recent_terminals(&ledger).unwrap().into_iter().map(|record| record.prompt_id).collect();
    let expected: Vec<String> = (36..100).map(|number| format!("p{number}")).collect();
    assert_eq!(recent.len(), RECENT_TERMINALS_MAX);
    assert_eq!(recent, expected);
}

#[test]
fn recent_terminals_are_records_and_not_prompts() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let terminals = [Record::interrupted("A", "daemon_lost", 2), Record::completed("A", "end_turn", 3)];
    ledger.append(&Record::in_flight("A", None, 1)).unwrap();
    ledger.append_all(&terminals).unwrap();
    assert_eq!(recent_terminals(&ledger).unwrap(), terminals);
}

#[test]
fn recent_terminals_of_admissions_alone_are_none() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append_all(&[Record::in_flight("A", None, 1), Record::in_flight("B", None, 2)]).unwrap();
    assert_eq!(recent_terminals(&ledger).unwrap(), []);
}

#[test]
fn recent_terminals_do_not_look_further_back_than_their_window() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    ledger.append(&Record::cancelled("far", 1)).unwrap();
    ledger.append(&Record::cancelled("cut", 2)).unwrap();
    ledger.append(&Record::cancelled("near", 3)).unwrap();
    let near_line = Record::cancelled("near", 3).to_line().len() + 1;
    let frame = Record::in_flight("", None, 4).to_line().len() + 1;
    // The window begins inside the line of `cut`.
    let filler = "f".repeat(RECENT_WINDOW_BYTES as usize - near_line - frame - 5);
    ledger.append(&Record::in_flight(filler, None, 4)).unwrap();
    let recent = recent_terminals(&ledger).unwrap();
    assert_eq!(recent, [Record::cancelled("near", 3)]);
}

#[test]
fn dangling_is_read_from_the_file_in_admission_order() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    for record in [
        Record::in_flight("A", Some("u"), 100),
        Record::in_flight("B", None, 2),
        Record::completed("A", "end_turn", 3),
        Record::in_flight("C", None, 1),
    ] {
        ledger.append(&record).unwrap();
    }
    assert_eq!(dangling(&ledger.read().unwrap().records), ["B", "C"]);
}

#[test]
fn what_an_appender_wrote_is_read_at_once() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    assert!(!ledger.path().exists());
    let mut expected = Vec::new();
    for number in 0..20 {
        let id = format!("p{number}");
        appender.append(&Record::in_flight(id.clone(), None, number)).unwrap();
        expected.push(id);
        assert_eq!(ids(&ledger), expected);
    }
}
