//! The bridge from outside: its public surface, an agent in memory, and a clock that jumps.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test helper fails by panicking")]

// The name that the rest of the workspace uses.
extern crate turnd_bridge as bridge;

mod agent;
mod asking;
mod closing;
mod generating;
mod opening;
mod permissions;
mod prompts;
mod replacing;
mod resting;
mod setting;
mod streams;
mod waiting;
mod witnessing;
mod world;
