//! What the routes of return requests understand. Whatever else a caller says is refused, since it says it for a reason: a prompt that is
//! sent under another id than its caller believes, or a cancel without the interrupt that was misspelled, is noticed too late. These
//! routes are ours alone, so that no client of the peer's brings a field of its own along.

use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, TRANSFER_ENCODING};
use hyper::{Method, StatusCode};

use crate::body::{self, is_json};
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::returns::refusal;
use crate::router::Route;

/// The header that names a prompt elsewhere, and nothing here.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Characters of a caller's word that an answer repeats.
const NAME_CHARS_SHOWN: usize = 64;

/// The words of one route.
struct Words {
    /// Of the body's fields.
    fields: &'static [&'static str],
    /// Of the query.
    parameters: &'static [&'static str],
}

/// The words of a route; none where it is not about return requests.
const fn words(route: Route) -> Option<Words> {
    let (fields, parameters): (&[&str], &[&str]) = match route {
        Route::SubmitReturn => {
            (&["requestId", "prompt", "timeoutMs", "queue", "expectedIncarnation", "cancelOnTimeout"], &[])
        }
        Route::Return => (&[], &["wait_ms"]),
        Route::Returns => (&[], &["state", "session", "limit", "page"]),
        Route::CancelReturn => (&["interrupt"], &[]),
        Route::ReturnEvents => (&[], &["after", "cursor", "limit", "wait_ms", "once", "state", "session"]),
        Route::ReturnConsumer => (&["acked", "protect"], &[]),
        Route::PutWebhook => (&["url", "secret", "after"], &[]),
        Route::RedeliverWebhook => (&["seq"], &[]),
        Route::RotateWebhook => (&["secret"], &[]),
        Route::ReturnStream
        | Route::Webhooks
        | Route::Webhook
        | Route::DeleteWebhook
        | Route::ResumeWebhook
        | Route::EndWebhookSecret => (&[], &[]),
        _ => return None,
    };
    Some(Words { fields, parameters })
}

/// Whether a route needs the store of return requests, which is opened while the daemon serves already.
pub(crate) const fn is_about_returns(route: Route) -> bool {
    words(route).is_some()
}

/// Whether all that a call about return requests says is understood.
///
/// # Errors
/// 400 `body_not_object`, `repeated_field`, `unknown_field`, `unknown_parameter`, `repeated_parameter` or `idempotency_key_not_taken`; 415 `json_required` for
/// a body that is not declared as JSON, of which nothing would be read.
pub(crate) async fn check(call: &Call<'_>, body: &[u8]) -> Result<(), Refusal> {
    match is_understood(call, body) {
        Ok(()) => Ok(()),
        Err(refusal) => Err(call.daemon.returns.malformed(call, refusal).await),
    }
}

fn is_understood(call: &Call<'_>, body: &[u8]) -> Result<(), Refusal> {
    let Some(Words { fields, parameters }) = words(call.matched.route) else { return Ok(()) };
    if call.matched.route == Route::SubmitReturn && call.head.headers.contains_key(IDEMPOTENCY_KEY) {
        let message = "A return request is named by `requestId` in the body, and `Idempotency-Key` has no meaning here";
        return Err(Refusal::bad_request("idempotency_key_not_taken", message));
    }
    let reads = call.head.method == Method::GET || call.head.method == Method::HEAD;
    if !reads && is_unread(&call.head.headers) {
        let message = "Request body must be sent as application/json; nothing else is read";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "json_required", message));
    }
    if !is_object(body) {
        return Err(Refusal::bad_request("body_not_object", "Request body must be a JSON object"));
    }
    if let Some(field) = body::repeated(body) {
        return Err(repeated_field(&field));
    }
    if let Some(field) = call.fields.keys().find(|key| !fields.contains(&key.as_str())) {
        return Err(unknown_field(field, fields));
    }
    is_query_understood(call.head.uri.query().unwrap_or_default(), parameters)
}

/// Whether there is a body, and one that is dropped because it is not called JSON.
fn is_unread(headers: &HeaderMap) -> bool {
    let is_empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length.as_bytes() == b"0");
    let has_body = !is_empty || headers.contains_key(TRANSFER_ENCODING);
    has_body && !is_json(headers)
}

