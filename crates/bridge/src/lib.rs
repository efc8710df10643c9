//! Live sessions: the pure machine that decides and the thin shell that does.
//!
//! A [`Bridge`] is handed a connected pair of [`Streams`] for each session, greets the agent behind them, and gives out a
//! [`Session`]: prompts are admitted to it, queued, dispatched one at a time, cancelled, removed and polled; its events are numbered
//! and streamed; what the agent asks is put to the vote. Admissions, wishes to cancel and outcomes go to a [`PromptLedger`], which this crate only
//! declares.
//!
//! The pure half reads no clock, awaits nothing and spawns nothing. Read it in this order: `input.rs` (all that can happen),
//! `effect.rs` (all that can come of it), `session.rs` (the one function between them), then its parts: `queue.rs`, `turn.rs`,
//! `outcome.rs`, `steering.rs`, `permission.rs`, `policy.rs`, `overlay.rs`. `bus.rs` numbers and keeps events;
//! `compaction.rs` keeps what late clients are shown; `settings.rs` knows what the agent is set to; `incoming.rs`, `outgoing.rs` and
//! `wire.rs` read and write JSON. The thin half is `shell.rs`: one task and one lock a session, and the effects performed in their order.
//!
//! What is not here: a path, a process, HTTP, a file of any kind, and a time limit for a prompt that did not ask for one.

mod announcement;
mod background;
mod bus;
mod clients;
mod clock;
mod compaction;
mod deadline;
mod effect;
mod event;
mod frame;
mod hold;
mod incoming;
mod input;
mod json;
mod latest;
pub mod limits;
mod moment;
mod outcome;
mod outgoing;
mod overlay;
mod permission;
mod policy;
mod prompt;
mod queue;
mod recording;
mod resolution;
mod session;
mod settings;
mod shell;
mod sink;
mod source;
mod status;
mod steering;
mod succession;
mod terminal;
mod text;
mod title;
mod turn;
mod whole;
mod wire;
pub mod witness;

pub use acp::RpcError;
pub use announcement::Announcement;
pub use background::{Background, Work};
pub use clock::Clock;
pub use compaction::{Bounds, Part, Seed, Told};
pub use deadline::{Deadline, Expiry};
pub use frame::Frame;
pub use hold::{HoldError, Meanwhile};
pub use overlay::{Ended, TurnView};
pub use permission::{PendingPermission, Vote, VoteOutcome};
pub use policy::{Forbidden, Mediation, Policy, Voter};
pub use prompt::{AdmitError, LivePrompt, NotOpen, PendingPrompt, Prompt, PromptState, Receipt, Waiting};
pub use recording::Recording;
pub use resolution::{Decision, Reason, Resolution};
pub use settings::{Setting, Switched, Way};
pub use shell::{
    AskError, Bridge, Change, Changed, CloseError, Detached, Generation, Heard, Held, Inquiry, Kind, OpenError,
    OpenSession, Opened, Options, Session, Streams, Subscribe, SubscribeError, Subscription,
};
pub use sink::{Admission, Ending, PromptLedger, Wish};
pub use source::Source;
pub use status::{Status, TurnError};
pub use steering::{Steered, SteeringView};
pub use terminal::{FlushOrigin, InputWritten, Terminal};
pub use text::Clipped;
pub use title::Title;
pub use witness::Witness;
