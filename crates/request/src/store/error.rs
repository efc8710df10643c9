//! Why the store did not do what it was asked.

use rusqlite::ErrorCode;

/// What a command of the store may fail with. Only the first five are the store's own trouble; they pass through
/// [`StoreError::is_trouble`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the file locked for longer than the busy timeout, or too many commands wait. Worth another try.
    #[error("the request store is busy")]
    Busy,
    /// The disk took nothing more.
    #[error("the disk of the request store is full")]
    Full,
    /// The disk failed. What was asked for may or may not be in the file; the store finds out before it decides anything again.
    #[error("the request store cannot be read or written: {0}")]
    Io(String),
    /// What is in the file is not what was written. The writer has stopped.
    #[error("the request store is corrupt: {0}")]
    Corrupt(String),
    /// The store is closed.
    #[error("the request store is closed")]
    Closed,
    /// No request has this id. That does not prove that there never was one.
    #[error("no such request")]
    Unknown,
    /// The request names an incarnation that was not noted.
    #[error("no such incarnation")]
    UnknownIncarnation,
    /// A number above the head was acknowledged.
    #[error("the number {asked} is above the head {head}")]
    Ahead {
        /// What was acknowledged.
        asked: u64,
        /// The highest number there is.
        head: u64,
    },
    /// The consumer's name is another owner's.
    #[error("the consumer belongs to somebody else")]
    ForeignOwner,
    /// A row says what this program does not know: a state, a kind of evidence. It is never taken for something else.
    #[error("cannot understand what is stored as {column}: {value}")]
    Unreadable {
        /// The column.
        column: &'static str,
        /// What it holds.
        value: String,
    },
    /// Anything else that SQLite refused: a fault of this program.
    #[error("the request store refused: {0}")]
    Refused(String),
}

impl StoreError {
    /// Whether the store itself is in trouble, so that nothing can be said about the command.
    #[must_use]
    pub const fn is_trouble(&self) -> bool {
        matches!(self, Self::Busy | Self::Full | Self::Io(_) | Self::Corrupt(_))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error.to_string()),
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Io(error.to_string()),
            _ => Self::Refused(error.to_string()),
        }
    }
}
