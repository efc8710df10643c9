//! `turnd send`: a prompt for a session, as a plain one or as a durable request.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use super::explain::now_ms;
use super::request::{client, object_of, printed};
use crate::cli::SendArgs;
use crate::client::{Asked, Client, segment};
use crate::exit::{Exit, Failure};
use crate::output::progress;

/// The longest text that is read from stdin, in bytes: no daemon takes more in one body.
const TEXT_BYTES_MAX: u64 = 10_000_000;

/// The tag of a daemon that runs a prompt once however often it is sent under one id.
const IDS_ARE_KNOWN: &str = "prompt_id_override";

/// Sends the text and prints the receipt.
pub(crate) async fn run(mut args: SendArgs) -> Result<Exit, Failure> {
    let mut client = client(&args.daemon)?;
    let text = match args.text.take() {
        Some(text) if text.is_empty() => return Err(Failure::new(Exit::Usage, "TEXT is empty")),
        Some(text) => text,
        None => from_stdin()?,
    };
    if args.return_final { durable(&mut client, &args, &text).await } else { plain(&mut client, &args, &text).await }
}

async fn durable(client: &mut Client, args: &SendArgs, text: &str) -> Result<Exit, Failure> {
    let mut id = args.request_id.clone().map_or_else(|| new_id(now_ms()), Ok)?;
    progress(format_args!("request {id}"));
    if args.final_timeout_ms > 0 {
        // Behind its own deadline nobody wants it sent.
        client.bear(Duration::from_millis(args.final_timeout_ms));
    }
    let path = format!("/session/{}/return-requests", segment(&args.session));
    let mut asked = client.ask(Method::POST, &path, Some(&body(args, &id, text))).await;
    if args.request_id.is_none()
        && let Some(floor_ms) = floor(&asked)
    {
        id = new_id(now_ms().max(floor_ms))?;
        progress(format_args!("request {id}, made anew: the store was recovered just now"));
        asked = client.ask(Method::POST, &path, Some(&body(args, &id, text))).await;
    }
    let Asked { outcome, may_have_arrived, is_registered } = asked;
    let unknown = format!("whether it was taken is unknown: send the same again with --request-id {id}");
    let (refused, is_proof) = match outcome {
        Ok(answer) if answer.is_success() => {
            object_of(&answer, ("request_id", &id))?;
            return printed(&answer).map_err(|failure| failure.on_record(&id));
        }
        Ok(answer) => (Failure::refused(&answer), answer.proves_nothing_sent()),
        Err(error) => (error.into(), false),
    };
    Err(match (is_registered, may_have_arrived, is_proof) {
        (true, ..) => refused.pending(&id),
        (false, true, _) => refused.doubted().and(&unknown),
        // A refusal that came before the id was read: another call may have sent it.
        (false, false, false) if refused.exit == Exit::Rejected => refused.doubted().and(&unknown),
        (false, false, _) => refused,
    })
}

/// What an id of ours must say of its age so that it is not taken for one that a rescue of the store has forgotten, where that was the
/// answer. Of an id that may have arrived before it is not asked.
fn floor(asked: &Asked) -> Option<u64> {
    let answer = asked.outcome.as_ref().ok().filter(|_| !asked.may_have_arrived)?;
    let body = answer.json();
    body["tombstone_floor"].as_u64().filter(|_| body["code"] == "request_id_expired")
}

/// The body of a durable request: what the caller said, and nothing else.
fn body(args: &SendArgs, id: &str, text: &str) -> Value {
    let mut body = json!({"requestId": id, "prompt": [{"type": "text", "text": text}]});
    if args.final_timeout_ms > 0 {
        body["timeoutMs"] = args.final_timeout_ms.into();
    }
    if args.queue {
        body["queue"] = true.into();
    }
    if let Some(incarnation) = &args.incarnation {
        body["expectedIncarnation"] = incarnation.as_str().into();
    }
    body
}

/// Sends a prompt under an id of its own. It is sent again only to a daemon that says that it knows such ids: another one would run it
/// twice.
async fn plain(client: &mut Client, args: &SendArgs, text: &str) -> Result<Exit, Failure> {
    let id = new_id(now_ms())?;
    let path = format!("/session/{}/prompt", segment(&args.session));
    let body = json!({"promptId": id, "prompt": [{"type": "text", "text": text}]});
    if client.is_awaited() {
        // A question that may be asked twice finds out whether there is a daemon.
        client.ask(Method::GET, "/capabilities", None).await.outcome?;
    }
    let mut outcome = client.call(Method::POST, &path, Some(&body)).await;
    let mut may_have_arrived = matches!(&outcome, Err(error) if error.may_have_arrived());
    if may_have_arrived && knows_ids(client).await {
        let again = client.ask(Method::POST, &path, Some(&body)).await;
        may_have_arrived = !matches!(&again.outcome, Ok(answer) if answer.is_success());
        outcome = again.outcome;
    }
    let refused = match outcome {
        Ok(answer) if answer.is_success() => {
            object_of(&answer, ("promptId", &id))?;
            return printed(&answer).map_err(|failure| failure.and(&format!("it was taken: its promptId is {id}")));
        }
        Ok(answer) => Failure::refused(&answer),
        Err(error) => error.into(),
    };
    let unknown = format!("whether it was taken is unknown: its promptId is {id}");
    Err(if may_have_arrived { refused.doubted().and(&unknown) } else { refused })
}

async fn knows_ids(client: &mut Client) -> bool {
    let Ok(answer) = client.ask(Method::GET, "/capabilities", None).await.outcome else { return false };
    answer.json()["features"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == IDS_ARE_KNOWN))
}

/// A UUID of version 7, which says when it was made: a daemon can tell a forgotten id from a new one by it.
fn new_id(at_ms: u64) -> Result<String, Failure> {
    let mut random = [0; 10];
    getrandom::fill(&mut random)
        .map_err(|error| Failure::new(Exit::Failed, format!("the system has no random bytes: {error}")))?;
    Ok(uuid::Builder::from_unix_timestamp_millis(at_ms, &random).into_uuid().to_string())
}

fn from_stdin() -> Result<String, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        progress("the prompt is read from here; end it with Ctrl-D");
    }
    text_of(stdin.lock())
}

/// All that there is to read, which must be text.
fn text_of(input: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    input
        .take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot read stdin: {error}")))?;
    let usage = |text: &str| Err(Failure::new(Exit::Usage, text));
    match String::from_utf8(bytes) {
        Ok(text) if text.len() as u64 > TEXT_BYTES_MAX => usage("stdin holds more than 10 MB, which no daemon takes"),
        Ok(text) if text.is_empty() => usage("there is no TEXT, and nothing on stdin"),
        Ok(text) => Ok(text),
        Err(_) => usage("stdin is no UTF-8"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_id_is_a_uuid_of_version_7() {
        let id: uuid::Uuid = new_id(7).unwrap().parse().unwrap();
        assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
        assert_ne!(new_id(7).unwrap(), new_id(7).unwrap());
    }

    #[test]
    fn stdin_is_taken_to_the_last_byte_and_what_is_no_text_is_refused() {
        for text in ["hello\n", " two\nlines \n\n", "ü"] {
            assert_eq!(text_of(text.as_bytes()).unwrap(), text);
        }
        let long = vec![b'x'; 10_000_001];
        for bytes in [&b""[..], b"\xff", &long] {
            assert_eq!(text_of(bytes).unwrap_err().exit, Exit::Usage);
        }
    }
}
