//! The session machine, played by scripts.

mod notation;
mod oracle;
mod properties;
mod questions;
mod table;
mod views;
