//! One file for each family of routes. A route reads its request, asks the live sessions, and writes its answer; it decides nothing
//! about prompts itself.

pub(crate) mod acp;
pub(crate) mod aside;
pub(crate) mod branch;
pub(crate) mod capabilities;
pub(crate) mod context;
pub(crate) mod continuation;
pub(crate) mod events;
pub(crate) mod generate;
pub(crate) mod health;
pub(crate) mod load;
pub(crate) mod openapi;
pub(crate) mod pending;
pub(crate) mod permission;
pub(crate) mod prompt;
pub(crate) mod result;
pub(crate) mod returns;
pub(crate) mod rewind;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod shelf;
pub(crate) mod shell;
pub(crate) mod steering;
pub(crate) mod transcript;
pub(crate) mod turns;
pub(crate) mod webhooks;
