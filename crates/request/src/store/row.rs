//! A request as columns and back.

use std::collections::HashMap;
use std::sync::LazyLock;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params_from_iter};

use super::error::StoreError;
use crate::{
    ArmedCursor, Baseline, Code, Evidence, Hash, InputWritten, Options, Phase, Registration, Request, RequestId, State,
};

impl ToSql for Hash {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.as_slice().to_sql()
    }
}

impl FromSql for Hash {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        <[u8; 32]>::column_result(value).map(Self)
    }
}

/// All columns, by their names.
const COLUMNS: &str = "request_id, owner, input_hash, hash_version, session_id, incarnation_id, prompt_id, state, phase, \
    input_written, code, detail, rev, options, timeout_ms, deadline_at, prompt_hash, prompt_bytes, baseline_prompt_id, \
    baseline_turn, armed_event_id, armed_tail, user_record_id, evidence, created_at, admitted_at, dispatched_at, \
    submitted_at, bound_at, ended_at, stop_reason, final_message, final_bytes, final_sha256, final_truncated, terminal_seq";

/// A select of rows with what follows `FROM request`. They come without their final messages: no receipt has one, and a page of the list
/// would else hold a thousand of them. Whoever wants one reads the event.
pub(super) fn select(rest: &str) -> String {
    format!("SELECT {} FROM request {rest}", COLUMNS.replacen("final_message", "NULL AS final_message", 1))
}

/// A select of whole rows beside the events that ended them; of an event without its row all columns of that are null.
pub(super) fn with_event(rest: &str) -> String {
    let columns: Vec<_> = COLUMNS.split(", ").map(|column| format!("request.{column} AS {column}")).collect();
    format!(
        "SELECT {}, event.seq AS event_seq, event.payload AS event_payload, event.chain AS event_chain \
         FROM terminal_event AS event LEFT JOIN request ON request.request_id = event.request_id {rest}",
        columns.join(", ")
    )
}

/// The request with an id, without its final message.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn find(conn: &Connection, request_id: &str) -> Result<Option<Request>, StoreError> {
    let mut statement = conn.prepare_cached(&select("WHERE request_id = ?1"))?;
    statement.query_row([request_id], |row| Ok(read(row))).optional()?.transpose()
}

/// The value under a name. The library looks a name up by comparing it with those of all columns, which took more time than all else that
/// was done with a row; here it is looked for first where [`COLUMNS`] has it.
fn cell<T: FromSql>(row: &Row<'_>, name: &str) -> rusqlite::Result<T> {
    static PLACES: LazyLock<HashMap<&str, usize>> =
        LazyLock::new(|| COLUMNS.split(", ").enumerate().map(|(place, name)| (name, place)).collect());
    let is_there = |place: &usize| row.as_ref().column_name(*place).is_ok_and(|there| there == name);
    match PLACES.get(name).copied().filter(is_there) {
        Some(place) => row.get(place),
        None => row.get(name),
    }
}

/// Reads the row that a select of [`select`] stands on.
///
/// # Errors
/// When a word in it is not known.
pub(super) fn read(row: &Row<'_>) -> Result<Request, StoreError> {
    let registration = registration(row)?;
    let armed_event: Option<u64> = cell(row, "armed_event_id")?;
    let tail = cell(row, "armed_tail")?;
    Ok(Request {
        registration,
        state: word(row, "state", State::parse)?,
        phase: word(row, "phase", Phase::parse)?,
        input_written: word(row, "input_written", InputWritten::parse)?,
        code: maybe_word(row, "code", Code::parse)?,
        detail: cell(row, "detail")?,
        rev: cell(row, "rev")?,
        armed: armed_event.map(|event_id| ArmedCursor { event_id, tail }),
        user_record_id: cell(row, "user_record_id")?,
        evidence: maybe_word(row, "evidence", Evidence::parse)?,
        admitted_at: cell(row, "admitted_at")?,
        dispatched_at: cell(row, "dispatched_at")?,
        submitted_at: cell(row, "submitted_at")?,
        bound_at: cell(row, "bound_at")?,
        ended_at: cell(row, "ended_at")?,
        stop_reason: cell(row, "stop_reason")?,
        final_message: cell(row, "final_message")?,
        final_bytes: cell(row, "final_bytes")?,
        final_sha256: cell(row, "final_sha256")?,
        final_truncated: cell(row, "final_truncated")?,
        terminal_seq: cell(row, "terminal_seq")?,
    })
}

fn registration(row: &Row<'_>) -> Result<Registration, StoreError> {
    let options: String = cell(row, "options")?;
    let options: Options = serde_json::from_str(&options)
        .map_err(|_| StoreError::Unreadable { column: "options", value: options.clone() })?;
    Ok(Registration {
        request_id: word(row, "request_id", |text| RequestId::parse(text).ok())?,
        owner: cell(row, "owner")?,
        input_hash: cell(row, "input_hash")?,
        hash_version: cell(row, "hash_version")?,
        session_id: cell(row, "session_id")?,
        incarnation_id: cell(row, "incarnation_id")?,
        prompt_id: cell(row, "prompt_id")?,
        options,
        timeout_ms: cell(row, "timeout_ms")?,
        deadline_at: cell(row, "deadline_at")?,
        prompt_hash: cell(row, "prompt_hash")?,
        prompt_bytes: cell(row, "prompt_bytes")?,
        baseline: Baseline { prompt_id: cell(row, "baseline_prompt_id")?, turn: cell(row, "baseline_turn")? },
        created_at: cell(row, "created_at")?,
    })
}

