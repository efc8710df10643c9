//! Moving a store: one whole copy that goes on, and the source closed (return requests, section 2.15). The daemon is stopped.

use std::path::Path;

use super::connection;
use super::limits::BUSY_MS;
use super::open::{OpenError, enter, examine, known};
use super::place::{Place, create, flush_folder};
use super::room;
use super::schema::{self, io};
use super::verify::{Depth, Report, look};
use super::watermark::Levels;

/// Writes the store in a folder to one new file, which keeps the stream's id, and closes the store here: there are never two that go on.
/// Cut off in between, it can be done again. To open the copy, put it into a folder of its own as `requests.db`.
///
/// # Errors
/// See [`OpenError`]; also when there is a file at `target` already.
pub fn export(folder: &Path, target: &Path, now_ms: u64) -> Result<(), OpenError> {
    let place = Place::new(folder);
    let _lock = enter(&place)?;
    move_out(&place, target, now_ms).map_err(|error| room::named(&place, error))
}

fn move_out(place: &Place, target: &Path, now_ms: u64) -> Result<(), OpenError> {
    if target.exists() {
        return Err(OpenError::Store(io(std::io::ErrorKind::AlreadyExists.into())));
    }
    if let Some(what) = examine(place, BUSY_MS)? {
        return Err(OpenError::Corrupt { aside: place.folder().to_owned(), what });
    }
    let conn = connection::writing(&place.file(), BUSY_MS)?;
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    schema::copy(&conn, unfinished, place)?;
    // Closed here before the copy can be taken for a store.
    conn.execute("UPDATE meta SET closed_at = ?1 WHERE closed_at IS NULL", [now_ms])?;
    connection::checkpoint(&conn)?;
    let copy = connection::writing(unfinished, BUSY_MS)?;
    copy.execute("UPDATE meta SET closed_at = NULL", [])?;
    connection::checkpoint(&copy)?;
    copy.close().map_err(|(_, error)| error)?;
    create(unfinished).and_then(|file| file.sync_all()).map_err(io)?;
    std::fs::rename(unfinished, target).map_err(io)?;
    flush_folder(target.parent().unwrap_or_else(|| Path::new("/"))).map_err(io)?;
    Ok(())
}

/// Looks whether everything holds that must in the store in a folder, also while a daemon has it. Changes nothing.
///
/// # Errors
/// See [`OpenError`].
pub fn verify(folder: &Path) -> Result<Report, OpenError> {
    let place = Place::new(folder);
    let noted = Levels::read(&place.watermark());
    let looked = known(&place.file(), BUSY_MS).and_then(|conn| Ok(look(&conn, &noted, Depth::Whole, false)?));
    looked.map_err(|error| room::named(&place, error))
}
