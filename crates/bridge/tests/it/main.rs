//! The bridge from outside: its public surface, an agent in memory, and a clock that jumps.

// The name that the rest of the workspace uses.
extern crate turnd_bridge as bridge;

mod agent;
mod closing;
mod opening;
mod permissions;
mod prompts;
mod streams;
mod world;
