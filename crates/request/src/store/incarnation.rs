//! The lives of agent processes.

use rusqlite::{Connection, Row, named_params};

use super::error::StoreError;
use crate::Incarnation;

/// Notes a process before it gets its first prompt. Noted again it is the same.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn note(conn: &Connection, incarnation: &Incarnation) -> Result<(), StoreError> {
    conn.prepare_cached(
        "INSERT INTO incarnation (incarnation_id, daemon_epoch, boot_id, child_pid, child_start_ticks, nonce, agent_name, \
            agent_version, protocol_version, workspace_key, spawned_at, ended_at, end_reason) \
         VALUES (:incarnation_id, :daemon_epoch, :boot_id, :child_pid, :child_start_ticks, :nonce, :agent_name, \
            :agent_version, :protocol_version, :workspace_key, :spawned_at, :ended_at, :end_reason) \
         ON CONFLICT (incarnation_id) DO UPDATE SET agent_name = excluded.agent_name, \
            agent_version = excluded.agent_version, protocol_version = excluded.protocol_version",
    )?
    .execute(named_params! {
        ":incarnation_id": incarnation.incarnation_id,
        ":daemon_epoch": incarnation.daemon_epoch,
        ":boot_id": incarnation.boot_id,
        ":child_pid": incarnation.child_pid,
        ":child_start_ticks": incarnation.child_start_ticks,
        ":nonce": incarnation.nonce,
        ":agent_name": incarnation.agent_name,
        ":agent_version": incarnation.agent_version,
        ":protocol_version": incarnation.protocol_version,
        ":workspace_key": incarnation.workspace_key,
        ":spawned_at": incarnation.spawned_at,
        ":ended_at": incarnation.ended_at,
        ":end_reason": incarnation.end_reason,
    })?;
    Ok(())
}

/// Notes that a process is gone. The first word on that stands.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn end(conn: &Connection, incarnation_id: &str, reason: &str, at_ms: u64) -> Result<(), StoreError> {
    let mut statement = conn.prepare_cached(
        "UPDATE incarnation SET ended_at = coalesce(ended_at, ?2), end_reason = coalesce(end_reason, ?3) \
         WHERE incarnation_id = ?1",
    )?;
    match statement.execute((incarnation_id, at_ms, reason))? {
        0 => Err(StoreError::UnknownIncarnation),
        _ => Ok(()),
    }
}

/// The process with an id.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn find(conn: &Connection, incarnation_id: &str) -> Result<Option<Incarnation>, StoreError> {
    many(conn, "WHERE incarnation_id = ?1", &[&incarnation_id]).map(|found| found.into_iter().next())
}

/// All processes of which nobody has said that they are gone, oldest first.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn open(conn: &Connection) -> Result<Vec<Incarnation>, StoreError> {
    many(conn, "WHERE ended_at IS NULL ORDER BY spawned_at, incarnation_id", &[])
}

fn many(conn: &Connection, rest: &str, params: &[&dyn rusqlite::ToSql]) -> Result<Vec<Incarnation>, StoreError> {
    let mut statement = conn.prepare_cached(&format!("SELECT * FROM incarnation {rest}"))?;
    let rows = statement.query_map(params, read)?;
    rows.map(|row| row.map_err(StoreError::from)).collect()
}

/// Reads a whole row.
///
/// # Errors
/// When a column is of another kind.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Incarnation> {
    Ok(Incarnation {
        incarnation_id: row.get("incarnation_id")?,
        daemon_epoch: row.get("daemon_epoch")?,
        boot_id: row.get("boot_id")?,
        child_pid: row.get("child_pid")?,
        child_start_ticks: row.get("child_start_ticks")?,
        nonce: row.get("nonce")?,
        agent_name: row.get("agent_name")?,
        agent_version: row.get("agent_version")?,
        protocol_version: row.get("protocol_version")?,
        workspace_key: row.get("workspace_key")?,
        spawned_at: row.get("spawned_at")?,
        ended_at: row.get("ended_at")?,
        end_reason: row.get("end_reason")?,
    })
}
