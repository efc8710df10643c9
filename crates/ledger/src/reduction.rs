//! What a ledger's records say together.

use std::collections::HashMap;

use crate::ledger::Ledger;
use crate::read::ReadError;
use crate::record::Record;

/// How much of the ledger's end is searched for recent terminals, in bytes: 64 records with room for long codes, and
/// little enough to read on every load.
pub const RECENT_WINDOW_BYTES: u64 = 256 * 1024;

/// How many recent terminals are given out: what a caller who comes back after a crash could still be waiting for.
pub const RECENT_TERMINALS_MAX: usize = 64;

/// The ids whose latest record is an admission, in the order in which the ids first appear in any record.
///
/// Latest means last in the file; times play no part. An id that is not exact ([`Record::has_exact_id`]) may stand for
/// several prompts: it is listed once for each of its open admissions, and a terminal settles it only while one is open,
/// because with two nothing says which of them ended.
pub fn dangling(records: &[Record]) -> Vec<&str> {
    let mut open_by_id: HashMap<&str, usize> = HashMap::new();
    let mut order = Vec::new();
    for record in records {
        let id = record.prompt_id.as_str();
        let open = open_by_id.entry(id).or_insert_with(|| {
            order.push(id);
            0
        });
        *open = match (record.is_in_flight(), record.has_exact_id()) {
            (true, true) => 1,
            (true, false) => *open + 1,
            (false, false) if *open > 1 => *open,
            (false, _) => 0,
        };
    }
    let repeated = order.into_iter().map(|id| std::iter::repeat_n(id, open_by_id[id]));
    repeated.flatten().collect()
}

/// The last [`RECENT_TERMINALS_MAX`] terminal records in the last [`RECENT_WINDOW_BYTES`] of the ledger, oldest first.
///
/// Records and not prompts: two terminals of one id are both there. An answer that carries them leaves the field out
/// when there are none.
///
/// # Errors
///
/// When the ledger exists and cannot be read.
pub fn recent_terminals(ledger: &Ledger) -> Result<Vec<Record>, ReadError> {
    let mut records = ledger.read_tail(RECENT_WINDOW_BYTES)?.records;
    records.retain(|record| !record.is_in_flight());
    let surplus = records.len().saturating_sub(RECENT_TERMINALS_MAX);
    records.drain(..surplus);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases in the notation of the design: `A if` is an admission, `A term` a terminal.
    fn check(script: &str, expected: &[&str]) {
        let records: Vec<Record> = script.split(", ").filter(|step| !step.is_empty()).map(record).collect();
        assert_eq!(dangling(&records), expected, "[{script}]");
    }

    fn record(step: &str) -> Record {
        match step.rsplit_once(' ') {
            Some((id, "if")) => Record::in_flight(id, None, 9),
            Some((id, "term")) => Record::cancelled(id, 1),
            _ => panic!("not a step: {step}"),
        }
    }

    #[test]
    fn the_latest_record_of_an_id_decides() {
        check("", &[]);
        check("A if", &["A"]);
        check("A term", &[]);
        check("A if, A term", &[]);
        check("A if, A term, A if", &["A"]);
        check("A if, A if, A term", &[]);
        check("A if, A term, A term", &[]);
        check("A if, B if, A term, C if", &["B", "C"]);
        check("A if, B if, B term", &["A"]);
    }

    #[test]
    fn order_is_that_of_the_first_appearance_in_any_record() {
        check("A term, B if, A if", &["A", "B"]);
        check("10 if, 9 if, 1 if", &["10", "9", "1"]);
        check("A if, B if, A term, A if", &["A", "B"]);
    }

    #[test]
    fn ids_are_compared_exactly() {
        check("p if, P term, p  term,  p term", &["p"]);
        check(" if", &[""]);
        check("e\u{301} if, \u{e9} term", &["e\u{301}"]);
    }

    #[test]
    fn an_id_that_may_stand_for_several_prompts_is_settled_only_while_one_is_open() {
        check("x\u{fffd} if", &["x\u{fffd}"]);
        check("x\u{fffd} if, x\u{fffd} term", &[]);
        check("x\u{fffd} if, x\u{fffd} if", &["x\u{fffd}", "x\u{fffd}"]);
        check("x\u{fffd} if, x\u{fffd} if, x\u{fffd} term, x\u{fffd} term", &["x\u{fffd}", "x\u{fffd}"]);
        check("x\u{fffd} if, x\u{fffd} term, x\u{fffd} if", &["x\u{fffd}"]);
    }
}
