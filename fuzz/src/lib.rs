//! What the targets share: the files they read, the two files in one input, and a plain reader to compare with.

mod history;
mod mutate;
pub mod plain;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use history::with_history;
pub use mutate::mutate;
use tempfile::TempDir;

/// Stands between the two files of one input. No JSON text holds it, so it costs neither of them anything.
const SEPARATOR: u8 = 0x1e;

/// How large a window is at most that is tried with an input, in bytes: a few records.
const WINDOW_BYTES_MAX: u64 = 2_000;

/// What is tried with an input beside the input itself. It follows from the bytes, so that many inputs try much and each
/// finding can be had again.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// The windows that bounded readings are tried with, in bytes: nothing, and some.
    pub windows: [u64; 2],
    /// Behind which of its records the transcript gets a long history, if it gets one.
    pub history_place: Option<usize>,
    /// Whether the clock was set back before the judging.
    pub is_clock_set_back: bool,
}

impl Trial {
    /// The trial that goes with an input.
    #[must_use]
    pub fn of(input: &[u8]) -> Self {
        let sum = input.iter().fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let rest = sum / 4;
        let history_place = (sum & 1 == 1).then(|| usize::try_from(rest % 16).unwrap_or_default());
        Self { windows: [0, rest / 16 % WINDOW_BYTES_MAX], history_place, is_clock_set_back: sum & 2 == 2 }
    }

    /// The transcript of the trial.
    #[must_use]
    pub fn transcript(&self, bytes: &[u8]) -> Vec<u8> {
        self.history_place.map_or_else(|| bytes.to_vec(), |place| with_history(bytes, place))
    }
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
