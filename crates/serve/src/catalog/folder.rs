//! The transcripts of a folder, by name and time alone: no file is opened here.

use std::fs::{DirEntry, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use transcript::layout::session_id_of_file_name;

use super::row::{Row, newest};
use crate::identity::is_file_id;
use crate::limits::LIST_ROWS_MAX;

/// A row for each transcript of the folder, in no order, or the newest of very many. A folder that is not there holds none.
///
/// # Errors
/// When the folder is there and cannot be read.
pub(super) fn rows(folder: &Path) -> io::Result<Vec<Row>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut rows = Vec::new();
    for entry in entries {
        rows.extend(row(&entry?));
        if rows.len() >= 2 * LIST_ROWS_MAX {
            newest(&mut rows, LIST_ROWS_MAX);
        }
    }
    Ok(rows)
}

/// The row of a directory entry; none of what is no transcript, or is gone by now.
fn row(entry: &DirEntry) -> Option<Row> {
    let name = entry.file_name();
    let id = session_id_of_file_name(name.to_str()?).filter(|id| is_file_id(id))?;
    let metadata = entry.metadata().ok()?;
    let metadata = if metadata.is_symlink() { std::fs::metadata(entry.path()).ok()? } else { metadata };
    metadata.is_file().then(|| Row { id: id.into(), at_ms: written_at_ms(&metadata) })
}

/// When a file was written to last, in epoch milliseconds.
pub(super) fn written_at_ms(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

/// When the names in a folder changed last, in epoch milliseconds; none for one that is not there.
///
/// # Errors
/// When it cannot be looked at.
pub(super) fn changed_at_ms(folder: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        metadata => Ok(Some(written_at_ms(&metadata?))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_transcripts_have_rows_and_each_has_its_file_s_time() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["one.jsonl", "one.ledger.jsonl", "one.lock", "a b.jsonl", "..jsonl", ".jsonl", "x..y.jsonl"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::create_dir(at("folder.jsonl")).unwrap();
        std::os::unix::fs::symlink(at("one.jsonl"), at("link.jsonl")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("broken.jsonl")).unwrap();
        let then = UNIX_EPOCH + Duration::from_millis(1_234_567);
        fs::File::options().write(true).open(at("one.jsonl")).unwrap().set_modified(then).unwrap();
        let mut found = rows(folder.path()).unwrap();
        newest(&mut found, 9);
        let found: Vec<_> = found.iter().map(|row| (&*row.id, row.at_ms)).collect();
        assert_eq!(found, [("link", 1_234_567), ("one", 1_234_567)]);
    }

    #[test]
    fn a_folder_that_is_not_there_holds_nothing_and_a_file_in_its_place_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(rows(&folder.path().join("none")).unwrap(), []);
        assert_eq!(changed_at_ms(&folder.path().join("none")).unwrap(), None);
        fs::write(folder.path().join("file"), "x").unwrap();
        assert!(rows(&folder.path().join("file")).is_err());
    }
}
