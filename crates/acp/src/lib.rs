//! The Agent Client Protocol over lines: bounded, tolerant, raw where we do not author.
//!
//! A stream of bytes becomes lines ([`FrameReader`]), a line becomes a [`Message`] whose envelope is
//! known and whose content is untouched, and what we say ourselves is written by the functions of
//! [`compose`] from the types of [`schema`]. Nothing here reads, writes, waits, or starts anything.
//!
//! What real agents send decides the shape: lines of a megabyte, ids as strings and at the end of
//! the line, errors without an id, text on standard output that is no JSON, and half surrogate
//! pairs, which a full parser refuses. A line is therefore scanned and not parsed, forwarded as it
//! came, and looked into only where a rule needs it ([`raw_at`], [`string_at`]).

pub mod compose;
mod echo;
mod field;
mod frame;
mod message;
mod messages;
mod pending;
mod request_id;
pub mod rpc_error;
mod scan;
mod skipped;
mod speech;
mod splice;
mod subagent;
mod text;
mod unreadable;
mod whose;

pub use agent_client_protocol_schema::{ProtocolVersion, v1 as schema};

pub use echo::{ECHO_PIECES_MAX, Echo, Echoed};
pub use field::{raw_at, string_at};
pub use frame::{FRAME_BYTES_MAX, FrameCounts, FrameError, FrameReader};
pub use message::{Kind, Message, NotAMessage, Outcome};
pub use messages::Messages;
pub use pending::Pending;
pub use request_id::RequestId;
pub use rpc_error::RpcError;
pub use scan::DEPTH_LEVELS_MAX;
pub use skipped::Skipped;
pub use speech::{Bearing, Course, Speech, TURN_CALLS_MAX};
pub use splice::{with_member, with_meta, without_prefixed};
pub use subagent::{of_subagent, parent_call};
pub use text::{decode_string, lenient_value, repair_surrogates};
pub use unreadable::Unreadable;
pub use whose::Whose;
