//! One file a command. Each turns what was typed into one call of the crate that does the work.

pub(crate) mod agent;
pub(crate) mod explain;
pub(crate) mod host;
pub(crate) mod serve;
