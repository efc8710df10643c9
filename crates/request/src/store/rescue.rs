//! What an operator does with a store that is not sound, or that moves (return requests, sections 2.15 and 2.16). The daemon is stopped.
//!
//! After a recovery or a reset the stream is another one, with an id of its own, and its numbers go on above the highest one that was ever
//! seen: no consumer can take a new event for an old one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Row, named_params};

use super::apply::{Line, apply, insert_event};
use super::command::Turn;
use super::connection;
use super::error::StoreError;
use super::meta::Meta;
use super::open::{OpenError, enter};
use super::place::{Place, create};
use super::register::{Tombstone, read_tombstone};
use super::schema::{self, Beginning, io};
use super::{consumer, incarnation, late, limits, row, webhook};
use crate::fail_points::FailPoints;
use crate::webhook::{Endpoint, Letter};
use crate::{Input, Recovered, Request, Stage, TerminalEvent};

/// What was kept of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescue {
    /// The new stream.
    pub stream_id: String,
    /// The number after which it went on.
    pub after: u64,
    /// The highest number now.
    pub head: u64,
    /// Ended requests that kept their number and payload.
    pub kept: u64,
    /// Ended requests of which only a tombstone is left, since an event above them is lost.
    pub reduced: u64,
    /// Requests that were open and have ended now.
    pub ended: u64,
    /// Whether something could not be read.
    pub is_damaged: bool,
    /// Where the old files are, as they were.
    pub files: PathBuf,
}

/// Makes a store of what can be read of the one in a folder, or of the one that was put aside there. Open requests end with the outcome
/// that was seen, if one was, else as `store_recovered`. `above` is the highest number that somebody has seen, if that is known.
///
/// # Errors
/// See [`OpenError`]; nothing has changed then but that the files may be put aside.
pub fn recover(folder: &Path, above: u64, now_ms: u64) -> Result<Rescue, OpenError> {
    rescue(folder, above, now_ms, true)
}

/// Makes an empty store in the place of the one in a folder, or of the one that was put aside there.
///
/// # Errors
/// See [`OpenError`]; nothing has changed then but that the files may be put aside.
pub fn reset(folder: &Path, above: u64, now_ms: u64) -> Result<Rescue, OpenError> {
    rescue(folder, above, now_ms, false)
}

fn rescue(folder: &Path, above: u64, now_ms: u64, keeps: bool) -> Result<Rescue, OpenError> {
    let place = Place::new(folder);
    let _lock = enter(&place)?;
    let aside = aside(&place, now_ms)?;
    let mut found = read(&place, &aside);
    found.lines = lines(&place);
    let after = found.highest.max(above);
    let beginning = Beginning { after, daemon_epoch: found.epoch, ..Beginning::fresh(now_ms) };
    let draft = schema::draft(&place, &beginning)?;
    let mut rescue = Rescue {
        stream_id: beginning.stream_id.clone(),
        after,
        head: after,
        kept: 0,
        reduced: 0,
        ended: 0,
        is_damaged: found.is_damaged,
        files: aside.clone(),
    };
    if keeps {
        let filled = draft.unchecked_transaction()?;
        fill(&filled, found, &mut rescue, now_ms)?;
        filled.commit()?;
    }
    schema::publish(&place, draft)?;
    rescue.files = place.decide(&aside).map_err(io)?;
    place.put_lines_away(&rescue.files).map_err(io)?;
    Ok(rescue)
}

/// Where the files are: put aside already, or now.
fn aside(place: &Place, now_ms: u64) -> Result<PathBuf, OpenError> {
    if let Some(aside) = place.aside().map_err(io)?.into_iter().next() {
        place.finish(&aside).map_err(io)?;
        return Ok(aside);
    }
    Ok(place.set_aside(now_ms).map_err(io)?)
}

/// All that can be read of a store.
#[derive(Default)]
struct Found {
    requests: BTreeMap<i64, Request>,
    tombstones: BTreeMap<i64, Tombstone>,
    incarnations: BTreeMap<i64, crate::Incarnation>,
    consumers: BTreeMap<i64, consumer::Consumer>,
    endpoints: Vec<(Endpoint, Vec<Letter>)>,
    stages: BTreeMap<String, Stage>,
    lines: Vec<Line>,
    /// The highest number that anything speaks of.
    highest: u64,
    pruned_through: u64,
    tombstone_floor: u64,
    epoch: u64,
    is_damaged: bool,
}

/// Reads from a copy, so that the files stay what they are.
fn read(place: &Place, aside: &Path) -> Found {
    let mut found = Found::default();
    let copy = place.folder().join("rescue");
    let _ = std::fs::remove_dir_all(&copy);
    let conn = copy_files(aside, &copy).map_err(io).and_then(|file| Ok(connection::writing(&file, limits::BUSY_MS)?));
    match conn {
        Ok(conn) => read_all(&conn, &mut found),
        Err(error) => {
            tracing::error!(%error, "nothing of the request store can be read");
            found.is_damaged = true;
        }
    }
    let _ = std::fs::remove_dir_all(&copy);
    found
}

