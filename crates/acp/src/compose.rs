//! Writing messages: one line each, line feed included.

use bytes::Bytes;
use serde::Serialize;

use crate::request_id::RequestId;
use crate::rpc_error::RpcError;

/// A request. Parameters without a JSON form, which no type of the protocol has, become null.
pub fn request(id: impl Into<RequestId>, method: &str, params: &impl Serialize) -> Bytes {
    request_raw(id, method, &json(params))
}

/// A request with raw JSON parameters.
pub fn request_raw(id: impl Into<RequestId>, method: &str, raw_params: &str) -> Bytes {
    let id = id.into();
    let method = json(&method);
    line(&["\"id\":", id.as_raw(), ",\"method\":", &method, ",\"params\":", raw_params])
}

/// A notification.
pub fn notification(method: &str, params: &impl Serialize) -> Bytes {
    notification_raw(method, &json(params))
}

/// A notification with raw JSON parameters.
#[must_use]
pub fn notification_raw(method: &str, raw_params: &str) -> Bytes {
    line(&["\"method\":", &json(&method), ",\"params\":", raw_params])
}

/// An answer.
pub fn response(id: &RequestId, result: &impl Serialize) -> Bytes {
    response_raw(id, &json(result))
}

/// An answer with a raw JSON result.
#[must_use]
pub fn response_raw(id: &RequestId, raw_result: &str) -> Bytes {
    line(&["\"id\":", id.as_raw(), ",\"result\":", raw_result])
}

/// An answer that is an error.
#[must_use]
pub fn error_response(id: &RequestId, error: &RpcError) -> Bytes {
    let (code, message) = (error.code.to_string(), json(&error.message));
    let mut parts = vec!["\"id\":", id.as_raw(), ",\"error\":{\"code\":", &code, ",\"message\":", &message];
    if let Some(data) = &error.data {
        parts.extend([",\"data\":", data]);
    }
    parts.push("}");
    line(&parts)
}

/// A message that is passed on as it came.
#[must_use]
pub fn passed_on(raw: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(raw.len() + 1);
    line.extend(raw.iter().map(|byte| on_one_line(*byte)));
    line.push(b'\n');
    line.into()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn line(parts: &[&str]) -> Bytes {
    const HEAD: &str = "{\"jsonrpc\":\"2.0\",";
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut line = Vec::with_capacity(HEAD.len() + length + 2);
    line.extend_from_slice(HEAD.as_bytes());
    for part in parts {
        line.extend(part.bytes().map(on_one_line));
    }
    line.extend_from_slice(b"}\n");
    line.into()
}

/// In JSON a line break stands only between tokens, where a space means the same. Raw text from a
/// client may be spread over lines; as it is it would be read as several messages.
fn on_one_line(byte: u8) -> u8 {
    if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }
}
