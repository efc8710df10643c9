//! The long poll: how long a request may be held back, and until when.

use std::time::Duration;

use bridge::Session;
use tokio::time::timeout;

use crate::limits::POLL_WAIT_MS_MAX;
use crate::query;
use crate::refusal::Refusal;

/// How long the sender of a poll waits at most; none when it wants an answer now.
///
/// # Errors
/// 400 `invalid_wait_ms` for what is no whole number of milliseconds within the bound.
pub(crate) fn asked(query: Option<&str>) -> Result<Option<Duration>, Refusal> {
    let Some(text) = query::value(query, "wait_ms") else { return Ok(None) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse().ok().filter(|wait_ms| is_number && *wait_ms <= POLL_WAIT_MS_MAX) {
        Some(0) => Ok(None),
        Some(wait_ms) => Ok(Some(Duration::from_millis(wait_ms))),
        None => {
            let message = format!("`wait_ms` must be a whole number of milliseconds from 0 to {POLL_WAIT_MS_MAX}");
            Err(Refusal::bad_request("invalid_wait_ms", message).with("max", POLL_WAIT_MS_MAX))
        }
    }
}

/// Waits until the prompt is neither queued nor running, but no longer than it was asked for. A prompt that is not there is not
/// waited for, and a session that ends has settled what it held. The waiter goes with its request.
pub(crate) async fn until_settled(session: &Session, prompt: &str, wait: Option<Duration>) {
    if let Some(wait) = wait {
        // Whether it settled or the time is over, what is so then is the answer.
        let _ = timeout(wait, session.settled(prompt)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_whole_number_within_its_bound() {
        let cases = [
            (None, Ok(0)),
            (Some("deep=1"), Ok(0)),
            (Some("wait_ms=0"), Ok(0)),
            (Some("wait_ms=1"), Ok(1)),
            (Some("wait_ms=60000"), Ok(60_000)),
            (Some("wait_ms=60001"), Err(400)),
            (Some("wait_ms=-1"), Err(400)),
            (Some("wait_ms=%2B1"), Err(400)),
            (Some("wait_ms=1.5"), Err(400)),
            (Some("wait_ms=1e3"), Err(400)),
            (Some("wait_ms="), Err(400)),
            (Some("wait_ms"), Err(400)),
            (Some("wait_ms=soon"), Err(400)),
            (Some("wait_ms=99999999999999999999999"), Err(400)),
        ];
        for (query, expected) in cases {
            let got = asked(query).map(|wait| wait.map_or(0, |wait| wait.as_millis()));
            assert_eq!(got.map_err(|refusal| refusal.status.as_u16()), expected, "{query:?}");
        }
    }
}
