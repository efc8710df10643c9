//! Couriers between a real store and receivers that each test plays itself, over pipes and with a clock that the test owns.

mod delivering;
mod failing;
mod living;
mod receiver;
mod secure;
mod world;
