//! Results go to stdout, a line at a time, and complaints to stderr; a closed pipe or a full disk is no panic.

use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::os::fd::AsFd;

use rustix::fs::{OFlags, fcntl_getfl};
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Stdout, where something can be written to it. The library's own takes what is written to one that is only read for written. One that was
/// closed from the start is `/dev/null` by now, like one that its caller wants to swallow everything: the runtime puts it there.
fn stdout() -> io::Result<StdoutLock<'static>> {
    check()?;
    Ok(io::stdout().lock())
}

/// Whether stdout is there to be written to. A command that prints looks first, so that nothing is done whose answer has no way out.
pub(crate) fn check() -> io::Result<()> {
    let is_unwritable = match fcntl_getfl(io::stdout()) {
        Ok(flags) => flags & OFlags::ACCMODE == OFlags::RDONLY,
        Err(error) => return Err(untold(error.into())),
    };
    if is_unwritable { Err(untold(io::Error::other("it can only be read"))) } else { Ok(()) }
}

/// What is said of a stdout that takes nothing.
fn untold(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write to stdout: {error}"))
}

/// Writes one line to stdout and hands it on at once, so that a reader in a pipe sees it when it happens.
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    bytes(format!("{text}\n").as_bytes())
}

/// Writes one line to stderr. Where that takes nothing there is nobody left to tell, and whoever complains has better to do than to
/// fail of it.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes bytes that hold no newline as one line to stdout and hands it on at once, exactly as they are.
pub(crate) fn bytes_line(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = stdout()?;
    let written = stdout.write_all(bytes).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    written.map_err(untold)
}

/// Writes bytes to stdout, all or an error.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = stdout()?;
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(untold)
}

/// Says what goes on to a person at a terminal. A program that reads stderr waits for complaints, and gets nothing else.
pub(crate) fn progress(text: impl Display) {
    if io::stderr().is_terminal() {
        complain(format_args!("turnd: {text}"));
    }
}

/// Resolves when nobody reads stdout any more, so that whoever has nothing to write finds out too. Where the system does not tell, it
/// never does.
pub(crate) async fn unheard() {
    // The pipe is only listened to: whether a write may block is shared with everybody who has it, and stays as it is. What can lose no
    // reader, a file, cannot be listened to.
    let listening = io::stdout().as_fd().try_clone_to_owned().and_then(Sender::from_owned_fd_unchecked);
    if let Ok(stdout) = listening
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}
