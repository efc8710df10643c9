//! Whether the tables and indexes of a file are those that this program made.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::error::StoreError;
use super::schema::{self, made};
use super::verify::Depth;

/// A kind of thing, and its name.
type Thing = (String, String);

/// A sentence for each thing that is missing, and for each that does something by itself. A start does without an index: it costs time
/// and no truth.
///
/// # Errors
/// When the file's own list cannot be read.
pub(super) fn look(conn: &Connection, depth: Depth) -> Result<Vec<String>, StoreError> {
    let model = Connection::open_in_memory()?;
    made(&model, schema::version(conn)?)?;
    let (expected, found) = (things(&model)?, things(conn)?);
    let missing = expected.difference(&found).filter(|(kind, _)| depth == Depth::Whole || kind == "table");
    let added = found.difference(&expected).filter(|(kind, _)| kind == "trigger");
    let missing = missing.map(|(kind, name)| format!("the {kind} {name} is missing"));
    let added = added.map(|(kind, name)| format!("the {kind} {name} is none of this program's"));
    Ok(missing.chain(added).collect())
}

fn things(conn: &Connection) -> Result<BTreeSet<Thing>, StoreError> {
    let mut statement = conn.prepare("SELECT type, name FROM sqlite_schema")?;
    let things = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(things.collect::<Result<_, _>>()?)
}
