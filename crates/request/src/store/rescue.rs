//! What an operator does with a store that is not sound, or that moves (return requests, sections 2.15 and 2.16). The daemon is stopped.
//!
//! After a recovery or a reset the stream is another one, with an id of its own, and its numbers go on above the highest one that anything
//! still speaks of: no consumer can take a new event for an old one. What may be forgotten is not free to be asked again as far as an id
//! tells its age: ids of version 7 that are older than a lossy rescue are expired.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, named_params};

use super::apply::{apply, insert_event};
use super::command::Turn;
use super::error::StoreError;
use super::lines::{self, Line};
use super::meta::Meta;
use super::open::{OpenError, enter, is_known, known};
use super::place::{Place, TRIO, flush_folder};
use super::register::{Tombstone, tombstone};
use super::salvage::{self, Found};
use super::schema::{self, Beginning, Header, io};
use super::watermark::Watermark;
use super::{incarnation, limits, room, row, webhook};
use crate::fail_points::FailPoints;
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
    /// Those of them that ended with an outcome from the lines beside the database.
    pub outcomes: u64,
    /// Whether something could not be read, or is known to be missing.
    pub is_damaged: bool,
    /// Whether nothing of the database could be read at all.
    pub is_unreadable: bool,
    /// Whether it is known how far the numbers of the old stream went.
    pub is_number_known: bool,
    /// Where the old files are, as they were.
    pub files: PathBuf,
}

/// Makes a store of what can be read of the one in a folder, or of the one that was put aside there. Open requests end with the outcome
/// that was seen, if one was, else as `store_recovered`. `above` is the highest number that somebody has seen, if that is known.
///
/// # Errors
/// See [`OpenError`]; nothing has changed then.
pub fn recover(folder: &Path, above: u64, now_ms: u64) -> Result<Rescue, OpenError> {
    rescue(folder, above, now_ms, true)
}

/// Makes an empty store in the place of the one in a folder, or of the one that was put aside there.
///
/// # Errors
/// See [`OpenError`]; nothing has changed then.
pub fn reset(folder: &Path, above: u64, now_ms: u64) -> Result<Rescue, OpenError> {
    rescue(folder, above, now_ms, false)
}

fn rescue(folder: &Path, above: u64, now_ms: u64, keeps: bool) -> Result<Rescue, OpenError> {
    let place = Place::new(folder);
    let _lock = enter(&place)?;
    let rescue = make(&place, above, now_ms, keeps).and_then(|made| replace(&place, made, now_ms));
    rescue.map_err(|error| {
        let error = room::named(&place, error);
        schema::remove_draft(&place);
        let _ = std::fs::remove_file(place.watermark_draft());
        error
    })
}

/// A new store that is whole and on the disk, and not in its place yet.
struct Made {
    rescue: Rescue,
    /// Whether the old files are put aside already.
    is_aside: bool,
}

/// Makes the new store beside the old one, of which nothing is moved.
fn make(place: &Place, above: u64, now_ms: u64, keeps: bool) -> Result<Made, OpenError> {
    let aside = aside(place)?;
    let files = aside.clone().unwrap_or_else(|| place.folder().to_owned());
    let mut found = salvage::read(place, &files)?;
    // One more than the latest time: what was taken in that very millisecond is below the floor, too, and so is what this floor let in.
    let wall_ms = found.wall_ms.max(now_ms).min(limits::BORN_MS_MAX) + 1;
    if found.is_damaged || !keeps {
        // What is forgotten now may have been asked before, under an id that a clock made which was ahead.
        let floor = (wall_ms + limits::CLOCK_AHEAD_MS).min(limits::BORN_MS_MAX);
        found.tombstone_floor = found.tombstone_floor.max(floor);
    }
    let after = found.highest.max(above);
    let beginning = Beginning { after, daemon_epoch: found.epoch, ..Beginning::fresh(now_ms) };
    let draft = schema::draft(place, &beginning)?;
    let mut rescue = Rescue {
        stream_id: beginning.stream_id.clone(),
        after,
        head: after,
        kept: 0,
        reduced: 0,
        ended: 0,
        outcomes: 0,
        is_damaged: found.is_damaged,
        is_unreadable: found.is_damaged && found.is_empty(),
        is_number_known: found.is_highest_known || above > 0,
        files,
    };
    let filled = draft.unchecked_transaction()?;
    filled.execute("UPDATE meta SET tombstone_floor = ?1, last_wall_ms = ?2", (found.tombstone_floor, wall_ms))?;
    if keeps {
        fill(&filled, found, lines::read(place), &mut rescue, now_ms)?;
    }
    let meta = Meta::read(&filled)?;
    filled.commit()?;
    schema::finish(place, draft)?;
    let _ = std::fs::remove_file(place.watermark_draft());
    Watermark::begin(&place.watermark_draft(), &meta)?.end();
    Ok(Made { rescue, is_aside: aside.is_some() })
}

