//! The built-in scripted agent: a small ACP agent with no network and no model.
//!
//! It answers by the prompt's text, so that people and tests can steer it: `slow 2000` streams for
//! two seconds, `tool ls` asks permission and runs a command, `die` kills the agent in the middle of
//! its answer, and what names no script is echoed. [`SCRIPTS`] is the whole repertoire.
//!
//! [`run`] speaks the protocol over any pair of streams. Sessions live in memory: within one process
//! they can be loaded and resumed, and nothing outlives it.
//!
//! It is not a sandbox. `tool` runs what it is told to, after asking.

mod aside;
mod connection;
mod ending;
mod limits;
mod options;
mod out;
mod permission;
mod prompt;
mod run;
mod script;
mod session;
mod settings;
mod turn;

pub use options::{AgentOptions, Journal};
pub use run::run;
pub use script::{Arguments, SCRIPTS, Script};
