//! What the targets share: the files they read, the two files in one input, and a plain reader to compare with.

mod mutate;
pub mod plain;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use mutate::mutate;
use tempfile::TempDir;

/// Stands between the two files of one input. No JSON text holds it, so it costs neither of them anything.
const SEPARATOR: u8 = 0x1e;

/// How large a window is at most that is tried with an input, in bytes: a few records.
const WINDOW_BYTES_MAX: u64 = 2_000;

/// The windows that bounded readings of these bytes are tried with, in bytes: nothing, and one that depends on them, so
/// that many inputs try many.
#[must_use]
pub fn windows(bytes: &[u8]) -> [u64; 2] {
    let sum = bytes.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    [0, sum % WINDOW_BYTES_MAX]
}

/// The input as two files. Without a separator all of it is the first one, and the second is empty.
#[must_use]
pub fn split(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|byte| *byte == SEPARATOR) {
        Some(at) => (&input[..at], &input[at + 1..]),
        None => (input, &[]),
    }
}

/// A file of this process, in a folder that every run of the target uses again: making folders would cost more than what is
/// tried in them. The fuzzer leaves without a farewell, so the folder stays; the recipe puts it where that is cleared.
///
/// # Panics
///
/// When the folder cannot be made.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| TempDir::new().expect("a temporary folder")).path().join(name)
}

/// Gives the file these bytes and no others.
///
/// # Panics
///
/// When the system refuses.
pub fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file in a temporary folder");
}

/// All of the file.
///
/// # Panics
///
/// When the system refuses.
#[must_use]
pub fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a file that was just written")
}
