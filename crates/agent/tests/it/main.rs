//! The agent from outside: a client on the other end of an in-memory pair of streams.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test helper fails by panicking")]

extern crate turnd_agent as agent;

mod cancel;
mod client;
mod misbehaviour;
mod scripts;
mod sessions;
mod settings;
mod tool;
