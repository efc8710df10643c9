//! The daemon over a real loopback socket, with hosts that are scripted in this process.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

extern crate turnd_serve as serve;

mod client;
mod daemon;
mod editor;
mod peer;

mod acp_door;
mod attach;
mod branching;
mod cold_load;
mod continuing;
mod cursors;
mod damage;
mod deadlines;
mod events;
mod exposure;
mod flood;
mod full_store;
mod idempotency;
mod lifecycle;
mod lists;
mod long_poll;
mod permissions;
mod plumbing;
mod prompts;
mod rate;
mod readers;
mod resting;
mod result;
mod return_parameters;
mod rewinding;
mod robustness;
mod settings;
mod shelf;
mod smuggling;
mod terminals;
mod tls;
mod transcript;
mod turns;
mod unread;
mod webhooks;
mod wiring;
mod workspaces;
