//! The session machine, played by scripts.

mod draining;
mod holding;
mod notation;
mod oracle;
mod properties;
mod questions;
mod races;
mod replacing;
mod steering;
mod straying;
mod table;
mod views;
mod witnessing;
