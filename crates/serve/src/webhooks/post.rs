//! One try: a connection of its own, one request, one answer.

use std::pin::pin;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use request::webhook::Fault;
use tokio::time::timeout;

use super::dial::{Dial, Stream};
use super::target::Target;
use crate::limits::{WEBHOOK_ANSWER_BYTES_MAX, WEBHOOK_ANSWER_HEAD_BYTES_MAX, WEBHOOK_TRY_MS};

/// What stands above the body.
pub(super) struct Letterhead<'l> {
    pub(super) message_id: String,
    /// When this try began, in epoch seconds.
    pub(super) at_s: u64,
    pub(super) signature: String,
    pub(super) user_agent: &'l str,
}

/// An answer, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// Milliseconds for which the endpoint wants to be left alone.
    pub(super) retry_after_ms: Option<u64>,
}

/// Posts a body and reads the answer to its end, within [`WEBHOOK_TRY_MS`] for all of it. A connection is used once: there is none that the
/// other side may have closed meanwhile, so that every failure is one of this very try.
///
/// # Errors
/// What there was instead of a whole answer.
pub(super) async fn post(
    dial: &dyn Dial,
    target: &Target,
    head: &Letterhead<'_>,
    body: String,
    now_ms: u64,
) -> Result<Answer, Fault> {
    let trying = async {
        // A name that no header can carry was refused when it was named.
        let request = request(target, head, body).map_err(|_| Fault::Unreachable)?;
        exchange(dial.dial(target).await?, request, now_ms).await
    };
    timeout(Duration::from_millis(WEBHOOK_TRY_MS), trying).await.unwrap_or(Err(Fault::Timeout))
}

fn request(target: &Target, head: &Letterhead<'_>, body: String) -> hyper::http::Result<Request<Full<Bytes>>> {
    Request::post(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, head.user_agent)
        .header(CONTENT_TYPE, "application/json")
        .header("connection", "close")
        .header("webhook-id", &head.message_id)
        .header("webhook-timestamp", head.at_s)
        .header("webhook-signature", &head.signature)
        .body(Full::new(body.into()))
}

async fn exchange(stream: Box<dyn Stream>, request: Request<Full<Bytes>>, now_ms: u64) -> Result<Answer, Fault> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(WEBHOOK_ANSWER_HEAD_BYTES_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|_| Fault::Torn)?;
    let mut answering = pin!(async {
        let response = sender.send_request(request).await.map_err(|_| Fault::Torn)?;
        whole(response, now_ms).await
    });
    // Driven here and not by a task of its own: whoever stops waiting ends the connection.
    tokio::select! {
        answer = &mut answering => answer,
        _ = connection => answering.await,
    }
}

/// Reads an answer to its end. Of one that goes on and on the head is enough; one that ends too early is none.
async fn whole(response: Response<hyper::body::Incoming>, now_ms: u64) -> Result<Answer, Fault> {
    let answer =
        Answer { status: response.status().as_u16(), retry_after_ms: retry_after_ms(response.headers(), now_ms) };
    let mut body = Limited::new(response.into_body(), WEBHOOK_ANSWER_BYTES_MAX);
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(_) => {}
            Err(error) if error.is::<LengthLimitError>() => break,
            Err(_) => return Err(Fault::Torn),
        }
    }
    Ok(answer)
}

/// The time that an endpoint names, in seconds or as a date.
fn retry_after_ms(headers: &HeaderMap, now_ms: u64) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(u64::try_from(date.as_millis()).ok()?.saturating_sub(now_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_be_left_alone_is_seconds_or_a_date() {
        // 2026-11-30T12:00:00Z
        let now_ms = 1_796_040_000_000;
        for (text, expected) in [
            ("120", Some(120_000)),
            (" 0 ", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("Mon, 30 Nov 2026 12:01:30 GMT", Some(90_000)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            assert_eq!(retry_after_ms(&headers, now_ms), expected, "{text:?}");
        }
        assert_eq!(retry_after_ms(&HeaderMap::new(), now_ms), None);
    }
}
