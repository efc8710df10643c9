//! Answers: a whole body, none, or a stream of chunks.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::pieces::Pieces;
use crate::refusal::Refusal;

/// The media type of every whole body.
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// An answer on its way out.
pub(crate) type Reply = Response<Body>;

/// What follows the head of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// Nothing, or nothing any more.
    Empty,
    /// One piece.
    Whole(Bytes),
    /// Chunks as they come, until the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
    /// The same, where an end that nobody has called whole breaks the body off, so that it is not taken for all there is.
    Checked {
        /// The chunks.
        chunks: mpsc::Receiver<Bytes>,
        /// Set before the sender of a whole body is dropped.
        is_whole: Arc<AtomicBool>,
    },
    /// The same, where it is known how many bytes are still to come.
    Sized {
        /// The chunks.
        chunks: mpsc::Receiver<Bytes>,
        /// Bytes in them.
        left: u64,
    },
    /// Parts that are there already.
    Pieces(Pieces),
}

/// A body that ends before all of it was said.
#[derive(Debug, thiserror::Error)]
#[error("the body was broken off")]
pub(crate) struct BrokenOff;

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Stream(chunks) => chunks.poll_recv(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes)))),
            Self::Checked { chunks, is_whole } => chunks.poll_recv(cx).map(|chunk| match chunk {
                Some(bytes) => Some(Ok(Frame::data(bytes))),
                None if is_whole.load(Ordering::Acquire) => None,
                None => Some(Err(BrokenOff)),
            }),
            Self::Sized { chunks, left } => chunks.poll_recv(cx).map(|chunk| {
                let bytes = chunk?;
                *left = left.saturating_sub(bytes.len() as u64);
                Some(Ok(Frame::data(bytes)))
            }),
            Self::Pieces(pieces) => Poll::Ready(pieces.next().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty | Self::Sized { left: 0, .. } => true,
            Self::Pieces(pieces) => pieces.left() == 0,
            Self::Whole(_) | Self::Stream(_) | Self::Checked { .. } | Self::Sized { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) | Self::Checked { .. } => SizeHint::default(),
            Self::Sized { left, .. } => SizeHint::with_exact(*left),
            Self::Pieces(pieces) => SizeHint::with_exact(pieces.left()),
        }
    }
}

/// `value` as a JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(bytes) => raw_json(status, bytes.into()),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            refuse(&Refusal::internal())
        }
    }
}

/// Text that is JSON already.
pub(crate) fn raw_json(status: StatusCode, bytes: Bytes) -> Reply {
    let mut reply = json_of(Body::Whole(bytes));
    *reply.status_mut() = status;
    reply
}

/// 200 with a body that is JSON.
pub(crate) fn json_of(body: Body) -> Reply {
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, JSON);
    reply
}

/// 200 with `value`.
pub(crate) fn ok(value: &impl Serialize) -> Reply {
    json(StatusCode::OK, value)
}

/// 204.
pub(crate) fn no_content() -> Reply {
    let mut reply = Response::new(Body::Empty);
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}

/// The answer of a refused request.
pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    let mut reply = json(refusal.status, refusal);
    if let Some(seconds) = refusal.retry_after_s() {
        reply.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if let Some(allow) = refusal.allow {
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_status_and_its_headers() {
        let mut refusal = Refusal::archiving("x");
        refusal.allow = Some("GET, POST");
        let reply = refuse(&refusal);
        assert_eq!(reply.status(), StatusCode::CONFLICT);
        assert_eq!(reply.headers()["retry-after"], "5");
        assert_eq!(reply.headers()["allow"], "GET, POST");
        assert_eq!(reply.headers()["content-type"], "application/json; charset=utf-8");
    }

    #[test]
    fn a_204_has_neither_body_nor_type() {
        let reply = no_content();
        assert!(hyper::body::Body::is_end_stream(reply.body()));
        assert!(reply.headers().is_empty());
    }
}
