//! `turnd request wait`: long polls until the request has ended, over whatever becomes of the connection.

use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{object_of, one_line, standing::Standing};
use crate::cli::WaitArgs;
use crate::client::{ANSWER_LIMIT, Backoff, Client, Outage, dice, segment};
use crate::exit::{Exit, Failure};
use crate::output;

/// The longest that a daemon lets one poll wait (return request rules, section 2.13).
const POLL_MAX: Duration = Duration::from_secs(30);

/// How much longer than it was asked to wait a daemon may take to answer somebody who has no more time, in a row of such answers.
const LATE_MAX: Duration = Duration::from_secs(5);

/// Prints the request when it has ended, or when the time is over.
pub(super) async fn run(client: &mut Client, args: &WaitArgs) -> Result<Exit, Failure> {
    let deadline = args.timeout_ms.and_then(|limit_ms| Instant::now().checked_add(Duration::from_millis(limit_ms)));
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let late = if deadline.is_some() { LATE_MAX } else { ANSWER_LIMIT };
    let mut outage = Outage::of_a_stream(client.bound_of_a_wait()).until(deadline);
    let mut eager = Backoff::endless();
    let mut known = None;
    loop {
        let (poll, is_last) = match left() {
            Some(left) => (left.min(POLL_MAX), left.is_zero()),
            None => (POLL_MAX, false),
        };
        let path = format!("/return-requests/{}?wait_ms={}", segment(&args.id), poll.as_millis());
        let asked_at = Instant::now();
        let (why, after, failure) = match client.call_within(outage.room(poll + late), Method::GET, &path, None).await {
            Ok(answer) if answer.is_success() => {
                let request = object_of(&answer, ("request_id", &args.id))?;
                if let Some(exit) = judged(&request, is_last)? {
                    output::bytes_line(&one_line(&answer.body))?;
                    return Ok(exit);
                }
                known = Some(answer.body);
                outage.over();
                // Nearly all of the time is as good as all of it; an answer long before is one that did not wait.
                if asked_at.elapsed() >= poll / 2 {
                    eager = Backoff::endless();
                } else {
                    let pause = eager.next(None, dice()).unwrap_or_default();
                    sleep(left().map_or(pause, |left| left.min(pause))).await;
                }
                continue;
            }
            Ok(answer) if answer.asks_again() => (answer.brief(), answer.retry_after, Failure::refused(&answer)),
            Ok(answer) => return Err(Failure::refused(&answer)),
            Err(error) if error.is_passing() && client.may_be_back() => (error.to_string(), None, error.into()),
            Err(error) => return Err(error.into()),
        };
        if is_last || !outage.wait(why, after, "asking again").await {
            return given_up(known.as_deref(), failure);
        }
    }
}

/// The daemon is away for longer than somebody waits. Of a request that it has told of, that is not knowing yet.
fn given_up(known: Option<&[u8]>, failure: Failure) -> Result<Exit, Failure> {
    let Some(known) = known else { return Err(failure) };
    if let Some(text) = failure.text {
        output::complain(format_args!("turnd: {text}; this is how the request stood before"));
    }
    output::bytes_line(&one_line(known))?;
    Ok(Exit::Pending)
}

/// How the command ends with what is known, if it does.
fn judged(request: &Value, is_last: bool) -> Result<Option<Exit>, Failure> {
    match Standing::of(request) {
        Some(Standing::Completed) => Ok(Some(Exit::Done)),
        Some(Standing::Otherwise) => Ok(Some(Exit::NotCompleted)),
        Some(Standing::Pending) => Ok(is_last.then_some(Exit::Pending)),
        None => {
            let state = request["state"].as_str().unwrap_or("none");
            Err(Failure::new(Exit::Failed, format!("unexpected answer: the state of {state:?} is not known here")))
        }
    }
}
