//! The public surface of the crate, held against recorded sessions, written files and torn ones.

extern crate turnd_transcript as transcript;

mod agreement;
mod display;
mod huge;
mod locking;
mod origin;
mod reading;
mod results;
mod sample;
mod tail;
mod writing;