/// Puts the new store in the place of the old one: from here on only names change, which takes no room.
fn replace(place: &Place, made: Made, now_ms: u64) -> Result<Rescue, OpenError> {
    let Made { mut rescue, is_aside } = made;
    let aside = if is_aside { rescue.files } else { place.set_aside(now_ms).map_err(io)? };
    if let Err(error) = schema::publish(place) {
        // Where the new one has come to its place after all, it is for the next rescue to decide.
        if !is_aside && !place.file().exists() {
            place.put_back(&aside).map_err(io)?;
        }
        return Err(error.into());
    }
    rescue.files = place.decide(&aside).map_err(io)?;
    place.put_away(&rescue.files).map_err(io)?;
    std::fs::rename(place.watermark_draft(), place.watermark())
        .and_then(|()| flush_folder(place.folder()))
        .map_err(io)?;
    Ok(rescue)
}

/// Where the files are if they are put aside already. What this program does not know is not touched.
fn aside(place: &Place) -> Result<Option<PathBuf>, OpenError> {
    if let Some(aside) = place.aside().map_err(io)?.into_iter().next() {
        place.finish(&aside).map_err(io)?;
        if let Ok(Header::Version(found)) = schema::header(&aside.join(TRIO[0])) {
            is_known(found)?;
        }
        return Ok(Some(aside));
    }
    match known(&place.file(), limits::BUSY_MS) {
        Err(error @ (OpenError::Newer { .. } | OpenError::UnknownVersion { .. })) => Err(error),
        // Also one whose header says that it is another program's: that may be the damage, and nothing of it is lost.
        _ => Ok(None),
    }
}

/// Puts what was found into an empty store.
fn fill(conn: &Connection, found: Found, lines: Vec<Line>, rescue: &mut Rescue, now_ms: u64) -> Result<(), OpenError> {
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
    rescue.reduced = (ended.len() + found.doubted.len()) as u64;
    rescue.kept = kept.len() as u64;
    for tombstone in
        found.tombstones.values().cloned().chain(ended.into_values().chain(found.doubted).filter_map(tombstone_of))
    {
        put_tombstone(conn, &tombstone)?;
    }
    keep(conn, rescue, kept)?;
    finish(conn, open, found.stages, lines, rescue, now_ms)
}

/// Ends what was open, and what only a line still knows.
fn finish(
    conn: &Connection,
    open: Vec<Request>,
    mut stages: BTreeMap<String, Stage>,
    lines: Vec<Line>,
    rescue: &mut Rescue,
    now_ms: u64,
) -> Result<(), OpenError> {
    let mut told = BTreeMap::new();
    for line in lines {
        // The first one of a request stands.
        told.entry(line.request_id.clone()).or_insert(line);
    }
    for request in open {
        let line = told.remove(request.id().as_str()).filter(|_| !stages.contains_key(request.id().as_str()));
        rescue.outcomes += u64::from(line.is_some());
        rescue.ended += 1;
        let stage = stages.remove(request.id().as_str()).or_else(|| line.map(|line| line.stage));
        end(conn, &request, stage, now_ms)?;
    }
    for (request, stage) in told.into_values().filter_map(Line::into_request) {
        let id = request.id().as_str();
        if row::find(conn, id)?.is_none() && tombstone(conn, id)?.is_none() {
            rescue.outcomes += 1;
            rescue.ended += 1;
            end(conn, &request, Some(stage), now_ms)?;
        }
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
