//! `POST /session/:id/generate`: a text that has nothing to do with the conversation, as a stream of its own (wire rules, section
//! 13.3). Nobody can come back to it: its frames have no numbers, and a reader that leaves ends it.

use std::time::Duration;

use bridge::{AskError, Generation, Heard};
use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};

use crate::aside::Aside;
use crate::body;
use crate::dispatch::Call;
use crate::identity::fresh_uuid;
use crate::limits::{ASIDE_MS, GENERATE_MS, GENERATE_PROMPT_BYTES_MAX, HEARTBEAT_MS};
use crate::refusal::Refusal;
use crate::reply::{Body, Reply};
use crate::tasks::spawn;

const GENERATE: Aside = Aside::new("generation_not_supported", "qwen/control/session/generation/start");

/// Chunks on their way to the socket.
const CHUNKS_QUEUED: usize = 1;

pub(crate) async fn generate(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.open_session_and_client()?;
    let invalid = |message| Refusal::bad_request("invalid_prompt", message);
    let prompt = body::text(&call.fields, "prompt").ok().flatten().filter(|prompt| !prompt.trim().is_empty());
    let prompt = prompt.ok_or_else(|| invalid("`prompt` is required and must be a non-empty string"))?;
    if prompt.len() > GENERATE_PROMPT_BYTES_MAX {
        return Err(invalid("`prompt` must be at most 32768 bytes"));
    }
    let request_id = fresh_uuid();
    let mut generation = session.generate(&request_id, &prompt);
    // Whether the agent can do it at all is known with its first word, and only then is there a stream to begin.
    let first = timeout(Duration::from_millis(ASIDE_MS), generation.next()).await;
    let timed_out = || AskError::Timeout { method: "generate".to_owned(), timeout_ms: ASIDE_MS };
    let first = match first {
        Ok(Some(Heard::Failed(error))) => return Err(GENERATE.refusal(session.id(), error)),
        Ok(Some(first)) => first,
        Ok(None) => return Err(Refusal::session_not_found(session.id())),
        Err(_) => return Err(GENERATE.refusal(session.id(), timed_out())),
    };
    let (sender, chunks) = mpsc::channel(CHUNKS_QUEUED);
    spawn(pump(generation, request_id, first, sender));
    let mut reply = Response::new(Body::Stream(chunks));
    *reply.status_mut() = StatusCode::OK;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    Ok(reply)
}

/// Writes what is told until the end, or until the reader is gone: then the text is dropped, which cancels it.
async fn pump(mut generation: Generation, request_id: String, first: Heard, chunks: mpsc::Sender<Bytes>) {
    let period = Duration::from_millis(HEARTBEAT_MS);
    let mut heartbeat = interval_at(Instant::now() + period, period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let until = Instant::now() + Duration::from_millis(GENERATE_MS);
    if chunks.send(Bytes::from_static(b": connected\n\n")).await.is_err() {
        return;
    }
    let mut next = Some(first);
    loop {
        if let Some(told) = next.take() {
            let (frame, is_last) = frame(&request_id, &told);
            if chunks.send(frame).await.is_err() || is_last {
                return;
            }
        }
        tokio::select! {
            told = timeout_at(until, generation.next()) => match told {
                Ok(Some(told)) => next = Some(told),
                Ok(None) => return,
                Err(_) => {
                    let timeout = AskError::Timeout { method: "generate".to_owned(), timeout_ms: GENERATE_MS };
                    next = Some(Heard::Failed(timeout));
                }
            },
            _ = heartbeat.tick() => {
                if chunks.send(Bytes::from_static(b": heartbeat\n\n")).await.is_err() {
                    return;
                }
            }
            () = chunks.closed() => return,
        }
    }
}

/// The frame that says it, and whether it is the last one.
fn frame(request_id: &str, told: &Heard) -> (Bytes, bool) {
    let (mut data, is_last) = match told {
        Heard::Event(raw) => (object(raw), false),
        Heard::Done(raw) => (done(object(raw)), true),
        Heard::Failed(AskError::Refused(error)) => (failed(&error.code.to_string(), &error.message), true),
        Heard::Failed(AskError::Gone) => (failed("session_closed", "the session ended"), true),
        Heard::Failed(error @ AskError::Timeout { .. }) => (failed("agent_timeout", &error.to_string()), true),
        Heard::Lagged => (failed("reader_lagged", "more was told than was read"), true),
    };
    let kind = data.get("type").and_then(Value::as_str).unwrap_or("delta").to_owned();
    // What an agent calls the kind is one line to whoever reads the stream.
    let kind: String = kind.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
    data.insert("v".to_owned(), json!(1));
    data.insert("type".to_owned(), json!(kind));
    data.insert("requestId".to_owned(), json!(request_id));
    (format!("event: {kind}\ndata: {}\n\n", Value::Object(data)).into(), is_last)
}

/// Of the agent's result what belongs to the reader.
fn done(result: Map<String, Value>) -> Map<String, Value> {
    let theirs = ["model", "modelSource", "inputTokens", "outputTokens"];
    let mut data: Map<_, _> = result.into_iter().filter(|(key, _)| theirs.contains(&key.as_str())).collect();
    data.insert("type".to_owned(), json!("done"));
    data
}

fn failed(code: &str, message: &str) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), json!("error")),
        ("code".to_owned(), json!(code)),
        ("message".to_owned(), json!(message)),
    ])
}

fn object(raw: &str) -> Map<String, Value> {
    serde_json::from_str(raw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind and the data of a frame, and whether it is the last one.
    fn check(told: &Heard, kind: &str, data: Value, is_last: bool) {
        let (text, last) = frame("g", told);
        let text = std::str::from_utf8(&text).unwrap();
        let (event, rest) = text.split_once('\n').unwrap();
        assert_eq!((event, last), (format!("event: {kind}").as_str(), is_last));
        let line = rest.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Value>(line).unwrap(), data);
    }

    #[test]
    fn a_frame_has_a_kind_and_data_and_no_number() {
        let event = Heard::Event(r#"{"type":"delta","seq":0,"text":"a\nb"}"#.to_owned());
        let data = json!({"v": 1, "type": "delta", "requestId": "g", "seq": 0, "text": "a\nb"});
        check(&event, "delta", data, false);
    }

    #[test]
    fn the_end_says_what_it_took_and_nothing_of_the_agents_session() {
        let done = Heard::Done(r#"{"sessionId":"x","requestId":"y","model":"m","outputTokens":5}"#.to_owned());
        let data = json!({"v": 1, "type": "done", "requestId": "g", "model": "m", "outputTokens": 5});
        check(&done, "done", data, true);
    }

    #[test]
    fn a_failure_ends_the_stream_too() {
        let message = "more was told than was read";
        let data = json!({"v": 1, "type": "error", "requestId": "g", "code": "reader_lagged", "message": message});
        check(&Heard::Lagged, "error", data, true);
    }

    #[test]
    fn an_agents_kind_cannot_break_the_line() {
        let (text, _) = frame("g", &Heard::Event(r#"{"type":"a\nid: 7"}"#.to_owned()));
        assert!(text.starts_with(b"event: aid7\n"));
    }
}
