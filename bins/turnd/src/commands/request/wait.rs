//! `turnd request wait`: long polls until the request has ended, over whatever becomes of the connection.

use std::time::Duration;

use hyper::Method;
use tokio::time::{Instant, sleep};

use super::{print, standing::Standing};
use crate::cli::WaitArgs;
use crate::client::{ANSWER_LIMIT, Answer, Backoff, Client, ClientError, dice, segment};
use crate::exit::{Exit, Failure};
use crate::output::progress;

/// The longest that a daemon lets one poll wait (return request rules, section 2.13).
const POLL_MAX: Duration = Duration::from_secs(30);

/// Prints the request when it has ended, or when the time is over.
pub(super) async fn run(client: &mut Client, args: &WaitArgs) -> Result<Exit, Failure> {
    let deadline = args.timeout_ms.and_then(|limit_ms| Instant::now().checked_add(Duration::from_millis(limit_ms)));
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let (mut backoff, mut was_answered) = (Backoff::endless(), false);
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
                if let Some(exit) = judged(&answer, is_last)? {
                    print(&answer)?;
                    return Ok(exit);
                }
                was_answered = true;
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
            // Where nobody ever listened an address may be mistyped.
            Err(error @ ClientError::Unreachable(_)) if !was_answered => return Err(error.into()),
            Err(error) if error.is_passing() && !is_last => (error.to_string(), None),
            Err(error) => return Err(error.into()),
        };
        was_answered = true;
        let pause = backoff.next(again.1, dice()).unwrap_or_default();
        progress(format_args!("{}; asking again in {} ms", again.0, pause.as_millis()));
        sleep(left().map_or(pause, |left| left.min(pause))).await;
    }
}

/// How the command ends with this answer, if it does.
fn judged(answer: &Answer, is_last: bool) -> Result<Option<Exit>, Failure> {
    let request = answer.json();
    match Standing::of(&request) {
        Some(Standing::Completed) => Ok(Some(Exit::Done)),
        Some(Standing::Otherwise) => Ok(Some(Exit::NotCompleted)),
        Some(Standing::Pending) => Ok(is_last.then_some(Exit::Pending)),
        None => {
            let state = request["state"].as_str().unwrap_or("none");
            Err(Failure::new(Exit::Failed, format!("unexpected answer: the state of {state:?} is not known here")))
        }
    }
}