fn copy_files(aside: &Path, copy: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(copy)?;
    for name in super::place::TRIO {
        // The index is made anew from the log.
        if !name.ends_with("-shm") && aside.join(name).exists() {
            drop(create(&copy.join(name))?);
            std::fs::copy(aside.join(name), copy.join(name))?;
        }
    }
    Ok(copy.join(super::place::TRIO[0]))
}

fn read_all(conn: &Connection, found: &mut Found) {
    match Meta::read(conn) {
        Ok(meta) => {
            found.highest = meta.head_seq;
            found.pruned_through = meta.pruned_through;
            found.tombstone_floor = meta.tombstone_floor;
            found.epoch = meta.daemon_epoch;
        }
        Err(_) => found.is_damaged = true,
    }
    let damaged = &mut found.is_damaged;
    found.requests = salvage(conn, "request", damaged, row::read);
    found.tombstones = salvage(conn, "tombstone", damaged, read_tombstone);
    found.incarnations = salvage(conn, "incarnation", damaged, |row| Ok(incarnation::read(row)?));
    found.consumers = salvage(conn, "consumer", damaged, |row| Ok(consumer::read(row)?));
    found.endpoints = webhook::salvage(conn).unwrap_or_else(|_| {
        *damaged = true;
        Vec::new()
    });
    let seqs = salvage(conn, "terminal_event", damaged, |row| Ok(row.get::<_, u64>("seq")?));
    for (request, stage) in salvage(conn, "outcome_stage", damaged, late::read_stage).into_values() {
        found.stages.insert(request, stage);
    }
    let numbers = found.requests.values().filter_map(|request| request.terminal_seq);
    let numbers = numbers.chain(found.tombstones.values().map(|tombstone| tombstone.terminal_seq));
    let numbers = numbers.chain(found.consumers.values().map(|consumer| consumer.acked_seq));
    found.highest = numbers.chain(seqs.into_values()).fold(found.highest, u64::max);
}

