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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Kind, Message, Outcome};

    fn read_back(line: &Bytes) -> Message {
        let (end, frame) = line.split_last().unwrap();
        assert!(*end == b'\n' && !frame.contains(&b'\n'), "one line");
        Message::parse(Bytes::copy_from_slice(frame)).unwrap()
    }

    #[test]
    fn a_request_is_one_line_of_json_rpc() {
        let line = request(7, "session/prompt", &json!({"text": "a\nb"}));
        assert_eq!(
            line,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/prompt\",\"params\":{\"text\":\"a\\nb\"}}\n"
        );
    }

    #[test]
    fn what_is_written_is_read_as_what_was_meant() {
        let id = RequestId::parse("\"a\\ud83d\"").unwrap();
        let message = read_back(&request(&id, "m\"", &json!([1])));
        assert_eq!(*message.kind(), Kind::Request { id: id.clone(), method: "m\"".to_owned() });
        assert_eq!(message.params(), Some("[1]"));

        let message = read_back(&notification("n", &json!({"sessionId": "s"})));
        assert_eq!(*message.kind(), Kind::Notification { method: "n".to_owned() });
        assert_eq!(message.session_id().as_deref(), Some("s"));

        let message = read_back(&response(&id, &json!(null)));
        assert_eq!(*message.kind(), Kind::Response { id: Some(id.clone()) });
        assert_eq!(message.outcome(), Some(Outcome::Result("null")));

        let error = RpcError::new(-32600, "a \"b\"").with_data(&json!({"details": "d\n"}));
        assert_eq!(read_back(&error_response(&id, &error)).outcome(), Some(Outcome::Error(error)));
        let plain = RpcError::new(-32601, "");
        assert_eq!(read_back(&error_response(&RequestId::null(), &plain)).outcome(), Some(Outcome::Error(plain)));
    }

    #[test]
    fn raw_text_keeps_its_bytes_but_for_the_line_breaks_between_its_tokens() {
        let raw = "{\n  \"a\": \"\\ud83d\\n\",\r\n  \"b\": 1e999\n}";
        let flat = "{   \"a\": \"\\ud83d\\n\",    \"b\": 1e999 }";
        assert_eq!(read_back(&request_raw(1, "m", raw)).params(), Some(flat));
        assert_eq!(read_back(&notification_raw("m", raw)).params(), Some(flat));
        assert_eq!(read_back(&response_raw(&RequestId::from(1), raw)).result(), Some(flat));
        let passed = passed_on(format!("{{\"id\":1,\"result\":{raw}}}").as_bytes());
        assert_eq!(read_back(&passed).result(), Some(flat));
    }

    #[test]
    fn what_has_no_json_form_becomes_null() {
        let keyed_by_a_list = std::collections::BTreeMap::from([(vec![1], 1)]);
        assert_eq!(read_back(&notification("m", &keyed_by_a_list)).params(), Some("null"));
    }
}
