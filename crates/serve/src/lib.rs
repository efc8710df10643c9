//! HTTP, server-sent events, the layout of files, cold load, wiring.
//!
//! This is the only crate that knows the wire: paths, status codes, JSON names. It puts live sessions ([`bridge`]) behind routes,
//! gives them a ledger to write to, starts their hosts, and brings sessions back from disk. What becomes of a prompt is decided in
//! the crates below; what became of one in an earlier life is judged by [`attribution`].
//!
//! The caller binds and the caller ends: see [`Server`].
//!
//! It does **not** write transcripts, does not talk to agents other than through a host, and reads no environment variable.

mod acp_door;
mod admission;
mod agent_state;
mod aside;
mod asked;
mod body;
mod branch;
mod caller;
mod catalog;
mod chosen;
mod clock;
mod connection;
mod content;
mod continuation;
mod create;
mod cursors;
mod daemon;
mod desk;
mod digest;
mod dispatch;
mod endings;
mod folders;
mod glance;
mod history;
mod hosts;
mod idempotency;
mod identity;
mod layout;
pub mod limits;
mod listed;
mod lookup;
mod neighbours;
mod open;
mod options;
mod pieces;
mod places;
mod polled;
mod published;
mod query;
mod range;
mod rate;
mod reaper;
mod recalled;
mod recovery;
mod refusal;
mod remnant;
mod replayed;
mod reply;
mod requests;
mod restore;
mod restored;
mod returns;
mod rewind;
mod room;
mod router;
mod routes;
mod server;
mod settings;
mod shelf;
mod shells;
mod sidecar;
mod sink;
mod socket;
mod sse;
mod steering;
mod summary;
mod sync;
mod tasks;
mod tls;
mod token;
mod turn_status;
mod turned_away;
mod unpanicked;
mod wait;
mod wall;
mod wanted;
mod webhooks;
mod whereabouts;
mod whole;
mod wire;
mod wiring;
mod workspace;

pub use bridge::{Mediation, Policy};
pub use folders::FoldersError;
pub use hosts::{HostOrder, HostStarter, HostStreams, ProcessStarter, StartError};
pub use limits::Limits;
pub use options::{Durability, Mode, ServeOptions};
pub use rate::Rates;
pub use reaper::Idleness;
pub use server::{ServeError, Server};
pub use tls::{Tls, TlsError};
pub use token::{Token, TokenError};