/// Reads a table from both ends, so that one damaged place costs what lies in it.
fn salvage<T>(
    conn: &Connection,
    table: &str,
    is_damaged: &mut bool,
    read: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> BTreeMap<i64, T> {
    let mut found = BTreeMap::new();
    for order in ["ASC", "DESC"] {
        let Ok(mut statement) = conn.prepare(&format!("SELECT rowid AS place, * FROM {table} ORDER BY rowid {order}"))
        else {
            *is_damaged = true;
            return found;
        };
        let Ok(mut rows) = statement.query([]) else { continue };
        loop {
            match rows.next() {
                Ok(None) => return found,
                Ok(Some(row)) => {
                    match row.get("place").map_err(StoreError::from).and_then(|place| Ok((place, read(row)?))) {
                        Ok((place, value)) => {
                            if found.insert(place, value).is_some() && order == "DESC" {
                                return found;
                            }
                        }
                        Err(_) => *is_damaged = true,
                    }
                }
                Err(_) => {
                    *is_damaged = true;
                    break;
                }
            }
        }
    }
    found
}

/// Outcomes that a corrupt database did not take. What is no line is skipped: a kill may have cut it.
fn lines(place: &Place) -> Vec<Line> {
    let text = std::fs::read(place.lines()).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Puts what was found into an empty store.
fn fill(conn: &Connection, found: Found, rescue: &mut Rescue, now_ms: u64) -> Result<(), OpenError> {
    conn.execute("UPDATE meta SET tombstone_floor = ?1", [found.tombstone_floor]).map_err(StoreError::from)?;
    for incarnation in found.incarnations.values() {
        incarnation::note(conn, incarnation)?;
    }
    for consumer in found.consumers.values() {
        conn.execute(
            "INSERT OR IGNORE INTO consumer VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (&consumer.name, &consumer.owner, consumer.acked_seq, false, consumer.created_at, consumer.updated_at),
        )
        .map_err(StoreError::from)?;
    }
    for (endpoint, letters) in &found.endpoints {
        webhook::restore(conn, endpoint, letters)?;
    }
    let (ended, open): (Vec<_>, Vec<_>) = found.requests.into_values().partition(|request| request.state.is_terminal());
    let mut ended: BTreeMap<u64, Request> =
        ended.into_iter().filter_map(|request| Some((request.terminal_seq?, request))).collect();
    // What is above the last number that is lost stays as it is; below it nothing can stay in a stream without holes.
    let mut lowest = rescue.after + 1;
    while lowest > found.pruned_through + 1 && ended.contains_key(&(lowest - 1)) {
        lowest -= 1;
    }
    let kept = ended.split_off(&lowest);
    rescue.reduced = ended.len() as u64;
    rescue.kept = kept.len() as u64;
    for tombstone in found.tombstones.values().cloned().chain(ended.into_values().filter_map(tombstone_of)) {
        put_tombstone(conn, &tombstone)?;
    }
    keep(conn, rescue, kept)?;
    rescue.ended = open.len() as u64;
    let mut stages = found.stages;
    for line in found.lines {
        stages.entry(line.request_id).or_insert(line.stage);
    }
    for request in open {
        end(conn, &request, stages.remove(request.id().as_str()), now_ms)?;
    }
    rescue.head = Meta::read(conn)?.head_seq;
    Ok(())
}

/// Ended requests with their numbers; the bodies say the new stream.
fn keep(conn: &Connection, rescue: &Rescue, kept: BTreeMap<u64, Request>) -> Result<(), StoreError> {
    let mut chain = crate::event::genesis(&rescue.stream_id);
    let through = rescue.after - kept.len() as u64;
    conn.execute("UPDATE meta SET pruned_through = ?1, pruned_chain = ?2, head_chain = ?2", (through, chain))?;
    for (seq, request) in kept {
        without_incarnation(conn, &request, row::insert)?;
        let at_ms = request.ended_at.unwrap_or(request.registration.created_at);
        let event = TerminalEvent::new(&request, &rescue.stream_id, seq, &chain, at_ms);
        insert_event(conn, &event)?;
        chain = event.chain;
        conn.execute("UPDATE meta SET head_chain = ?1", [chain])?;
    }
    Ok(())
}

/// An open request, and at once its end.
fn end(conn: &Connection, request: &Request, stage: Option<Stage>, now_ms: u64) -> Result<(), StoreError> {
    without_incarnation(conn, request, row::insert)?;
    let recovered = stage.map_or(Recovered::StoreRecovered, Recovered::Staged);
    let fail_points = FailPoints::default();
    let mut turn = Turn { conn, fail_points: &fail_points, newest: None };
    apply(&mut turn, request.id(), &Input::Recovered(recovered), now_ms)?;
    Ok(())
}

/// The agent's process of a request may be among what is lost: its id stays, under a process of which nothing is known.
fn without_incarnation(
    conn: &Connection,
    request: &Request,
    insert: impl Fn(&Connection, &Request) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if let Some(id) = &request.registration.incarnation_id {
        conn.execute(
            "INSERT OR IGNORE INTO incarnation (incarnation_id, daemon_epoch, boot_id, child_pid, child_start_ticks, nonce, \
                workspace_key, spawned_at, ended_at, end_reason) VALUES (?1, 0, '', 0, 0, '', '', 0, 0, 'lost')",
            [id],
        )?;
    }
    insert(conn, request)
}

fn tombstone_of(request: Request) -> Option<Tombstone> {
    Some(Tombstone {
        terminal_seq: request.terminal_seq?,
        ended_at: request.ended_at?,
        state: request.state,
        code: request.code,
        request_id: request.registration.request_id,
        owner: request.registration.owner,
        input_hash: request.registration.input_hash,
        hash_version: request.registration.hash_version,
    })
}

fn put_tombstone(conn: &Connection, tombstone: &Tombstone) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO tombstone (request_id, input_hash, hash_version, owner, state, code, terminal_seq, ended_at) \
         VALUES (:request_id, :input_hash, :hash_version, :owner, :state, :code, :terminal_seq, :ended_at)",
    )?
    .execute(named_params! {
        ":request_id": tombstone.request_id.as_str(),
        ":input_hash": tombstone.input_hash,
        ":hash_version": tombstone.hash_version,
        ":owner": tombstone.owner,
        ":state": tombstone.state.as_str(),
        ":code": tombstone.code.as_ref().map(crate::Code::as_str),
        ":terminal_seq": tombstone.terminal_seq,
        ":ended_at": tombstone.ended_at,
    })?;
    Ok(())
}

/// Outcomes on lines beside a file that opens after all become staged ones: recovery rolls them forward.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn absorb_lines(conn: &Connection, place: &Place, now_ms: u64) -> Result<(), StoreError> {
    if !place.lines().exists() {
        return Ok(());
    }
    let absorbed = conn.unchecked_transaction()?;
    for line in lines(place) {
        let Ok(request_id) = crate::RequestId::parse(&line.request_id) else { continue };
        match super::apply::stage(&absorbed, &request_id, &line.stage) {
            Ok(_) | Err(StoreError::Unknown) => {}
            Err(error) => return Err(error),
        }
    }
    absorbed.commit()?;
    let kept = place.folder().join(format!("kept-outcomes-{now_ms}.jsonl"));
    std::fs::rename(place.lines(), kept).map_err(io)
}
