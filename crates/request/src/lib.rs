//! Durable return requests: a prompt's outcome is promised before the prompt is sent, and told exactly once, whoever dies in between.
//!
//! A [`Request`] is registered before any byte of its prompt goes to an agent, and it has one terminal and one event, which never change.
//! Only `completed` carries a final message; what cannot be proven is `indeterminate`. A missing answer is honest, a wrong one is not.
//!
//! The pure half reads no clock, rolls no dice and touches no file. Read it in this order: `request.rs` (a row), `machine.rs` (all that can
//! happen, all that can come of it, and the one function between them), `terminal.rs` (what an end is), `recovery.rs` (what is said of a
//! request after a crash), `event.rs` and `receipt.rs` (what consumers and callers are shown), `cursor.rs`, `hash.rs`; and, by itself, `webhook.rs` (who is sent what ended). The other half keeps
//! the rows in one file.
//!
//! What is not here: an agent, a session, a path, HTTP, and a second try. Nothing in this crate ever sends a prompt.

mod canonical;
mod code;
mod cursor;
pub mod event;
mod evidence;
mod facts;
pub mod fail_points;
mod hash;
mod id;
pub mod limits;
mod machine;
mod prompt_id;
mod receipt;
pub mod recovery;
mod request;
mod state;
pub mod store;
mod terminal;
pub mod webhook;

pub use canonical::{Canonical, CanonicalError};
pub use code::{Category, Cause, Code, Mismatch, Refusal, StopReason};
pub use cursor::{Cursor, Extent, NotAPosition, NotThere, Position};
pub use event::TerminalEvent;
pub use evidence::Evidence;
pub use facts::{ArmedCursor, Baseline, Incarnation, Process};
pub use hash::{Asked, HASH_VERSION, Hash, input_hash, prompt_hash};
pub use id::{IdError, RequestId};
pub use machine::{Advance, Effect, Input, Late, LateKind, Recovered, step};
pub use prompt_id::{is_prompt_id, prompt_id};
pub use receipt::{Beside, receipt};
pub use request::{Options, Registration, Request};
pub use state::{InputWritten, Phase, State};
pub use terminal::{FinalText, Outcome, Stage, Terminal};
