//! From a cursor to a page and the next cursor. What is on disk and what lives comes in by functions, so that a model can stand in.

use std::sync::{Arc, Mutex};

use super::cursor::Cursor;
use super::fill::{Bounds, Filled, fill};
use super::row::{Row, behind};
use super::walks::Walks;
use crate::sidecar::Place;
use crate::sync::lock;

/// What is asked for.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) place: Place,
    pub(super) cursor: Option<&'a Cursor>,
    pub(super) bounds: Bounds,
}

/// The page behind a cursor, or the first one, and where the next one begins. `rows` is asked only where no walk goes on.
///
/// # Errors
/// Those of `rows`.
pub(super) fn page<T, E>(
    walks: &Mutex<Walks>,
    asked: &Asked<'_>,
    rows: impl FnOnce() -> Result<Vec<Row>, E>,
    look: impl FnMut(&Row) -> Option<T>,
) -> Result<(Filled<T>, Option<Cursor>), E> {
    let resumed = asked.cursor.and_then(|cursor| lock(walks).resume(cursor));
    let (walk, rows, from) = match resumed {
        Some(walk) => (Some(walk.number), walk.rows, walk.from),
        None => {
            let rows = rows()?;
            let from = asked.cursor.map_or(0, |cursor| behind(&rows, cursor.at_ms, &cursor.id));
            (None, Arc::from(rows), from)
        }
    };
    let filled = fill(&rows, from, asked.bounds, look);
    let next = filled.last.map(|last| {
        let walk = walk.unwrap_or_else(|| lock(walks).begin(Arc::clone(&rows)));
        let row = &rows[last];
        Cursor { place: asked.place, walk, at: last + 1, at_ms: row.at_ms, id: row.id.to_string() }
    });
    Ok((filled, next))
}
