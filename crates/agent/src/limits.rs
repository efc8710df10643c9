//! What bounds the agent.

use std::time::Duration;

/// Bytes taken from the input at once: a page or two, as nearly all messages are short.
pub(crate) const READ_BYTES_MAX: usize = 16 * 1024;

/// Lines that wait to be written. Enough to keep the writer busy; beyond it a script that writes
/// faster than it is read waits.
pub(crate) const OUT_LINES_MAX: usize = 64;

/// Bytes that are written in one go: what a pipe takes at once.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Sessions of one process. They are never dropped unless closed, and each holds its history.
pub(crate) const SESSIONS_MAX: usize = 256;

/// Texts that are made at once beside the conversations. Each is a task of its own.
pub(crate) const GENERATIONS_MAX: usize = 64;

/// History of one session in bytes; the oldest updates go first. A long conversation fits, a flood
/// does not.
pub(crate) const HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Output of one command in bytes, for each of its two streams; the rest is read and dropped.
pub(crate) const TOOL_OUTPUT_BYTES_MAX: u64 = 256 * 1024;

/// One chunk of a long answer in bytes.
pub(crate) const CHUNK_BYTES: usize = 16 * 1024;

/// How long the last lines may take to be read once the input has ended.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Time between two halves of a line: long enough that a reader gets them apart.
pub(crate) const HALF_TIME: Duration = Duration::from_millis(20);
