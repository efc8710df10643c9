//! The host's only look at the clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Epoch milliseconds now.
#[expect(clippy::disallowed_methods, reason = "the shell's one place to read the clock; below it time is an argument")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