/// A word of a closed set. One that is not known is an error and no default (return requests, section 2.15).
///
/// # Errors
/// When it is not known.
pub(super) fn word<T>(row: &Row<'_>, column: &'static str, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
    let text: String = cell(row, column)?;
    parse(&text).ok_or(StoreError::Unreadable { column, value: text })
}

/// The same where there may be none.
///
/// # Errors
/// When it is not known.
pub(super) fn maybe_word<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let Some(text) = cell::<Option<String>>(row, column)? else { return Ok(None) };
    parse(&text).map(Some).ok_or(StoreError::Unreadable { column, value: text })
}

/// Puts a new row in.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn insert(conn: &Connection, request: &Request) -> Result<(), StoreError> {
    let asked = &request.registration;
    let options = serde_json::to_string(&asked.options).map_err(|error| StoreError::Refused(error.to_string()))?;
    let mut statement = conn.prepare_cached(
        "INSERT INTO request (request_id, owner, input_hash, hash_version, session_id, prompt_id, state, phase, \
            input_written, rev, options, timeout_ms, deadline_at, prompt_hash, prompt_bytes, baseline_turn, created_at, \
            final_truncated) \
         VALUES (:request_id, :owner, :input_hash, :hash_version, :session_id, :prompt_id, 'registered', 'registered', \
            'no', 0, :options, :timeout_ms, :deadline_at, :prompt_hash, :prompt_bytes, 0, :created_at, 0)",
    )?;
    statement.execute(named_params! {
        ":request_id": asked.request_id.as_str(),
        ":owner": asked.owner,
        ":input_hash": asked.input_hash,
        ":hash_version": asked.hash_version,
        ":session_id": asked.session_id,
        ":prompt_id": asked.prompt_id,
        ":options": options,
        ":timeout_ms": asked.timeout_ms,
        ":deadline_at": asked.deadline_at,
        ":prompt_hash": asked.prompt_hash,
        ":prompt_bytes": asked.prompt_bytes,
        ":created_at": asked.created_at,
    })?;
    // The row that was just made.
    let mut made = Request::new(asked.clone());
    (made.rev, made.registration.incarnation_id) = (0, None);
    update(conn, request, &made)
}

/// Writes what may have changed, if the row is still `was`. A column of an index is written only where it is another one: SQLite writes
/// the indexes of every column that is named anew, changed or not, which made six pages of a commit that changes two.
///
/// # Errors
/// See [`StoreError`]; also when the row is another one by now.
pub(super) fn update(conn: &Connection, request: &Request, was: &Request) -> Result<(), StoreError> {
    let mut columns = indexed(request, was);
    columns.extend(changing(request));
    let names: Vec<_> = columns.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let sql =
        format!("UPDATE request SET {} WHERE request_id = ? AND rev = ? AND terminal_seq IS NULL", names.join(", "));
    let id = Box::new(request.id().as_str());
    let values = columns.into_iter().map(|(_, value)| value).chain([id as Value<'_>, Box::new(was.rev)]);
    let changed = conn.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    if changed == 1 { Ok(()) } else { Err(StoreError::Refused("the request changed meanwhile".to_owned())) }
}

type Value<'r> = Box<dyn ToSql + 'r>;

/// The columns of indexes that are others now.
fn indexed<'r>(request: &'r Request, was: &Request) -> Vec<(&'static str, Value<'r>)> {
    let mut columns: Vec<(&str, Value<'r>)> = Vec::new();
    let incarnation_id = &request.registration.incarnation_id;
    if *incarnation_id != was.registration.incarnation_id {
        columns.push(("incarnation_id", Box::new(incarnation_id)));
    }
    if request.state != was.state {
        columns.push(("state", Box::new(request.state.as_str())));
    }
    if request.terminal_seq != was.terminal_seq {
        columns.push(("terminal_seq", Box::new(request.terminal_seq)));
    }
    columns
}

/// The columns that no index has.
fn changing(request: &Request) -> [(&'static str, Value<'_>); 21] {
    let baseline = &request.registration.baseline;
    let armed = request.armed.as_ref();
    [
        ("phase", Box::new(request.phase.as_str())),
        ("input_written", Box::new(request.input_written.as_str())),
        ("code", Box::new(request.code.as_ref().map(Code::as_str))),
        ("detail", Box::new(&request.detail)),
        ("rev", Box::new(request.rev)),
        ("baseline_prompt_id", Box::new(&baseline.prompt_id)),
        ("baseline_turn", Box::new(baseline.turn)),
        ("armed_event_id", Box::new(armed.map(|armed| armed.event_id))),
        ("armed_tail", Box::new(armed.and_then(|armed| armed.tail.as_deref()))),
        ("user_record_id", Box::new(&request.user_record_id)),
        ("evidence", Box::new(request.evidence.map(Evidence::as_str))),
        ("admitted_at", Box::new(request.admitted_at)),
        ("dispatched_at", Box::new(request.dispatched_at)),
        ("submitted_at", Box::new(request.submitted_at)),
        ("bound_at", Box::new(request.bound_at)),
        ("ended_at", Box::new(request.ended_at)),
        ("stop_reason", Box::new(&request.stop_reason)),
        ("final_message", Box::new(&request.final_message)),
        ("final_bytes", Box::new(request.final_bytes)),
        ("final_sha256", Box::new(request.final_sha256)),
        ("final_truncated", Box::new(request.final_truncated)),
    ]
}
