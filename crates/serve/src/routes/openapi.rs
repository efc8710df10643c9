//! `GET /openapi.json`: the page `docs/openapi.yaml`, which the build has turned into JSON.

use hyper::StatusCode;

use crate::reply::{Reply, raw_json};

/// The document.
const DOCUMENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json"));

pub(crate) fn get() -> Reply {
    raw_json(StatusCode::OK, DOCUMENT.into())
}

#[cfg(test)]
mod tests;
