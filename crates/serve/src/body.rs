//! Request bodies: at most 10 MB, JSON objects, as tolerant as the peer (wire rules, section 1.2).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::limits::{BODY_BYTES_MAX, DRAIN_BYTES_MAX, Limits};
use crate::refusal::Refusal;

/// Keys that never reach anyone: they mean something to JavaScript objects.
const DROPPED_KEYS: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// What an HTML form can be sent as.
const FORM_MEDIA: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// The top-level fields of a body, each as the raw text it was sent as. A repeated key keeps its last value.
pub(crate) type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads the body of a request whose head carried `headers`. What is not declared as JSON is read and dropped.
///
/// # Errors
/// 413 above the limit, 415 for an encoding or a form, 408 when the sender stalls, 400 when the connection breaks.
pub(crate) async fn read<B>(headers: &HeaderMap, body: B, limits: &Limits) -> Result<Bytes, Refusal>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    if is_form(headers) {
        let message = "Request body must be sent as application/json; forms are not accepted";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "form_not_accepted", message));
    }
    if is_encoded(headers) {
        let message = "Request body must not be encoded";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_content_encoding", message));
    }
    let reading = collect(headers, body, Duration::from_millis(limits.body_read_ms));
    let bytes =
        tokio::time::timeout(Duration::from_millis(limits.body_total_ms), reading).await.map_err(|_| stalled())??;
    Ok(if is_json(headers) { mend_surrogates(bytes) } else { Bytes::new() })
}

async fn collect<B>(headers: &HeaderMap, mut body: B, patience: Duration) -> Result<Bytes, Refusal>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    let declared = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut total = 0;
    let mut too_large = declared.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64);
    if declared.is_some_and(|bytes| bytes > DRAIN_BYTES_MAX as u64) {
        // It would not be read to its end anyway.
        return Err(too_large_body());
    }
    while let Some(chunk) = next_chunk(&mut body, patience).await? {
        total += chunk.len();
        too_large |= total > BODY_BYTES_MAX;
        if too_large {
            (first, rest) = (Bytes::new(), BytesMut::new());
            if total > DRAIN_BYTES_MAX {
                break;
            }
        } else if first.is_empty() && rest.is_empty() {
            first = chunk;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&chunk);
        }
    }
    match too_large {
        true => Err(too_large_body()),
        false => Ok(if rest.is_empty() { first } else { rest.freeze() }),
    }
}

/// The next piece of data; trailers are skipped.
async fn next_chunk<B>(body: &mut B, patience: Duration) -> Result<Option<Bytes>, Refusal>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    loop {
        let frame = tokio::time::timeout(patience, body.frame()).await;
        match frame.map_err(|_| stalled())? {
            None => return Ok(None),
            Some(Err(_)) => return Err(Refusal::bad_request("body_incomplete", "Request body ended early")),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Whether the body would have to be unpacked first. Taken as it is, a packed body is not JSON at all.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn stalled() -> Refusal {
    Refusal::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "Request body took too long")
}

fn too_large_body() -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", "Request body too large (max 10 MB)")
}

/// Whether a body is read at all.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    media(headers).is_some_and(|media| media.eq_ignore_ascii_case("application/json"))
}

/// Whether it is one of the media types that any page on the web can have a browser send here without asking us first. Most such
/// posts name their page and end at the wall; an old browser's may not.
fn is_form(headers: &HeaderMap) -> bool {
    media(headers).is_some_and(|media| FORM_MEDIA.iter().any(|form| media.eq_ignore_ascii_case(form)))
}

/// The media type without its parameters.
fn media(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// The fields of a body. Nothing, and JSON that is no object, count as `{}`.
///
/// # Errors
/// 400 for what is not JSON.
pub(crate) fn fields(body: &[u8]) -> Result<Fields<'_>, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(Fields::new());
    }
    match serde_json::from_slice::<Fields<'_>>(body) {
        Ok(mut fields) => {
            fields.retain(|key, _| !DROPPED_KEYS.contains(&key.as_str()));
            Ok(fields)
        }
        Err(_) if serde_json::from_slice::<&RawValue>(body).is_ok() => Ok(Fields::new()),
        Err(_) => Err(Refusal::bad_request("invalid_json", "Invalid JSON in request body")),
    }
}

/// A field that a body, which is an object, has more than once; the first such.
pub(crate) fn repeated(body: &[u8]) -> Option<String> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let (mut names, mut twice) = (BTreeSet::new(), None);
            while let Some((name, _)) = map.next_entry::<String, &'de RawValue>()? {
                if let Some(name) = names.replace(name) {
                    twice.get_or_insert(name);
                }
            }
            Ok(twice)
        }
    }
    serde_json::Deserializer::from_slice(body).deserialize_map(Names).ok().flatten()
}

