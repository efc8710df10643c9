//! Wishes in the file: beside the records, never among them.

use std::fs;

use turnd_ledger::{AppendError, Durability, Ledger, Reading, Record, Wish, dangling, recent_terminals};

use crate::scratch::Scratch;

fn wish() -> Wish {
    Wish::new("caf\u{e9}-\u{1f9ea}\"\\\n", 1_795_977_220_009)
}

/// Two prompts and the wish of the first, as the lines of a file.
fn story() -> (Vec<Record>, Wish) {
    let wish = wish();
    let id = wish.prompt_id.clone();
    (vec![Record::in_flight(id, Some("u"), 1), Record::in_flight("queued", None, 2)], wish)
}

fn file_of(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|record| (record.to_line() + "\n").into_bytes()).collect()
}

#[test]
fn a_wish_is_on_disk_when_its_append_has_returned() {
    for durability in [Durability::Process, Durability::Fsync] {
        let scratch = Scratch::new();
        let ledger = Ledger::new(scratch.path("new/s.ledger.jsonl"), durability);
        let (records, wish) = story();
        ledger.append_all(&records).unwrap();
        ledger.append_wish(&wish).unwrap();
        assert_eq!(
            fs::read(ledger.path()).unwrap(),
            [&file_of(&records)[..], wish.to_line().as_bytes(), b"\n"].concat()
        );
        assert_eq!(ledger.read().unwrap().open_wishes(), [&wish]);
    }
}

#[test]
fn no_reduction_sees_a_wish_and_no_count_takes_it_for_damage() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let mut appender = ledger.appender();
    let records = [
        Record::in_flight("A", None, 1),
        Record::in_flight("B", None, 2),
        Record::cancelled("A", 4),
        Record::in_flight("C", None, 6),
    ];
    for record in &records {
        appender.append_wish(&Wish::new("A", 3)).unwrap();
        appender.append(record).unwrap();
        appender.append_wish(&Wish::new("B", 5)).unwrap();
    }
    let reading = ledger.read().unwrap();
    assert_eq!((&reading.records[..], reading.dropped_lines, reading.wishes.len()), (&records[..], 0, 8));
    assert_eq!(dangling(&reading.records), ["B", "C"]);
    assert_eq!(recent_terminals(&ledger).unwrap(), [Record::cancelled("A", 4)]);
    assert_eq!(reading.open_wishes(), [&Wish::new("B", 5)]);
}

#[test]
fn a_wish_cut_at_any_byte_is_whole_or_none_and_costs_no_record() {
    let scratch = Scratch::new();
    let (records, wish) = story();
    let whole = file_of(&records);
    let line = wish.to_line();
    for cut in 0..=line.len() + 1 {
        let bytes = [&whole[..], &format!("{line}\n").as_bytes()[..cut]].concat();
        let ledger = scratch.ledger_of(&bytes);
        let before: Vec<_> = ledger.read().unwrap().open_wishes().into_iter().cloned().collect();
        assert_eq!(before.len(), usize::from(cut >= line.len()), "cut at {cut}");
        // Whatever is left of it, the next record is sealed off from it.
        let next = Record::cancelled("next", 9);
        ledger.append(&next).unwrap();
        let reading = ledger.read().unwrap();
        assert_eq!(reading.records, [records[0].clone(), records[1].clone(), next], "cut at {cut}");
        assert_eq!(reading.dropped_lines, usize::from(cut > 0 && cut < line.len()), "cut at {cut}");
        assert_eq!(reading.open_wishes(), before.iter().collect::<Vec<_>>(), "cut at {cut}");
    }
}

#[test]
fn a_wish_seals_what_was_torn_before_it() {
    let scratch = Scratch::new();
    let admission = Record::in_flight("A", None, 1).to_line();
    let wish = Wish::new("A", 2);
    for cut in 0..=admission.len() {
        let ledger = scratch.ledger_of(&admission.as_bytes()[..cut]);
        ledger.append_wish(&wish).unwrap();
        let reading = ledger.read().unwrap();
        assert_eq!(reading.wishes, [(reading.records.len(), wish.clone())], "cut at {cut}");
        assert_eq!(reading.open_wishes().len(), usize::from(cut == admission.len()), "cut at {cut}");
    }
}

#[test]
fn a_tail_holds_the_wishes_of_its_lines() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let (records, wish) = story();
    ledger.append_all(&records).unwrap();
    ledger.append_wish(&wish).unwrap();
    let tail = ledger.read_tail(wish.to_line().len() as u64 + 2).unwrap();
    assert_eq!(tail.wishes, [(0, wish)]);
    assert_eq!(tail.open_wishes(), Vec::<&Wish>::new(), "the admission is not in the tail");
}

#[test]
fn a_wish_that_no_reader_would_accept_is_not_written() {
    let scratch = Scratch::new();
    let ledger = scratch.ledger();
    let answer = ledger.append_wish(&Wish { prompt_id: "p".to_owned(), at_ms: f64::INFINITY });
    assert!(matches!(answer, Err(AppendError::TimeNotFinite)));
    assert_eq!(ledger.read().unwrap(), Reading::default());
}
