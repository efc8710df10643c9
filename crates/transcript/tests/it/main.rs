//! The public surface of the crate, held against recorded sessions, written files and torn ones.

extern crate turnd_transcript as transcript;

mod display;
