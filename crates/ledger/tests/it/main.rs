//! The ledger through its public surface.

mod child;
mod failures;
mod formats;
mod modes;
mod reading;
mod scratch;
mod sidecars;
mod torn_tail;
mod unchanged;
mod writers;
