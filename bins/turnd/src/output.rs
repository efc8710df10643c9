//! Results go to stdout, a line at a time, and complaints to stderr; a closed pipe or a full disk is no panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes one line to stdout and hands it on at once, so that a reader in a pipe sees it when it happens.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// Writes one line to stderr. Where that takes nothing there is nobody left to tell, and whoever complains has better to do than to
/// fail of it.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
