//! Every bound of the store, with its unit and its reason.

use std::time::Duration;

/// Commands that wait for the writer and may be refused: a second's work at a slow disk's pace.
pub(super) const WAITING_COMMANDS_MAX: usize = 1024;
/// Commands that share a commit: enough for every client at once, few enough that the first does not wait for long.
pub(super) const BATCH_COMMANDS_MAX: usize = 256;
/// Bytes that the log keeps after a checkpoint (return requests, section 2.5).
pub(super) const JOURNAL_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// KiB of pages that the writer keeps: the upper pages of the indexes of a million random ids, and what a full batch changes.
pub(super) const WRITER_CACHE_KIB: i64 = 8_000;
/// Statements that a connection keeps prepared: all that there are.
pub(super) const STATEMENTS_KEPT: usize = 64;
/// Connections that read at once. Readers wait for one another rather than have the file opened without end.
pub(super) const READERS_MAX: usize = 8;
/// Milliseconds that a lock of another process is waited for (return requests, section 2.16).
pub const BUSY_MS: u64 = 5_000;
/// Milliseconds that it is waited for when it was waited for in vain just now: as long as another process's commit takes.
pub(super) const LOCKED_MS: u64 = 50;
/// How often the store's lock is tried, and the pause after each: a fork that has not become its own program yet is over in a few
/// milliseconds, a daemon is not.
pub(super) const LOCK_TRIES: usize = 30;
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Milliseconds between two tries of what the disk refused: at first, and at most.
pub(super) const RETRY_FIRST_MS: u64 = 50;
pub(super) const RETRY_LAST_MS: u64 = 5_000;
/// Bytes that a disk has to take to have room: more than SQLite asks for at once.
pub(super) const ROOM_BYTES: usize = 256 * 1024;
/// Bytes kept so that outcomes fit on a full disk (return requests, section 2.16).
pub const BALLAST_BYTES: u64 = 8 * 1024 * 1024;
/// Numbers that may be given before the bound beside the file is raised, which costs a flush: one in a thousand ends pays for it, and no
/// more are passed over when a recovery has nothing but the bound to go by.
pub(super) const NUMBERS_STEP: u64 = 1_000;
/// How long nobody has asked the writer for anything when it flushes what it noted beside the file: behind the commits of one request's
/// beginning, so that a flush for the note comes once for all of them, and in nobody's way.
pub(super) const NOTE_PAUSE: Duration = Duration::from_millis(250);
/// Commits after which it is flushed although it is asked all the time: less than half a hundredth of their own flushes.
pub(super) const NOTES_UNFLUSHED_MAX: u64 = 256;
/// Milliseconds by which an id of version 7 may claim to be younger than the daemon's clock is old: what the clocks of two machines are apart
/// that are kept right, and a virtual one behind a pause. For so long behind a lossy rescue ids that callers made are expired, too.
pub const CLOCK_AHEAD_MS: u64 = 60_000;
/// The latest time, in epoch milliseconds, that an id of version 7 can tell: it has 48 bits for it.
pub(super) const BORN_MS_MAX: u64 = (1 << 48) - 1;
/// Events of a page, at most (return requests, section 2.13).
pub const PAGE_EVENTS_MAX: usize = 1_000;
/// Bytes of a page after which no further event is put into it.
pub const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// Events that a filter passes over in one look, so that a filter that finds nothing holds nobody up.
pub(super) const SCAN_EVENTS_MAX: usize = 10_000;
/// Requests of a page of the list, at most.
pub const LIST_MAX: usize = 1_000;
/// Requests that a page of the list passes over which looks for a state that no index has.
pub(super) const SCAN_REQUESTS_MAX: u64 = 10_000;
/// Requests that are pruned in one transaction: a few milliseconds in which nothing else is written.
pub(super) const PRUNE_STEP: u64 = 200;
/// Free pages that are given back in one transaction.
pub(super) const VACUUM_STEP_PAGES: i64 = 256;
/// Events whose chain is recomputed when the store is opened. All of them are when it is verified.
pub(super) const CHAIN_LOOK: u64 = 1_000;
/// Rows of which a look says that they are not what their events say: enough to see what happened.
pub(super) const VIOLATIONS_MAX: usize = 100;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Milliseconds for which an ended request keeps its payload, and how many keep it whatever their age: whichever keeps more (return
/// requests, section 2.15).
pub const KEPT_MS: u64 = 30 * DAY_MS;
/// See [`KEPT_MS`].
pub const KEPT_REQUESTS: u64 = 100_000;
/// Bytes of the file above which the oldest go earlier.
pub const STORE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Milliseconds for which the id of a pruned request is remembered.
pub const TOMBSTONE_MS: u64 = 400 * DAY_MS;
/// How many times the normal retention a protected consumer holds pruning back.
pub const PROTECTION_TIMES: u64 = 4;
