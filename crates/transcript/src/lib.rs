//! The session file: append, read backward, project, classify.
//!
//! One JSON object a line, each naming the one before it. Other programs write the same format, and any of them may be
//! killed in the middle of a line; so the [`Writer`] seals what is torn, and the reader saves what is whole.
//!
//! Read from the writer's side: [`Body`], [`Writer`], [`SessionLock`]. From the reader's: [`Record`], what the evidence
//! asks of one; [`Transcript`] and its [`Branch`], the active branch from its end; [`HistoryTail`], the model's history;
//! [`classify`], how it was left; [`find_turn_result`], how a turn ended, and [`find_answer`], all
//! that it said; [`display`], what a person is shown.
//!
//! Nothing here costs what the history weighs: the branch is walked from the end of the file, and texts stay in it.

mod answer;
mod body;
mod branch;
pub mod display;
mod folder;
mod forked;
mod headline;
mod interruption;
mod json;
pub mod layout;
mod left;
mod lines;
mod lock;
mod origin;
mod own_turn;
pub mod pages;
mod pieces;
mod projection;
mod prompt_text;
mod record;
mod regular;
mod results;
mod rewind_points;
mod salvage;
mod snapshot;
mod tail;
pub mod text;
mod time;
mod turn_result;
mod writer;

pub use answer::{Answer, Answered, Lost, Recorded, find_answer};
pub use body::Body;
pub use branch::{Branch, Transcript, WINDOW_BYTES};
pub use forked::{CHECKPOINT_SUBTYPE, Fork, ForkError, ForkPoint, fork};
pub use headline::{HEADLINE_BYTES_MAX, Headline, find_title};
pub use interruption::{Classified, DanglingCall, HISTORY_TAIL_ENTRIES, Interruption, classify};
pub use left::{Left, how_left};
pub use lock::{LockError, Owner, SessionLock};
pub use origin::{Absent, check, open};
pub use own_turn::{Asked, ExactTurn, NoCertainty, Own, OwnTurn, find_own_turn};
pub use projection::{AnsweredCommand, History, HistoryTail, Unreadable};
pub use prompt_text::{block_text, prompt_texts};
pub use record::{
    Call, Goal, GoalEnd, Kind, LATE_OUTPUT_SUBTYPE, Message, Payload, Record, Role, SlashCommand, Snapshot,
    TITLE_SUBTYPE, USER_SHELL_COMMAND, USER_SHELL_RESULT, is_off_branch_subtype,
};
pub use regular::open_regular;
pub use results::{find_turn_result, last_rewind_at_ms};
pub use rewind_points::{REWIND_POINTS_MAX, RewindPoint, RewindPoints, rewind_points};
pub use snapshot::{PageError, Unavailable};
pub use tail::{TAIL_BYTES_MAX, tail_uuid};
pub use time::to_text as iso_text;
pub use turn_result::{Contradiction, RESULT_TEXT_TRUNCATED, TURN_RESULT_SUBTYPE, TurnError, TurnResult, TurnState};
pub use writer::{AppendError, Durability, Identity, OpenError, REWIND_SUBTYPE, Rewind, RewindError, Writer};

/// A part of a message or a payload, as it is handed on.
pub use serde_json::Value;
