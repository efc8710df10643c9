//! This process's own standard streams, for a host that is the whole process.

use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe;

/// Standard input and output as pipes, which is what a daemon gives its host.
///
/// Unlike the runtime's own standard streams they hold no thread, so that a host can end while nobody writes to it or
/// reads from it. Must be called inside a runtime; fails when either stream is not a pipe.
pub fn stdio() -> io::Result<(pipe::Receiver, pipe::Sender)> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok((pipe::Receiver::from_owned_fd(input)?, pipe::Sender::from_owned_fd(output)?))
}
