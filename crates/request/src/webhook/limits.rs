//! Every bound of a webhook, with its unit and its reason.

/// Endpoints of a store. Each has a task, a connection and one event in memory.
pub const ENDPOINTS_MAX: usize = 16;
/// Characters of an endpoint's name, as of a consumer's.
pub const NAME_CHARS_MAX: usize = 128;
/// Bytes of an endpoint's URL: more than any receiver needs, and little enough for a line of a list.
pub const URL_BYTES_MAX: usize = 2_048;
/// Bytes of a secret, at least (Standard Webhooks): no one guesses them.
pub const SECRET_BYTES_MIN: usize = 24;
/// Bytes of a secret, at most (Standard Webhooks): the block of the hash, behind which more adds nothing.
pub const SECRET_BYTES_MAX: usize = 64;

/// Milliseconds within which the second try begins; each further one has twice as long.
pub const PAUSE_FIRST_MS: u64 = 1_000;
/// Milliseconds within which a try begins, at most: a receiver that is back is not left waiting for longer.
pub const PAUSE_MAX_MS: u64 = 10 * 60 * 1_000;
/// Milliseconds that a receiver may ask to be left alone, at most. Whoever asks for more is asked again after this.
pub const RETRY_AFTER_MAX_MS: u64 = 60 * 60 * 1_000;
/// Tries of one event. The time below is the limit that an endpoint meets; this one holds when a daemon that is started again and again
/// makes a try of each start, or chance makes the pauses short: a day of pauses of 5 minutes, the mean of the longest, is 288.
pub const TRIES_MAX: u32 = 400;
/// Milliseconds from the first try of an event to the one after which there is none: a receiver that is down for a night misses nothing
/// and no order, and one event that it cannot take holds the others up for no longer than that.
pub const TRYING_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// Dead letters that are kept of an endpoint, the newest: more than three years of the pace at which an endpoint that is gone makes them.
pub const LETTERS_MAX: u64 = 1_000;
/// Events of an endpoint that wait to be sent again on demand: a page that somebody pages through by hand.
pub const WANTED_MAX: usize = 100;

const _: () = assert!(PAUSE_FIRST_MS < PAUSE_MAX_MS && PAUSE_MAX_MS < RETRY_AFTER_MAX_MS);
const _: () = assert!(RETRY_AFTER_MAX_MS < TRYING_MAX_MS);
