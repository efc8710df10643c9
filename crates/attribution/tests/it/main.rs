//! The public surface of the crate, held against cases, recorded sessions and torn files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

extern crate turnd_attribution as attribution;

mod agreement;
mod cases;
mod clock;
mod expected;
mod explaining;
mod files;
mod formats;
mod guards;
mod identity;
mod marker;
mod reports;
mod told;
mod torn;
mod wishes;
mod worlds;
