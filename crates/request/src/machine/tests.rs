//! The machine, played by scripts that can be read aloud.

pub(crate) mod notation;
mod properties;
mod scenarios;
mod table;
