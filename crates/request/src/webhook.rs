//! Webhooks: the terminal stream, sent by `POST` to endpoints that clients name (return requests, section 2.12; the item 4).
//!
//! An [`Endpoint`] is a protected named consumer that the daemon itself serves. Its machine decides in one step what follows from what
//! happened; it reads no clock and rolls no dice: both come in as a [`Moment`]. Read in this order: `endpoint.rs` (what is kept),
//! `machine.rs` (all that can happen, all that can come of it, and the one function between them), `pause.rs`, `secret.rs` and
//! `signature.rs` (what a receiver checks).
//!
//! Events go to an endpoint in order, one at a time, each at least once. None is passed over without being a dead letter or in a gap that
//! is told.

mod endpoint;
mod fault;
pub mod limits;
mod machine;
mod name;
mod pause;
mod secret;
mod signature;
#[cfg(test)]
mod tests;

pub use endpoint::{Endpoint, Letter, Rotation, RotationDenied, Sending, Standing, Ticket, Trying};
pub use fault::Fault;
pub use machine::{Denial, Effect, Extent, Input, Moment, step};
pub use name::{EndpointName, NameError};
pub use secret::{Secret, SecretError};
pub use signature::{message_id, sign, sign_with_all};
