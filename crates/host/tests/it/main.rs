//! Hosts as processes: what is on disk, what runs and what does not, after each kind of end.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where something is not as it must be")]

mod commands;
mod evidence;
mod feeding;
mod guarding;
mod lingering;
mod recording;
mod replacing;
mod setting;
mod starting;
mod world;
