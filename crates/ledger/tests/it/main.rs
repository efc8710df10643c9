//! The ledger through its public surface.
#![expect(clippy::unwrap_used, reason = "a test helper fails by panicking")]

mod child;
mod failures;
mod formats;
mod modes;
mod reading;
mod scratch;
mod sidecars;
mod synced;
mod torn_tail;
mod unchanged;
mod wishes;
mod writers;
