//! Results go to stdout, a line at a time; a closed pipe is an ordinary error and no panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes one line to stdout and hands it on at once, so that a reader in a pipe sees it when it happens.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}
