//! The session machine, played by scripts.

mod notation;
mod properties;
mod table;
