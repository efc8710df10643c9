//! The append-only record of what became of each prompt.
//!
//! A daemon that runs prompts for others writes one line when it admits a prompt and one when the prompt ended. After a
//! crash the file says which prompts were open; what became of those is for others to find out, or to leave open. The
//! crate needs nothing but the standard library, so any daemon can take it in; `examples/embed.rs` is one that does.
//!
//! ```
//! use turnd_ledger::{Durability, Ledger, Record, dangling};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("turnd-ledger-doc-{}", std::process::id()));
//! # let path = folder.join("session.ledger.jsonl");
//! let ledger = Ledger::new(path, Durability::Process);
//! ledger.append(&Record::in_flight("prompt-1", None, 1_795_977_220_000))?;
//! ledger.append(&Record::in_flight("prompt-2", None, 1_795_977_220_005))?;
//! ledger.append(&Record::completed("prompt-1", "end_turn", 1_795_977_221_000))?;
//!
//! assert_eq!(dangling(&ledger.read()?.records), ["prompt-2"]);
//! # std::fs::remove_dir_all(folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Format
//!
//! One JSON object a line, closed by LF, UTF-8, in this order of keys (`?` marks what may be missing):
//!
//! ```text
//! {"v":1,"promptId":P,"state":"in_flight","tailUuid"?:U,"at":MS}
//! {"v":1,"promptId":P,"terminal":"completed"|"cancelled"|"error"|"interrupted","code"?:C,"stopReason"?:S,"at":MS}
//! ```
//!
//! The bytes are those that `JSON.stringify` gives, numbers included. Nothing of what was asked or answered is in it. The
//! file has mode 0600 whatever the process's mask; folders that have to be made for it have 0700.
//!
//! A reader is as tolerant as a browser's `JSON.parse` and no more. Lines end at LF only; a CR before it is white space.
//! Blank lines are skipped. A line that is not one object of a shape above is dropped and counted and never stops the
//! reading: two records on one line are both lost, a byte order mark loses the first line.
//!
//! - `v` is the number 1 in any spelling (`1.0`, `1e0`). Lines of a newer version are dropped and counted, never rewritten.
//! - `promptId` is any string, `at` any finite number.
//! - `state:"in_flight"` wins over a `terminal` on the same line. Any other `state` is ignored.
//! - An empty `tailUuid`, and a `tailUuid`, `code` or `stopReason` that is no string, count as missing.
//! - Other keys are ignored, whatever they hold: numbers beyond a double, nesting of any depth (it costs no stack), half a
//!   surrogate pair. A repeated key takes its last value.
//! - Bytes that are not UTF-8 and halves of surrogate pairs read as U+FFFD. In a `promptId` that keeps the record, since
//!   dropping it would hide an open prompt, but [`Record::has_exact_id`] is false and [`dangling`] takes such an id for as
//!   many prompts as it may be.
//!
//! # What a crash costs
//!
//! An append that was answered with `Ok` is in the file, whole, behind everything that was answered before it. It survives
//!
//! - the death of the process by any signal, with [`Durability::Process`];
//! - the death of the machine too, with [`Durability::Fsync`], as far as the disk keeps what it has confirmed: before the
//!   answer the file is synced, and, once for each opening, the folder that names it and the folders made for it.
//!
//! An append that was cut off leaves at most a torn last line. Readers drop it; the next append closes it with an LF
//! before it writes. So a crash at any byte costs the record that was being written and no other, before or after it. A
//! record that was whole except for its LF is kept.
//!
//! Each append is one write call on a descriptor that appends, with the LF of a seal, if one is needed, in the same call.
//! The look at the last byte and the write are under an advisory lock on the file, which dies with its holder. Lines of
//! several threads and processes therefore never mix, also with writers that append whole lines and know no lock. Where
//! there are no locks, or somebody was stopped while he held one for about a second, an append goes on without: then one
//! coincidence can cost a record, another writer's short write between the look and the write.
//!
//! A short write (a full disk) is an error and leaves a torn tail like any other. After [`AppendError::NotSynced`] the
//! record is in the file, and whether it survives a power cut is unknown, also if a later sync succeeds.
//!
//! # What it is not
//!
//! - No judge: it does not say what became of a dangling prompt.
//! - No checksums: it notices a line that is not JSON any more, not a flipped bit inside an id.
//! - No compaction and no index: a session's ledger grows by two short lines a prompt and is read whole, or its tail is.
//! - No transaction over several ledgers, nor with the transcript beside it.
//! - No clock, no logger, no thread, no runtime: times are arguments, errors are returned, calls block.
//! - Not for file systems where appending is not atomic between machines, such as NFS with two writing hosts.
//!
//! # Supported versions
//!
//! Unix only. Rust 1.95, that of the workspace; the newest things it uses are `let` chains (1.88) and advisory file locks
//! (1.89) in the standard library.

mod append;
mod json;
mod ledger;
mod lock;
mod number;
mod open;
mod read;
mod record;
mod reduction;
mod sealed;
pub mod sidecar;
mod text;
mod wire;

pub use append::{AppendError, Appender};
pub use ledger::{Durability, Ledger};
pub use read::{ReadError, Reading};
pub use record::{Fact, Record, Terminal};
pub use reduction::{RECENT_TERMINALS_MAX, RECENT_WINDOW_BYTES, dangling, recent_terminals};
