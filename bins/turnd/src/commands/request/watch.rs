//! `turnd request watch`: the ordered stream of what ended, one object a line, over whatever becomes of the connection.

mod drain;
mod position;

use std::time::Duration;

use hyper::Method;

use crate::cli::WatchArgs;
use crate::client::{Answer, Client, ClientError, Lines, Opened, Outage, segment};
use crate::exit::{Exit, Failure};
use crate::output;
use drain::Page;
use position::{Place, Position};

/// Why a connection is not read any more, though it may go on over another one.
struct Over {
    why: String,
    /// When, where the daemon said so.
    after: Option<Duration>,
    /// What it is when there is no other one.
    failure: Failure,
}

/// Prints what ended, and stays, or with `--once` ends where the stream does.
pub(super) async fn run(client: &mut Client, args: &WatchArgs) -> Result<Exit, Failure> {
    let position = Position::begin(args.stream.clone(), args.cursor.clone(), args.after);
    if args.once {
        return drain::run(client, args, position).await;
    }
    // A stream may be silent for days, and whoever reads behind a pipe may be started anew only when this has ended.
    tokio::select! {
        ended = stay(client, args, position) => ended,
        () = output::unheard() => Err(Failure::unheard()),
    }
}

/// Prints what ended for as long as it is let.
async fn stay(client: &mut Client, args: &WatchArgs, mut position: Position) -> Result<Exit, Failure> {
    let mut outage = Outage::of_a_stream(client.bound_of_a_wait());
    loop {
        let over = match open(client, args, &position).await {
            Ok(Opened::Lines(mut lines)) => follow(client, args, &mut lines, (&mut position, &mut outage)).await?,
            Ok(Opened::Answer(answer)) if answer.asks_again() => {
                Over { why: answer.brief(), after: answer.retry_after, failure: Failure::refused(&answer) }
            }
            Ok(Opened::Answer(answer)) => return Err(Failure::refused(&answer)),
            Err(error) if !client.may_be_back() => return Err(error.into()),
            Err(error) => broken(error)?,
        };
        let Over { why, after, failure } = over;
        if !outage.wait(why, after, format_args!("going on behind {position}")).await {
            return Err(failure);
        }
    }
}

/// Opens the stream behind the position.
async fn open(client: &mut Client, args: &WatchArgs, position: &Position) -> Result<Opened, ClientError> {
    match refused(client, args).await? {
        Some(answer) => Ok(Opened::Answer(answer)),
        None => client.lines(&target(args, position)).await,
    }
}

/// What is to be said instead of the stream. A number alone means nothing in another stream, so the one that the caller named is asked for
/// first; every line then says which it is of.
async fn refused(client: &mut Client, args: &WatchArgs) -> Result<Option<Answer>, ClientError> {
    let Some(expected) = &args.stream else { return Ok(None) };
    let answer = client.call(Method::GET, "/return-requests/stream", None).await?;
    if !answer.is_success() {
        return Ok(Some(answer));
    }
    let is_other = answer.json()["stream_id"] != expected.as_str();
    Ok(is_other.then(|| Answer::made(409, "stream_changed", "the daemon tells another stream")))
}

/// Prints one connection's lines until it ends. A daemon that is told to stop ends it in order, and one that cannot go on does too: what
/// is wrong is the answer to the next try.
async fn follow(
    client: &mut Client,
    args: &WatchArgs,
    lines: &mut Lines,
    (position, outage): (&mut Position, &mut Outage),
) -> Result<Over, Failure> {
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => {
                let why = "the daemon ended the stream";
                return Ok(Over { why: why.to_owned(), after: None, failure: Failure::new(Exit::Unreachable, why) });
            }
            Err(error) => return broken(error),
        };
        // Whoever says anything is there.
        outage.over();
        if line.is_empty() {
            pass(client, args, position).await;
            continue;
        }
        print(&line, position)?;
    }
}

/// Moves behind what a filter leaves out, so that a watch that is shown nothing does not fall behind what the daemon keeps: a heartbeat of
/// this form has no place in it, and a page has. What there is to print comes over the stream, and what is wrong is seen there too.
async fn pass(client: &mut Client, args: &WatchArgs, position: &mut Position) {
    if args.state.is_none() {
        return;
    }
    let path = format!("{}&limit=1", target(args, position));
    let Ok(answer) = client.call(Method::GET, &path, None).await else { return };
    let page = Page::of(&answer.body).filter(|_| answer.is_success());
    if let Some(page) = page.filter(|page| page.events.is_empty() && page.next_after > position.number()) {
        position.pass(page.next_after, page.next_cursor);
    }
}

/// Prints an event that is the next one, and moves behind it.
fn print(line: &[u8], position: &mut Position) -> Result<(), Failure> {
    if let Place::Next(event) = position.place(line)? {
        output::bytes_line(line)?;
        position.flush(event);
    }
    Ok(())
}

/// A failure that another connection may mend, or the failure itself.
fn broken(error: ClientError) -> Result<Over, Failure> {
    if error.is_passing() {
        Ok(Over { why: error.to_string(), after: None, failure: error.into() })
    } else {
        Err(error.into())
    }
}

fn target(args: &WatchArgs, position: &Position) -> String {
    let (key, value) = position.query();
    let mut target = format!("/return-requests/events?{key}={}", segment(&value));
    if let Some(state) = &args.state {
        target.push_str("&state=");
        target.push_str(state);
    }
    target
}
