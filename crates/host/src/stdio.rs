//! This process's own standard streams, for a program that is the whole process.

use std::io;
use std::os::fd::AsFd;

use tokio::net::unix::pipe;

/// Standard input and output as pipes, which is what a daemon gives its host.
///
/// Unlike the runtime's own standard streams they hold no thread, so that a host can end while nobody writes to it or
/// reads from it. Must be called inside a runtime; fails when either stream is not a pipe.
pub fn stdio() -> io::Result<(pipe::Receiver, pipe::Sender)> {
    Ok((stdin()?, stdout()?))
}

/// Standard input as a pipe, inside a runtime. When it is none it is left as it was.
pub fn stdin() -> io::Result<pipe::Receiver> {
    pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)
}

/// Standard output as a pipe, inside a runtime. When it is none it is left as it was.
pub fn stdout() -> io::Result<pipe::Sender> {
    pipe::Sender::from_owned_fd(io::stdout().as_fd().try_clone_to_owned()?)
}
