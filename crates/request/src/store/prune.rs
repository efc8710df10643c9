//! What is forgotten, and when (return requests, section 2.15): a prefix of the stream, then tombstones, then agent processes.
//!
//! Each step is a small transaction of its own: between two of them others write, and a kill leaves a store that is pruned a little less.

use rusqlite::{Connection, OptionalExtension as _};

use super::command::Turn;
use super::error::StoreError;
use super::limits::{
    KEPT_MS, KEPT_REQUESTS, PROTECTION_TIMES, PRUNE_STEP, STORE_BYTES_MAX, TOMBSTONE_MS, VACUUM_STEP_PAGES,
};
use super::meta::Meta;

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Milliseconds for which an ended request keeps its payload.
    pub kept_ms: u64,
    /// How many keep it whatever their age.
    pub kept_requests: u64,
    /// Bytes of the file above which the oldest go earlier.
    pub bytes_max: u64,
    /// Milliseconds for which the id of a pruned request is remembered.
    pub tombstone_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { kept_ms: KEPT_MS, kept_requests: KEPT_REQUESTS, bytes_max: STORE_BYTES_MAX, tombstone_ms: TOMBSTONE_MS }
    }
}

/// What was forgotten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Requests that became tombstones.
    pub requests: u64,
    /// Tombstones that are gone.
    pub tombstones: u64,
    /// Agent processes that are gone.
    pub incarnations: u64,
    /// Consumers that were protected and lost that.
    pub unprotected: u64,
    /// Whether there is more to do.
    pub is_more: bool,
}

impl Pruned {
    /// What two steps come to.
    #[must_use]
    pub(super) const fn and(self, next: Self) -> Self {
        Self {
            requests: self.requests + next.requests,
            tombstones: self.tombstones + next.tombstones,
            incarnations: self.incarnations + next.incarnations,
            unprotected: self.unprotected + next.unprotected,
            is_more: next.is_more,
        }
    }
}

/// One step: at most [`PRUNE_STEP`] of each.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn step(turn: &Turn<'_>, retention: &Retention, now_ms: u64) -> Result<Pruned, StoreError> {
    let conn = turn.conn;
    let meta = Meta::read(conn)?;
    let through = target(conn, &meta, retention, now_ms)?;
    let mut pruned = Pruned::default();
    if through > meta.pruned_through {
        pruned.requests = through - meta.pruned_through;
        pruned.unprotected = cut(conn, through)?;
    }
    pruned.tombstones = forget(conn, now_ms.saturating_sub(retention.tombstone_ms))?;
    // All of them are looked at, which is done once: when no more requests go that hold one.
    if pruned.requests < PRUNE_STEP {
        pruned.incarnations = forget_incarnations(conn, now_ms.saturating_sub(retention.kept_ms))?;
    }
    pruned.is_more = [pruned.requests, pruned.tombstones, pruned.incarnations].contains(&PRUNE_STEP);
    Ok(pruned)
}

/// The number through which may be pruned in this step.
fn target(conn: &Connection, meta: &Meta, retention: &Retention, now_ms: u64) -> Result<u64, StoreError> {
    let too_old = |times: u64| {
        let before = now_ms.saturating_sub(retention.kept_ms.saturating_mul(times));
        let through = meta.head_seq.saturating_sub(retention.kept_requests.saturating_mul(times));
        // No further than a step goes: how much else is old enough does not matter, and is not looked through each time.
        through_older(conn, meta, before, through.min(meta.pruned_through + PRUNE_STEP))
    };
    let mut target = too_old(1)?;
    let bytes = bytes_used(conn)?;
    if bytes > retention.bytes_max && target == meta.pruned_through {
        target = (target + PRUNE_STEP).min(meta.head_seq);
        tracing::warn!(bytes, through = target, "the request store is too large; the oldest requests go early");
    }
    let mut statement = conn.prepare_cached("SELECT min(acked_seq) FROM consumer WHERE protect = 1")?;
    let Some(held): Option<u64> = statement.query_row([], |row| row.get(0))? else { return Ok(target) };
    if bytes > retention.bytes_max.saturating_mul(PROTECTION_TIMES) {
        return Ok(target);
    }
    Ok(target.min(held.max(too_old(PROTECTION_TIMES)?)))
}

