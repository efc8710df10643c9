//! Tests of the whole program and of the shape of the workspace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod arrows;
mod asides;
mod branching;
mod commands;
mod durable;
mod explain;
mod explain_faults;
mod explain_folder;
mod explain_live;
mod failures;
mod faults;
#[path = "../../../../crates/request/benches/filled/mod.rs"]
#[expect(dead_code, reason = "a bench fills in a process of its own and goes on with such requests")]
mod filled;
mod front;
mod hooks;
mod http;
mod kill;
mod permission;
mod races;
mod replacing;
mod request_store;
mod requests;
mod retry;
mod returns;
mod rewinding;
mod scenarios;
mod scripted;
mod secret;
mod settings;
mod shelf;
mod shell;
mod steering;
mod stream;
mod tags;
mod tidy;
mod unwritable;
mod waiting;
mod watching;
mod webhooks;
mod whole_answer;
mod wishes;
mod world;

use request as request_crate;
