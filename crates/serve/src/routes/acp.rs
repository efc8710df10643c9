//! `GET /acp`: the door for editors, a WebSocket (RFC 6455) behind the wall that every request passes.

use std::sync::Arc;

use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::acp_door::{Visitor, receive};
use crate::caller::{Caller, Place};
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::{Body, Reply, refuse};
use crate::tasks::spawn;

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
/// The one version of the protocol.
const VERSION: HeaderValue = HeaderValue::from_static("13");
/// The subprotocol, for clients that must name one.
const ACP: HeaderValue = HeaderValue::from_static("acp");
/// Characters of a key: sixteen bytes in base 64.
const KEY_CHARS: usize = 24;

/// Lets an editor in.
pub(crate) fn enter(call: &Call<'_>) -> Result<Reply, Refusal> {
    let headers = &call.head.headers;
    let upgrade = call.head.extensions.get::<OnUpgrade>().cloned();
    let (Some(key), Some(upgrade)) = (key(headers), upgrade.filter(|_| call.head.version == Version::HTTP_11)) else {
        return Ok(upgrade_required());
    };
    let caller = call.head.extensions.get::<Caller>();
    let visitor = Visitor {
        is_local: caller.is_some_and(|caller| caller.is_local(headers)),
        place: call.head.extensions.get::<Place>().cloned(),
    };
    let daemon = Arc::clone(call.daemon);
    spawn(async move {
        match upgrade.await {
            Ok(stream) => receive(daemon, TokioIo::new(stream), visitor).await,
            Err(error) => tracing::debug!(%error, "an editor left before its connection was upgraded"),
        }
    });
    let mut reply = Response::new(Body::Empty);
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = reply.headers_mut();
    answer.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(UPGRADE, WEBSOCKET);
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key)) {
        answer.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if names(headers, &SEC_WEBSOCKET_PROTOCOL, ACP.as_bytes()) {
        answer.insert(SEC_WEBSOCKET_PROTOCOL, ACP);
    }
    Ok(reply)
}

/// The key of a request that asks for a WebSocket as the rules want it; none of any other request.
fn key(headers: &HeaderMap) -> Option<&[u8]> {
    let only = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    let asks = names(headers, &CONNECTION, b"upgrade") && names(headers, &UPGRADE, b"websocket");
    let speaks = only(&SEC_WEBSOCKET_VERSION).is_some_and(|version| *version == VERSION);
    let key = only(&SEC_WEBSOCKET_KEY)?.as_bytes();
    (asks && speaks && key.len() == KEY_CHARS).then_some(key)
}

/// Whether a list of words in a header holds one, in either case.
fn names(headers: &HeaderMap, name: &HeaderName, word: &[u8]) -> bool {
    let words = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    words.map(<[u8]>::trim_ascii).any(|one| one.eq_ignore_ascii_case(word))
}

/// 426 for a request that is none for a WebSocket, saying what it takes.
fn upgrade_required() -> Reply {
    let message = "GET /acp is a WebSocket (version 13)";
    let mut reply = refuse(&Refusal::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message));
    reply.headers_mut().insert(UPGRADE, WEBSOCKET);
    reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    reply.headers_mut().insert(SEC_WEBSOCKET_VERSION, VERSION);
    reply
}
