//! `turnd request wait`: long polls until the request has ended, over whatever becomes of the connection.

use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{object_of, one_line, standing::Standing};
use crate::cli::WaitArgs;
use crate::client::{ANSWER_LIMIT, Backoff, Client, dice, segment};
use crate::exit::{Exit, Failure};
use crate::output::{self, progress};

/// The longest that a daemon lets one poll wait (return request rules, section 2.13).
const POLL_MAX: Duration = Duration::from_secs(30);

/// Prints the request when it has ended, or when the time is over.
pub(super) async fn run(client: &mut Client, args: &WaitArgs) -> Result<Exit, Failure> {
    let deadline = args.timeout_ms.and_then(|limit_ms| Instant::now().checked_add(Duration::from_millis(limit_ms)));
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let mut backoff = Backoff::endless();
    loop {
        let (poll, is_last) = match left() {
            Some(left) => (left.min(POLL_MAX), left.is_zero()),
            None => (POLL_MAX, false),
        };
        let path = format!("/return-requests/{}?wait_ms={}", segment(&args.id), poll.as_millis());
        let asked_at = Instant::now();
        let outcome = client.call_within(poll + ANSWER_LIMIT, Method::GET, &path, None).await;
        let again = match outcome {
            Ok(answer) if answer.is_success() => {
                let request = object_of(&answer, ("request_id", &args.id))?;
                if let Some(exit) = judged(&request, is_last)? {
                    output::bytes_line(&one_line(&answer.body))?;
                    return Ok(exit);
                }
                // Nearly all of the time is as good as all of it; an answer long before is one that did not wait.
                if asked_at.elapsed() >= poll / 2 {
                    backoff = Backoff::endless();
                    continue;
                }
                ("the daemon does not wait".to_owned(), None)
            }
            Ok(answer) if answer.asks_again() && !is_last => {
                (format!("the daemon answers {}", answer.status), answer.retry_after)
            }
            Ok(answer) => return Err(Failure::refused(&answer)),
            Err(error) if !client.was_reached() => return Err(error.into()),
            Err(error) if error.is_passing() && !is_last => (error.to_string(), None),
            Err(error) => return Err(error.into()),
        };
        let pause = backoff.next(again.1, dice()).unwrap_or_default();
        progress(format_args!("{}; asking again in {} ms", again.0, pause.as_millis()));
        sleep(left().map_or(pause, |left| left.min(pause))).await;
    }
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
