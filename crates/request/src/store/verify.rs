//! What must hold of every store, always (return requests, section 2.5).

use rusqlite::Connection;

use super::chain;
use super::error::StoreError;
use super::layout::Layout;
use super::limits::CHAIN_LOOK;
use super::meta::Meta;
use super::shape;
use super::watermark::Levels;
use crate::event::genesis;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// What a start can wait for: SQLite's quick check, the numbers, and the newest events with their rows.
    Start,
    /// Everything.
    Whole,
}

/// What was looked at, and what does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Sentences, one for each thing that does not hold. None is a sound store.
    pub violations: Vec<String>,
    /// Sentences about what cannot be told of a store that may well be sound.
    pub notes: Vec<String>,
    /// Requests that are kept.
    pub requests: u64,
    /// Events that are kept.
    pub events: u64,
    /// Ids that are remembered.
    pub tombstones: u64,
    /// The highest number.
    pub head: u64,
    /// Whether it was exported: it goes on where its copy is, and takes nothing here.
    pub is_exported: bool,
}

/// Counts that must be 0, and what it means when one is not. Looked at in a whole look.
const NEVER: [(&str, &str); 8] = [
    (
        "SELECT count(*) FROM request WHERE (terminal_seq IS NULL) != (state IN ('registered', 'submitted', 'bound'))",
        "requests whose state and number contradict one another",
    ),
    (
        "SELECT count(*) FROM terminal_event AS event LEFT JOIN request ON request.request_id = event.request_id \
            AND request.terminal_seq = event.seq WHERE request.request_id IS NULL",
        "events without their request",
    ),
    (
        "SELECT count(*) FROM request LEFT JOIN terminal_event AS event ON event.seq = request.terminal_seq \
            AND event.request_id = request.request_id WHERE request.terminal_seq IS NOT NULL AND event.seq IS NULL",
        "ended requests without their event",
    ),
    (
        "SELECT count(*) FROM request WHERE (final_message IS NOT NULL) != (state = 'completed')",
        "final messages without completion, or the other way round",
    ),
    ("SELECT count(*) FROM request JOIN tombstone USING (request_id)", "ids that are both kept and pruned"),
    (
        "SELECT count(*) FROM outcome_stage JOIN request USING (request_id) WHERE terminal_seq IS NOT NULL",
        "staged outcomes of ended requests",
    ),
    (
        "SELECT count(*) FROM terminal_event WHERE coalesce(json_extract(payload, '$.terminal_event_sequence'), -1) != seq \
            OR coalesce(json_extract(payload, '$.request_id'), '') != request_id",
        "events whose body is another one's",
    ),
    ("SELECT count(*) FROM pragma_foreign_key_check", "rows that refer to nothing"),
];

/// Requests that are open although their agent's process is gone: only while a start is deciding about them.
const UNDECIDED: &str = "SELECT count(*) FROM request JOIN incarnation USING (incarnation_id) \
    WHERE terminal_seq IS NULL AND incarnation.ended_at IS NOT NULL";

/// Looks. What was noted of the file has been read before, so that it is not ahead of a store that somebody writes to.
///
/// # Errors
/// When there is nothing to be read at all.
pub(super) fn look(conn: &Connection, noted: &Levels, depth: Depth, is_recovered: bool) -> Result<Report, StoreError> {
    let mut report = Report::default();
    let look = conn.unchecked_transaction()?;
    report.violations = check(&look, depth)?;
    report.violations.extend(shape::look(&look, depth)?);
    if report.violations.is_empty() {
        content(&look, noted, depth, &mut report)?;
        if depth == Depth::Whole && is_recovered {
            never(&look, UNDECIDED, "open requests of an agent that is gone", &mut report)?;
        }
    }
    Ok(report)
}

/// What is wrong with the rows of a copy and with its indexes, whose pages are not all in order: each table is looked at for itself.
///
/// # Errors
/// When it cannot be looked at.
pub(super) fn rows(conn: &Connection, noted: &Levels) -> Result<Vec<String>, StoreError> {
    let mut report = Report::default();
    for table in Layout::of(conn)?.tables() {
        report.violations.extend(checked(conn, &format!("PRAGMA integrity_check({table})"))?);
    }
    if report.violations.is_empty() {
        content(conn, noted, Depth::Whole, &mut report)?;
    }
    Ok(report.violations)
}

