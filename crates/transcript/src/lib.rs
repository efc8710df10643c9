//! The session file: append, read backward, project, classify.

mod body;
pub mod layout;
mod lock;
mod record;
mod scan;
mod tail;
pub mod text;
mod turn_result;
mod writer;

pub use body::Body;
pub use lock::{LockError, Owner, SessionLock};
pub use record::is_off_branch_subtype;
pub use scan::{ScanError, find_turn_result};
pub use tail::{TAIL_BYTES_MAX, tail_uuid};
pub use turn_result::{RESULT_TEXT_TRUNCATED, TURN_RESULT_SUBTYPE, TurnError, TurnResult, TurnState};
pub use writer::{AppendError, Durability, Identity, OpenError, Writer};
