//! The store of return requests, from outside.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod ages;
mod altered;
mod child;
mod crashes;
mod doubt;
mod failures;
mod first_page;
mod forgetting;
mod hidden;
mod losses;
mod migrating;
mod model;
mod modes;
mod moving;
mod no_room;
mod opening;
mod races;
mod registering;
mod rot;
mod streams;
mod torn_log;
mod versions;
mod webhooks;
mod world;
