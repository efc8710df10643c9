//! `turnd request watch`: the ordered stream of what ended, one object a line, over whatever becomes of the connection.

mod position;

use std::time::Duration;

use hyper::Method;
use tokio::time::sleep;

use crate::cli::WatchArgs;
use crate::client::{Answer, Backoff, Client, ClientError, Lines, Opened, dice, segment};
use crate::exit::{Exit, Failure};
use crate::output::{self, progress};
use position::{Place, Position, Unusable};

/// How often a watch that is to end tries again: together some half a minute.
const ONCE_TRIES_MORE: u32 = 10;

/// Why a connection is not read any more.
enum Over {
    /// The stream ended in order.
    Ended,
    /// It may go on over another connection; a daemon may have said when.
    Broken(String, Option<Duration>),
}

/// Prints what ended, and stays, or with `--once` ends where the stream does.
pub(super) async fn run(client: &mut Client, args: WatchArgs) -> Result<Exit, Failure> {
    let fresh = || if args.once { Backoff::bounded(ONCE_TRIES_MORE) } else { Backoff::endless() };
    let mut position = Position::begin(args.stream.clone(), args.cursor.clone(), args.after);
    let (mut backoff, mut was_answered) = (fresh(), false);
    loop {
        let over = match open(client, &args, &position).await {
            Ok(Opened::Lines(mut lines)) => {
                was_answered = true;
                let before = position.flushed();
                let over = follow(&mut lines, &mut position).await?;
                if position.flushed() != before {
                    backoff = fresh();
                }
                over
            }
            Ok(Opened::Answer(answer)) if answer.asks_again() => {
                was_answered = true;
                Over::Broken(format!("the daemon answers {}", answer.status), answer.retry_after)
            }
            Ok(Opened::Answer(answer)) => return Err(Failure::refused(&answer)),
            // Where nobody ever listened an address may be mistyped.
            Err(error @ ClientError::Unreachable(_)) if !was_answered => return Err(error.into()),
            Err(error) => broken(error)?,
        };
        let (why, after) = match over {
            Over::Ended if args.once => return Ok(Exit::Done),
            Over::Ended => ("the daemon ended the stream".to_owned(), None),
            Over::Broken(why, after) => (why, after),
        };
        let Some(pause) = backoff.next(after, dice()) else {
            return Err(Failure::new(Exit::Unreachable, format!("{why}; what was printed is whole, but not all")));
        };
        progress(format_args!("{why}; going on in {} ms behind {position}", pause.as_millis()));
        sleep(pause).await;
    }
}

/// Opens the stream behind the position. A number alone means nothing in another stream, so the one that the caller named is asked for
/// first; every line then says which it is of.
async fn open(client: &mut Client, args: &WatchArgs, position: &Position) -> Result<Opened, ClientError> {
    if let Some(expected) = &args.stream {
        let answer = client.call(Method::GET, "/return-requests/stream", None).await?;
        if !answer.is_success() {
            return Ok(Opened::Answer(answer));
        }
        if answer.json()["stream_id"] != expected.as_str() {
            return Ok(Opened::Answer(Answer::made(409, "stream_changed", "the daemon tells another stream")));
        }
    }
    client.lines(&target(args, position)).await
}

/// Prints one connection's lines until it ends.
async fn follow(lines: &mut Lines, position: &mut Position) -> Result<Over, Failure> {
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(Over::Ended),
            Err(error) => return broken(error),
        };
        if line.is_empty() {
            continue;
        }
        match position.place(&line) {
            Ok(Place::Next(event)) => {
                output::bytes_line(&line)?;
                position.flush(event);
            }
            Ok(Place::Told) => {}
            Err(Unusable::Refusal(status)) => {
                return Err(Failure::refused(&Answer { status, retry_after: None, body: line }));
            }
            Err(unusable) => return Err(unusable.into()),
        }
    }
}

/// A failure that another connection may mend, or the failure itself.
fn broken(error: ClientError) -> Result<Over, Failure> {
    if error.is_passing() { Ok(Over::Broken(error.to_string(), None)) } else { Err(error.into()) }
}

fn target(args: &WatchArgs, position: &Position) -> String {
    let (key, value) = position.query();
    let mut target = format!("/return-requests/events?{key}={}", segment(&value));
    if let Some(state) = &args.state {
        target.push_str("&state=");
        target.push_str(state);
    }
    if args.once {
        target.push_str("&once=true");
    }
    target
}
