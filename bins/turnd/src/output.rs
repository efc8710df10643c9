//! Results go to stdout, a line at a time, and complaints to stderr; a closed pipe or a full disk is no panic.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

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

/// Writes bytes that hold no newline as one line to stdout and hands it on at once, exactly as they are.
pub(crate) fn bytes_line(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.write_all(b"\n")?;
    stdout.flush()
}

/// Writes bytes to stdout, all or an error.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Says what goes on to a person at a terminal. A program that reads stderr waits for complaints, and gets nothing else.
pub(crate) fn progress(text: impl Display) {
    if io::stderr().is_terminal() {
        complain(format_args!("turnd: {text}"));
    }
}
