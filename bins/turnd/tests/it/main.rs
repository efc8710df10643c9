//! Tests of the whole program and of the shape of the workspace.

mod arrows;
mod commands;
mod faults;
mod http;
mod kill;
mod tidy;
mod world;
