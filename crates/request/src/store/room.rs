//! Whether an error of the disk comes from there being no room on it. SQLite says `disk I/O error` where its index of the log finds none,
//! and where a quota is used up; so it is asked for some.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use super::error::StoreError;
use super::limits::ROOM_BYTES;
use super::open::OpenError;
use super::place::{FILE_MODE, Place};

/// The same error, or that the disk is full, where it is.
pub(super) fn named(place: &Place, error: OpenError) -> OpenError {
    match error {
        OpenError::Store(StoreError::Io(_)) if !is_there(place) => StoreError::Full.into(),
        error => error,
    }
}

/// Whether the disk takes something. One that fails otherwise has room for all that is known.
pub(super) fn is_there(place: &Place) -> bool {
    let taken = take(place);
    let _ = std::fs::remove_file(place.room());
    !taken.is_err_and(|error| is_full(&error))
}

/// Whether it is for want of room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn take(place: &Place) -> io::Result<()> {
    let mut file: File = File::options().write(true).create(true).truncate(true).mode(FILE_MODE).open(place.room())?;
    file.write_all(&vec![0xa5; ROOM_BYTES])?;
    file.sync_all()
}

#[cfg(test)]
mod tests;
