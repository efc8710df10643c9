//! The admissions that were never settled.

use std::collections::{HashMap, HashSet};

use ledger::{Fact, Record};

/// The last admission of an open prompt. An id admitted again counts by its last line.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// The prompt.
    pub prompt_id: String,
    /// The dispatch marker, when the admission has one.
    pub marker: Option<String>,
    /// When, in epoch milliseconds.
    pub at_ms: f64,
    /// Whether the prompt had ended before it was admitted again.
    pub is_readmission: bool,
    /// Whether the id is surely the one that was written.
    pub has_exact_id: bool,
}

/// The last admission of every open prompt, in the order in which the prompts first appear.
#[must_use]
pub fn open_admissions(records: &[Record]) -> Vec<Admission> {
    let ended = ended_ids(records);
    let admissions = records.iter().filter(|record| record.is_in_flight());
    let last_by_id: HashMap<&str, &Record> = admissions.map(|record| (record.prompt_id.as_str(), record)).collect();
    let open = ledger::dangling(records).into_iter().filter_map(|prompt_id| last_by_id.get(prompt_id));
    open.map(|record| Admission::new(record, ended.contains(record.prompt_id.as_str()))).collect()
}

impl Admission {
    fn new(record: &Record, is_readmission: bool) -> Self {
        let marker = match &record.fact {
            Fact::InFlight { tail_uuid } => tail_uuid.clone(),
            Fact::Terminal { .. } => None,
        };
        Self {
            prompt_id: record.prompt_id.clone(),
            marker,
            at_ms: record.at_ms,
            is_readmission,
            has_exact_id: record.has_exact_id(),
        }
    }
}

/// The ids that any record says have ended.
pub(crate) fn ended_ids(records: &[Record]) -> HashSet<&str> {
    let ended = records.iter().filter(|record| !record.is_in_flight());
    ended.map(|record| record.prompt_id.as_str()).collect()
}
