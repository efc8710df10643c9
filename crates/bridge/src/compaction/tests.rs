//! What a client that attaches is shown, example by example and in general.

mod bounds;
mod notation;
mod properties;
mod reader;
mod table;
