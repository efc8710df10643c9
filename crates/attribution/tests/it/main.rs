//! The public surface of the crate, held against cases, recorded sessions and torn files.

extern crate turnd_attribution as attribution;

mod cases;
mod files;
mod formats;
