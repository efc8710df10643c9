//! A limit on the size of files (`ulimit -f`) is met like a full disk.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

/// Takes the deadly signal that a write beyond the limit sends, for the rest of this process, so that the write fails and is handled as
/// any other that the disk refuses. What this process starts later keeps the signal as it is by default.
///
/// To be called from a runtime with IO enabled.
///
/// # Errors
/// When the system refuses it.
pub fn survive_file_limits() -> io::Result<()> {
    // The handler stays when its listener is dropped.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
