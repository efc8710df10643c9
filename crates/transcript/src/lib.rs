//! The session file: append, read backward, project, classify.

mod body;
mod branch;
pub mod display;
mod interruption;
mod json;
pub mod layout;
mod lines;
mod lock;
mod origin;
mod projection;
mod record;
mod results;
mod salvage;
mod tail;
pub mod text;
mod time;
mod turn_result;
mod writer;

pub use body::Body;
pub use branch::{Branch, Transcript, WINDOW_BYTES};
pub use interruption::{Classified, DanglingCall, HISTORY_TAIL_ENTRIES, Interruption, classify};
pub use lock::{LockError, Owner, SessionLock};
pub use origin::{Absent, check, open};
pub use projection::{History, HistoryTail, Unreadable};
pub use record::{
    Call, Goal, GoalEnd, Kind, Message, Payload, Record, Role, SlashCommand, Snapshot, is_off_branch_subtype,
};
pub use results::{ScanError, find_turn_result, last_rewind_at_ms};
pub use tail::{TAIL_BYTES_MAX, tail_uuid};
pub use time::to_text as iso_text;
pub use turn_result::{RESULT_TEXT_TRUNCATED, TURN_RESULT_SUBTYPE, TurnError, TurnResult, TurnState};
pub use writer::{AppendError, Durability, Identity, OpenError, Writer};

/// A part of a message or a payload, as it is handed on.
pub use serde_json::Value;