/// What the rows say, of a file in which SQLite finds nothing wrong.
fn content(conn: &Connection, noted: &Levels, depth: Depth, report: &mut Report) -> Result<(), StoreError> {
    let meta = Meta::read(conn)?;
    report.violations.extend(noted.missing(&meta));
    report.notes.extend(noted.silence(&meta));
    report.is_exported = meta.closed_at.is_some();
    if report.is_exported {
        report.notes.push("it was exported: it goes on where its copy is, and takes nothing here".to_owned());
    }
    numbers(conn, &meta, report)?;
    let first = match depth {
        Depth::Start => meta.head_seq.saturating_sub(CHAIN_LOOK).max(meta.pruned_through),
        Depth::Whole => meta.pruned_through,
    };
    report.violations.extend(chain::look(conn, &meta, first, depth)?);
    if depth == Depth::Whole {
        report.violations.extend(pruned(conn, &meta)?);
        for (count, sentence) in NEVER {
            never(conn, count, sentence, report)?;
        }
    }
    Ok(())
}

/// What SQLite finds wrong.
///
/// # Errors
/// When it cannot even look.
pub(super) fn check(conn: &Connection, depth: Depth) -> Result<Vec<String>, StoreError> {
    let check = match depth {
        Depth::Start => "PRAGMA quick_check(10)",
        Depth::Whole => "PRAGMA integrity_check(100)",
    };
    checked(conn, check)
}

fn checked(conn: &Connection, check: &str) -> Result<Vec<String>, StoreError> {
    let mut statement = conn.prepare(check)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

fn never(conn: &Connection, count: &str, sentence: &str, report: &mut Report) -> Result<(), StoreError> {
    let found: u64 = conn.query_row(count, [], |row| row.get(0))?;
    if found > 0 {
        report.violations.push(format!("{found} {sentence}"));
    }
    Ok(())
}

/// The head is the highest event, and between it and what was pruned there is every number once.
fn numbers(conn: &Connection, meta: &Meta, report: &mut Report) -> Result<(), StoreError> {
    let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, u64>(0));
    report.head = meta.head_seq;
    report.requests = count("SELECT count(*) FROM request")?;
    report.events = count("SELECT count(*) FROM terminal_event")?;
    report.tombstones = count("SELECT count(*) FROM tombstone")?;
    let ended = count("SELECT count(terminal_seq) FROM request")?;
    let highest: Option<u64> = conn.query_row("SELECT max(seq) FROM terminal_event", [], |row| row.get(0))?;
    let lowest: Option<u64> = conn.query_row("SELECT min(seq) FROM terminal_event", [], |row| row.get(0))?;
    if highest.unwrap_or(meta.pruned_through) != meta.head_seq {
        report.violations.push(format!("the head is {}, the highest event {highest:?}", meta.head_seq));
    }
    if lowest.is_some_and(|lowest| lowest != meta.pruned_through + 1) {
        report.violations.push(format!("pruned through {}, the lowest event {lowest:?}", meta.pruned_through));
    }
    if report.events != meta.head_seq.saturating_sub(meta.pruned_through) {
        report
            .violations
            .push(format!("{} events between {} and {}", report.events, meta.pruned_through, meta.head_seq));
    }
    if ended != report.events {
        report.violations.push(format!("{ended} ended requests and {} events", report.events));
    }
    Ok(())
}

/// Of the last number that was pruned there is a tombstone, unless tombstones have been forgotten. A stream that begins there has pruned
/// nothing: the one that was pruned may be another's.
fn pruned(conn: &Connection, meta: &Meta) -> Result<Option<String>, StoreError> {
    let through = meta.pruned_through;
    if through == 0 || meta.tombstone_floor > 0 || meta.pruned_chain == genesis(&meta.stream_id) {
        return Ok(None);
    }
    let sql = "SELECT count(*) FROM tombstone WHERE terminal_seq = ?1";
    let left: u64 = conn.query_row(sql, [through], |row| row.get(0))?;
    Ok((left == 0).then(|| format!("pruned through {through}, of which nothing is left")))
}
