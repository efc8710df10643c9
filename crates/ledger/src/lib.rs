//! The append-only record of what became of each prompt.
//!
#![doc = include_str!("../README.md")]

mod append;
mod json;
mod ledger;
mod lock;
mod number;
mod open;
mod overlap;
mod read;
mod record;
mod reduction;
mod sealed;
pub mod sidecar;
mod text;
mod wire;
mod wish;

pub use append::{AppendError, Appender};
pub use ledger::{Durability, Ledger};
pub use read::{ReadError, Reading};
pub use record::{Fact, Record, Terminal};
pub use reduction::{RECENT_TERMINALS_MAX, RECENT_WINDOW_BYTES, dangling, recent_terminals};
pub use wish::Wish;