/// The last number of the prefix of events before a time, and not above a number.
fn through_older(conn: &Connection, meta: &Meta, before_ms: u64, through: u64) -> Result<u64, StoreError> {
    if through <= meta.pruned_through {
        return Ok(meta.pruned_through);
    }
    let mut statement = conn.prepare_cached(
        "SELECT seq FROM terminal_event WHERE seq > ?1 AND seq <= ?2 AND at >= ?3 ORDER BY seq LIMIT 1",
    )?;
    let young: Option<u64> =
        statement.query_row((meta.pruned_through, through, before_ms), |row| row.get(0)).optional()?;
    Ok(young.map_or(through, |young| young - 1))
}

/// Bytes of the file that hold something.
fn bytes_used(conn: &Connection) -> Result<u64, StoreError> {
    let pragma = |name: &str| conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, u64>(0));
    Ok(pragma("page_count")?.saturating_sub(pragma("freelist_count")?) * pragma("page_size")?)
}

/// Makes tombstones of all requests through a number. Says how many consumers had not come so far and were protected until now.
fn cut(conn: &Connection, through: u64) -> Result<u64, StoreError> {
    conn.prepare_cached(
        "INSERT INTO tombstone (request_id, input_hash, hash_version, owner, state, code, terminal_seq, ended_at) \
         SELECT request_id, input_hash, hash_version, owner, state, code, terminal_seq, coalesce(ended_at, event.at) \
         FROM request JOIN terminal_event AS event USING (request_id) WHERE event.seq <= ?1",
    )?
    .execute([through])?;
    conn.prepare_cached(
        "UPDATE meta SET pruned_through = ?1, pruned_chain = (SELECT chain FROM terminal_event WHERE seq = ?1)",
    )?
    .execute([through])?;
    conn.prepare_cached("DELETE FROM terminal_event WHERE seq <= ?1")?.execute([through])?;
    conn.prepare_cached("DELETE FROM request WHERE terminal_seq <= ?1")?.execute([through])?;
    let unprotected = conn
        .prepare_cached("UPDATE consumer SET protect = 0 WHERE protect = 1 AND acked_seq < ?1")?
        .execute([through])?;
    Ok(unprotected as u64)
}

/// Drops tombstones of requests that ended before a time. Ids that say that they are older are not known any more from here on.
fn forget(conn: &Connection, before_ms: u64) -> Result<u64, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT max(ended_at) FROM (SELECT ended_at FROM tombstone WHERE ended_at < ?1 ORDER BY ended_at, rowid LIMIT ?2)",
    )?;
    let Some(floor): Option<u64> = statement.query_row((before_ms, PRUNE_STEP), |row| row.get(0))? else {
        return Ok(0);
    };
    let gone = conn
        .prepare_cached(
            "DELETE FROM tombstone WHERE rowid IN \
                (SELECT rowid FROM tombstone WHERE ended_at < ?1 ORDER BY ended_at, rowid LIMIT ?2)",
        )?
        .execute((before_ms, PRUNE_STEP))?;
    // Made before it ended: an id of that very millisecond is forgotten, too.
    conn.prepare_cached("UPDATE meta SET tombstone_floor = max(tombstone_floor, ?1 + 1)")?.execute([floor])?;
    Ok(gone as u64)
}

/// Drops agent processes that are gone and that no request refers to.
fn forget_incarnations(conn: &Connection, before_ms: u64) -> Result<u64, StoreError> {
    let gone = conn
        .prepare_cached(
            "DELETE FROM incarnation WHERE incarnation_id IN \
                (SELECT incarnation_id FROM incarnation WHERE ended_at < ?1 AND NOT EXISTS \
                    (SELECT 1 FROM request WHERE request.incarnation_id = incarnation.incarnation_id) LIMIT ?2)",
        )?
        .execute((before_ms, PRUNE_STEP))?;
    Ok(gone as u64)
}

/// Gives some free pages back to the disk. Whether there are more.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn vacuum(conn: &Connection) -> Result<bool, StoreError> {
    let free = |conn: &Connection| conn.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0));
    let before = free(conn)?;
    if before == 0 {
        return Ok(false);
    }
    let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_STEP_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let after = free(conn)?;
    Ok(after > 0 && after < before)
}