/// A field as text: `None` when absent, an error when present and no string.
pub(crate) fn text(fields: &Fields<'_>, key: &str) -> Result<Option<String>, NotText> {
    fields.get(key).map(|raw| serde_json::from_str(raw.get()).map_err(|_| NotText)).transpose()
}

/// The field is there and is no string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotText;

/// Replaces escaped halves of surrogate pairs by U+FFFD. JavaScript callers send them when they cut text between two units;
/// neither we nor most agents could read the line otherwise.
fn mend_surrogates(bytes: Bytes) -> Bytes {
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        let Some(unit) = escaped_unit(&bytes[at..]) else {
            at = (at + 2).min(bytes.len());
            continue;
        };
        let paired = is_high(unit) && bytes.get(at + 6..).and_then(escaped_unit).is_some_and(is_low);
        if !paired && (is_high(unit) || is_low(unit)) {
            mended.get_or_insert_with(|| bytes.to_vec())[at..at + 6].copy_from_slice(b"\\ufffd");
        }
        at += if paired { 12 } else { 6 };
    }
    mended.map_or(bytes, Bytes::from)
}

/// The UTF-16 unit of a `\uXXXX` at the start of `bytes`.
fn escaped_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(text, 16).ok()
}

fn is_high(unit: u16) -> bool {
    (0xD800..0xDC00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xDC00..0xE000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::header::HeaderValue;

    async fn read_as(media: &str, body: Vec<u8>) -> Result<Bytes, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_str(media).unwrap());
        read(&headers, Full::new(Bytes::from(body)), &Limits::default())
            .await
            .map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_an_object_has_fields() {
        for body in ["", "  ", "[1,2]", "5", "null", "\"x\"", "{}", r#"{"__proto__":1,"constructor":2}"#] {
            assert_eq!(fields(body.as_bytes()).map(|fields| fields.len()), Ok(0), "{body}");
        }
        for body in ["{bad", "{", "prompt=1", "{\"a\":1} x", "\u{feff}{}", "[1,"] {
            assert_eq!(
                fields(body.as_bytes()).map_err(|refusal| refusal.status.as_u16()).map(|_| ()),
                Err(400),
                "{body}"
            );
        }
    }

    #[test]
    fn a_repeated_key_keeps_its_last_value() {
        assert_eq!(fields(br#"{"a":1,"a":2}"#).unwrap()["a"].get(), "2");
    }

    #[test]
    fn a_repeated_key_is_found_however_it_is_written() {
        for (body, twice) in [
            (r#"{"a":1,"b":2}"#, None),
            (r#"{"a":{"b":1},"b":{"a":1}}"#, None),
            (r#"{"a":1,"b":2,"a":1}"#, Some("a")),
            (r#"{"a":1,"\u0061":[2],"b":1,"b":1}"#, Some("a")),
            ("", None),
            ("[]", None),
        ] {
            assert_eq!(repeated(body.as_bytes()).as_deref(), twice, "{body}");
        }
    }

    #[test]
    fn depth_does_not_matter_in_a_field_nobody_reads() {
        let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(fields(deep.as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        let cases = [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ude00x"}"#, r#"{"a":"\ufffdx"}"#),
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\"#, r#"{"a":"\"#),
        ];
        for (given, expected) in cases {
            assert_eq!(mend_surrogates(Bytes::from_static(given.as_bytes())), expected.as_bytes(), "{given}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_not_declared_as_json_is_dropped() {
        assert_eq!(read_as("application/octet-stream", b"{\"a\":1}".to_vec()).await, Ok(Bytes::new()));
        assert_eq!(read_as("Application/JSON; charset=utf-8", b"{}".to_vec()).await, Ok(Bytes::from_static(b"{}")));
    }

    #[tokio::test]
    async fn a_form_is_refused_and_not_read_as_an_empty_body_as_the_peer_does() {
        for media in [
            "text/plain",
            "Text/Plain; charset=utf-8",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
        ] {
            assert_eq!(read_as(media, b"{}".to_vec()).await, Err(415), "{media}");
            assert_eq!(read_as(media, Vec::new()).await, Err(415), "{media}, empty");
        }
    }

    #[tokio::test]
    async fn one_byte_above_the_limit_is_refused() {
        assert!(read_as("application/json", vec![b' '; BODY_BYTES_MAX]).await.is_ok());
        assert_eq!(read_as("application/json", vec![b' '; BODY_BYTES_MAX + 1]).await, Err(413));
    }

    #[test]
    fn a_field_of_another_type_is_no_text() {
        let given = fields(br#"{"a":"x","b":5,"c":null}"#).unwrap();
        assert_eq!(text(&given, "a"), Ok(Some("x".to_owned())));
        assert_eq!(text(&given, "b"), Err(NotText));
        assert_eq!(text(&given, "c"), Err(NotText));
        assert_eq!(text(&given, "d"), Ok(None));
    }
}
