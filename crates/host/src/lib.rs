//! The host: one process for each live session, between the daemon and the agent.
//!
//! It does three things. It *records*: what is asked and answered goes into the session's transcript, in an order that
//! never shows a clean answer to a prompt that got none. It *guards*: it holds the session's lock and owns the agent's
//! whole process tree, which is gone before the host is. And it *outlives* a daemon that was killed, long enough for
//! the running turn to settle and be recorded.
//!
//! It stands between the two as a proxy: what it does not understand passes through as it came. Nothing here knows of a
//! ledger, a queue, or HTTP. The decisions are in one machine without clock, file or process; the rest is the shell
//! around it.

mod agent;
mod choice;
mod clock;
mod command;
mod dismiss;
mod exit;
mod fail_points;
mod file_limit;
mod incarnation;
mod incoming;
mod journal;
mod launch;
mod leftovers;
mod limits;
mod machine;
mod options;
mod outgoing;
mod recording;
mod run;
mod shell;
mod sidecar;
mod start;
mod stdio;
mod tail;
mod timers;
mod tree;
mod turn;
mod wire;

pub use dismiss::{dismiss, interrupt};
pub use file_limit::survive_file_limits;
pub use launch::{SESSION_FILE_MARK, exec};
pub use leftovers::sweep;
pub use options::{AgentCommand, HostOptions, Mode};
pub use run::run;
pub use stdio::{stdin, stdio, stdout};
pub use wire::code;
