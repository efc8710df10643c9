//! Whether the tables and indexes of a file are those that this program made.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::error::StoreError;
use super::schema::{self, made};
use super::verify::Depth;

/// A kind of thing, and its name.
type Thing = (String, String);

/// What is wrong where the list is no text: a bit of it fell over. No name of it may be asked for then, since the library takes every name
/// for text.
const NO_TEXT: &str = "the list of tables is no text";

/// A sentence for each thing that is missing, and for each that does something by itself. A start does without an index: it costs time
/// and no truth.
///
/// # Errors
/// When the file's own list cannot be read.
pub(super) fn look(conn: &Connection, depth: Depth) -> Result<Vec<String>, StoreError> {
    let model = Connection::open_in_memory()?;
    made(&model, schema::version(conn)?)?;
    let (expected, found) = (things(&model)?, things(conn)?);
    let (Some(expected), Some(found)) = (expected, found) else { return Ok(vec![NO_TEXT.to_owned()]) };
    let missing = expected.difference(&found).filter(|(kind, _)| depth == Depth::Whole || kind == "table");
    let added = found.difference(&expected).filter(|(kind, _)| kind == "trigger");
    let missing = missing.map(|(kind, name)| format!("the {kind} {name} is missing"));
    let added = added.map(|(kind, name)| format!("the {kind} {name} is none of this program's"));
    Ok(missing.chain(added).collect())
}

/// None where something of the list is no text.
fn things(conn: &Connection) -> Result<Option<BTreeSet<Thing>>, StoreError> {
    let mut statement = conn.prepare("SELECT type, name, sql FROM sqlite_schema")?;
    let mut rows = statement.query([])?;
    let mut things = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let text =
            |column| row.get_ref(column).map(|cell| cell.as_str_or_null().map(|text| text.unwrap_or("").to_owned()));
        let (Ok(kind), Ok(name), Ok(_)) = (text(0)?, text(1)?, text(2)?) else { return Ok(None) };
        things.insert((kind, name));
    }
    Ok(Some(things))
}
