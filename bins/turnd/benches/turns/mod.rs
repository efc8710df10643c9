//! What the benchmarks share that run turns.

use crate::figures::member;
use crate::http::Connection;

/// Waits until the turn is over, so that the next prompt finds an idle session.
pub(crate) fn settle(connection: &mut Connection, session: &str, prompt: &str) {
    let path = format!("/session/{session}/turns/{prompt}");
    for _ in 0..1_000_000 {
        if member(&connection.call("GET", &path, "").1, "state") == "completed" {
            return;
        }
    }
    panic!("the turn never settled");
}
