//! One file a command. Each turns what was typed into one call of the crate that does the work.

pub(crate) mod agent;
pub(crate) mod completions;
pub(crate) mod explain;
pub(crate) mod host;
pub(crate) mod man;
pub(crate) mod request;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod webhook;