/// Whether a body that is JSON has fields, or there is none.
fn is_object(body: &[u8]) -> bool {
    body.trim_ascii().first().is_none_or(|first| *first == b'{')
}

/// Of two values of one name another reader may take the other one. Of two ids nobody can say which one is meant.
fn repeated_field(field: &str) -> Refusal {
    let named: String = field.chars().take(NAME_CHARS_SHOWN).collect();
    let message = format!("`{named}` stands in this body more than once");
    let refusal = Refusal::bad_request("repeated_field", message).with("field", named);
    if field == "requestId" { refusal::doubtful(refusal) } else { refusal }
}

fn unknown_field(field: &str, known: &[&str]) -> Refusal {
    let instead = match field {
        "promptId" => {
            "; the id of the prompt is made here, and `requestId` is the one under which it may be sent again"
        }
        "request_id" | "requestId" if known.contains(&"requestId") => "; the caller's id is `requestId`",
        "request_id" | "requestId" => "; the request is the one that the path names",
        "sessionId" | "session_id" => "; the session is the one that the path names",
        _ => "",
    };
    let known = match known {
        [] => "nothing".to_owned(),
        known => known.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", "),
    };
    // It may be of any length, and anything.
    let named: String = field.chars().take(NAME_CHARS_SHOWN).collect();
    let message = format!("`{named}` has no meaning in this body, which may have {known}{instead}");
    Refusal::bad_request("unknown_field", message).with("field", named)
}

fn is_query_understood(query: &str, known: &[&str]) -> Result<(), Refusal> {
    let names = || query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next().unwrap_or(pair));
    if let Some(name) = names().find(|name| !known.contains(name)) {
        let named: String = name.chars().take(NAME_CHARS_SHOWN).collect();
        let message = format!("`{named}` is no query parameter of this path");
        return Err(Refusal::bad_request("unknown_parameter", message).with("parameter", named));
    }
    let Some(twice) = known.iter().find(|known| names().filter(|name| name == *known).count() > 1) else {
        return Ok(());
    };
    let message = format!("`{twice}` is said more than once");
    Err(Refusal::bad_request("repeated_parameter", message).with("parameter", *twice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(query: &str) -> String {
        match is_query_understood(query, &["after", "limit"]) {
            Ok(()) => "ok".to_owned(),
            Err(refusal) => format!("{} {}", refusal.code, refusal.fields[0].1.as_str().unwrap()),
        }
    }

    #[test]
    fn a_query_has_known_words_and_each_once() {
        for sound in ["", "&", "after=1", "after", "limit=1&after=2&"] {
            assert_eq!(query(sound), "ok", "{sound}");
        }
        assert_eq!(query("afterwards=1"), "unknown_parameter afterwards");
        assert_eq!(query("after=1&=2"), "unknown_parameter ");
        assert_eq!(query("%61fter=1"), "unknown_parameter %61fter");
        assert_eq!(query("after=1&limit=2&after=1"), "repeated_parameter after");
        assert_eq!(query(&"x".repeat(100)), format!("unknown_parameter {}", "x".repeat(64)));
    }

    #[test]
    fn a_body_is_an_object_or_none() {
        for sound in ["", " \r\n", "{}", "\n{\"a\":[]}"] {
            assert!(is_object(sound.as_bytes()), "{sound:?}");
        }
        for other in ["[]", "null", "7", " \"{}\"", "true"] {
            assert!(!is_object(other.as_bytes()), "{other:?}");
        }
    }

    #[test]
    fn a_body_that_would_not_be_read_is_noticed() {
        let unread = |lines: &[(&'static str, &'static str)]| {
            let headers = lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            is_unread(&headers)
        };
        for sound in
            [&[][..], &[("content-length", "0")], &[("content-length", "2"), ("content-type", "application/json")]]
        {
            assert!(!unread(sound), "{sound:?}");
        }
        assert!(unread(&[("content-length", "2")]));
        assert!(unread(&[("transfer-encoding", "chunked"), ("content-type", "application/octet-stream")]));
    }
}
