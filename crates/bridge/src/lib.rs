//! Live sessions: the pure machine that decides and the thin shell that does.

mod bus;
mod clients;
mod clock;
mod effect;
mod event;
mod frame;
mod incoming;
mod input;
mod json;
mod latest;
pub mod limits;
mod outcome;
mod outgoing;
mod overlay;
mod permission;
mod prompt;
mod queue;
mod session;
mod shell;
mod sink;
mod status;
mod terminal;
mod text;
mod turn;
mod wire;

pub use clock::Clock;
pub use frame::Frame;
pub use overlay::{Ended, TurnView};
pub use permission::{Decision, PendingPermission, Vote, VoteOutcome};
pub use prompt::{AdmitError, LivePrompt, NotOpen, PendingPrompt, Prompt, PromptState, Receipt};
pub use shell::{
    Bridge, CloseError, Detached, Kind, OpenError, OpenSession, Opened, Options, Session, Streams, Subscribe,
    SubscribeError, Subscription,
};
pub use sink::{Admission, Ending, PromptLedger};
pub use status::{Status, TurnError};
pub use terminal::{FlushOrigin, InputWritten, Terminal};
pub use text::Clipped;
