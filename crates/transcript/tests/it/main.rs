//! The public surface of the crate, held against recorded sessions, written files and torn ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

extern crate turnd_transcript as transcript;

mod agreement;
mod answers;
mod appending;
mod damage;
mod display;
mod display_rows;
mod forking;
mod huge;
mod left;
mod locking;
mod origin;
mod own_turn;
mod reading;
mod results;
mod rewinding;
mod sample;
mod tail;
mod titles;
mod unharmed;
mod walking;
mod writing;
