use proptest::prelude::*;

use super::*;
use crate::event::genesis;

fn extent() -> Extent {
    Extent { stream_id: "s1".to_owned(), head: 9, pruned_through: 3 }
}

/// A history in which the chain of each event is its number, 32 times.
fn chain_at(seq: u64) -> Option<Hash> {
    Some(Hash([u8::try_from(seq).unwrap(); 32]))
}

fn resume(text: &str) -> Result<u64, NotThere> {
    Position::parse(text).unwrap().resume(&extent(), chain_at)
}

#[test]
fn a_number_and_a_cursor_of_the_same_history_go_on() {
    assert_eq!(resume("3"), Ok(3), "the next one is still there");
    assert_eq!(resume("9"), Ok(9), "at the head one waits");
    assert_eq!(resume(&Cursor::new("s1", 5, &chain_at(5).unwrap()).to_string()), Ok(5));
    assert_eq!(resume(&Cursor::new("s1", 3, &chain_at(3).unwrap()).to_string()), Ok(3));
}

#[test]
fn scenario_72_too_old_ahead_another_stream_another_history() {
    assert_eq!(resume("2"), Err(NotThere::TooOld { oldest: 4, head: 9 }));
    assert_eq!(resume("10"), Err(NotThere::Ahead { head: 9 }));
    let cursor = |stream: &str, seq, chain: u8| resume(&Cursor::new(stream, seq, &Hash([chain; 32])).to_string());
    assert_eq!(cursor("s2", 5, 5), Err(NotThere::Changed { stream_id: "s1".to_owned() }));
    assert_eq!(cursor("s2", 99, 5), Err(NotThere::Changed { stream_id: "s1".to_owned() }));
    assert_eq!(cursor("s1", 5, 6), Err(NotThere::Diverged { seq: 5 }));
    assert_eq!(cursor("s1", 10, 10), Err(NotThere::Ahead { head: 9 }));
    assert_eq!(cursor("s1", 2, 2), Err(NotThere::TooOld { oldest: 4, head: 9 }));
}

#[test]
fn a_history_that_cannot_be_compared_is_another_one() {
    let position = Position::Cursor(Cursor::new("s1", 5, &Hash([5; 32])));
    assert_eq!(position.resume(&extent(), |_| None), Err(NotThere::Diverged { seq: 5 }));
    assert_eq!(Position::Number(5).resume(&extent(), |_| None), Ok(5));
}

#[test]
fn an_empty_stream_begins_at_0() {
    let empty = Extent { stream_id: "s1".to_owned(), head: 0, pruned_through: 0 };
    let start = Position::Cursor(Cursor::new("s1", 0, &genesis("s1")));
    assert_eq!(start.resume(&empty, |_| Some(genesis("s1"))), Ok(0));
    assert_eq!(Position::Number(0).resume(&empty, |_| None), Ok(0));
}

#[test]
fn what_is_neither_a_number_nor_a_cursor_is_refused() {
    for text in [
        "",
        "-1",
        "+1",
        " 1",
        "1 ",
        "0x1",
        "9223372036854775808",
        "18446744073709551616",
        "c1",
        "c1.s1.1",
        "c1.s1.1.0",
        "c1.s1.1.000000000000000G",
        "c1.s1.1.+00000000000000a",
        "c1.s1.1.000000000000000A",
        "c1..1.0000000000000000",
        "c1.s1.x.0000000000000000",
        "c2.s1.1.0000000000000000",
        "c1.s1.1.0000000000000000.",
    ] {
        assert_eq!(Position::parse(text), Err(NotAPosition), "{text:?}");
    }
    assert!(Position::parse("9223372036854775807").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cursor_reads_back(stream_id in "[a-zA-Z0-9-]{1,40}", seq in 0..=i64::MAX as u64, chain: [u8; 8]) {
        let cursor = Cursor { stream_id, seq, chain };
        prop_assert_eq!(Position::parse(&cursor.to_string()), Ok(Position::Cursor(cursor)));
    }

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = Position::parse(&text);
    }
}
