//! The secret of an endpoint, read or made. It is on no command line, which everybody on the machine can read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use ::request::webhook::Secret;

use crate::exit::{Exit, Failure};

/// Bytes of a secret that is made.
const MADE_BYTES: usize = 32;

/// Bytes that are read: more than the longest secret in text, and what may stand around it.
const READ_BYTES_MAX: u64 = 1_024;

/// The secret in a file, or on stdin; nothing where none is named. What is none is not repeated.
pub(super) fn read(path: Option<&Path>) -> Result<Option<Secret>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let text = if path == Path::new("-") { text_of(io::stdin().lock()) } else { File::open(path).and_then(text_of) };
    let text = text.map_err(|error| Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display())))?;
    let secret = Secret::parse(text.trim()).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    Ok(Some(secret))
}

fn text_of(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    from.take(READ_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// A secret that nobody has seen.
pub(super) fn made() -> Result<Secret, Failure> {
    let mut bytes = vec![0; MADE_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Exit::Failed, format!("the system has no random bytes: {error}")))?;
    Secret::new(bytes).map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}
