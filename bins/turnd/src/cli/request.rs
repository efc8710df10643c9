//! What can be typed behind `turnd send` and `turnd request`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::Hidden;
use crate::exit::STATUSES;

/// The longest request id, in characters (return request rules, section 2.9).
const REQUEST_ID_CHARS_MAX: usize = 128;

/// Ids that are words of the daemon's paths: what is asked under them is no request.
const PATH_WORDS: [&str; 4] = ["events", "stream", "consumers", "webhooks"];

/// The states in which a request may still become anything.
const PENDING: [&str; 3] = ["registered", "submitted", "bound"];

/// The states in which a request stays.
const TERMINAL: [&str; 6] = ["completed", "aborted", "timed_out", "cancelled", "delivery_failed", "indeterminate"];

/// Where the daemon is, and what it wants to be told.
#[derive(Debug, Args)]
#[command(next_help_heading = "Daemon")]
pub(crate) struct DaemonArgs {
    /// Where the daemon is; https is judged by the system's certificates, or by those of SSL_CERT_FILE
    #[arg(
        long,
        env = "TURND_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:4170",
        value_name = "URL"
    )]
    pub(crate) url: String,
    /// The daemon's bearer token. Everyone on this machine can read a command line: better set the variable
    #[arg(long, env = "TURND_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<Hidden>,
    /// How long to try again while the daemon, or its store, is away; 0 gives up at once. Only who says this waits also for a
    /// daemon that cannot be reached at first [default: some 15 s; send: until --final-timeout-ms; wait, watch, and a request on record: as long as it takes]
    #[arg(long, value_name = "MS")]
    pub(crate) retry_ms: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Without --return-final this posts a plain prompt and prints its receipt: follow it on the session's
stream, or poll it by its promptId. With --return-final it makes a durable request: the daemon keeps
what became of it under the request id, through any crash, and tells it once on the ordered stream
that `turnd request watch` reads. The receipt says \"reply_pending\": true until then.

However often a request is sent under one id, its prompt runs once at most: a copy gets the first
receipt. So this command sends again by itself when the connection breaks, or the store is away, and
you may do so too. It says on stderr that it waits and why; --retry-ms bounds how long.

Examples:
  turnd send $SESSION --return-final \"Complete phases 2 and 3\"
  git diff | turnd send $SESSION --return-final --request-id review-17 --final-timeout-ms 3600000

{STATUSES}"))]
pub(crate) struct SendArgs {
    /// The session's id; it has to be open
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// What to ask; read from stdin where it is not given, to the last byte
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Keep the final answer for whoever asks for it by the request's id
    #[arg(long)]
    pub(crate) return_final: bool,
    /// The request's id, up to 128 of A-Z a-z 0-9 . _ : - [default: a new UUID]
    #[arg(long, value_name = "ID", requires = "return_final", value_parser = request_id)]
    pub(crate) request_id: Option<String>,
    /// How long until the request ends as timed_out, whatever the agent does; 0 lets it wait for ever
    #[arg(long, value_name = "MS", default_value_t = 0, requires = "return_final")]
    pub(crate) final_timeout_ms: u64,
    /// Wait behind the session's other prompts instead of being refused while one runs
    #[arg(long, requires = "return_final")]
    pub(crate) queue: bool,
    /// Only if the session's agent is still this very process: the incarnation of an earlier receipt
    #[arg(long, value_name = "INCARNATION", requires = "return_final")]
    pub(crate) incarnation: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = format!("\
A request is made by `turnd send --return-final`. It ends exactly once, in one of these states:
  completed        with the agent's final message; no other state has one
  aborted          the turn ended, but not in order: a limit, a refusal, a closed session
  timed_out        its deadline came first; the agent was left alone
  cancelled        by `turnd request cancel`
  delivery_failed  the agent never began with it
  indeterminate    nobody can honestly say; input_written tells whether the prompt went out

Examples:
  turnd request wait review-17 && echo finished
  turnd request watch --after 42 | while read -r event; do process \"$event\"; done

{STATUSES}")
)]
pub(crate) struct RequestArgs {
    #[command(subcommand)]
    pub(crate) command: RequestCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RequestCommand {
    /// Print what is known of a request
    Get(GetArgs),
    /// End a pending request; of one that ended, print how
    Cancel(CancelArgs),
    /// Print the requests that are kept, one object a line
    List(ListArgs),
    /// Wait until a request has ended, and print it
    Wait(WaitArgs),
    /// Print what ended, in the order in which it did, one object a line, and stay
    Watch(WatchArgs),
    /// Note how far a named consumer of the stream has come
    Ack(AckArgs),
    /// Look after the files of a daemon that is stopped: verify, export, recover
    Store(StoreArgs),
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  turnd request get review-17
  turnd request get review-17 | jq -r .terminal.final_message

{STATUSES}"))]
pub(crate) struct GetArgs {
    /// The request's id
    #[arg(value_name = "ID", value_parser = request_id)]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
The request ends here and now, and stays cancelled whatever the agent still says. The agent itself
is only told to stop with --interrupt.

Examples:
  turnd request cancel review-17
  turnd request cancel review-17 --interrupt

{STATUSES}"))]
pub(crate) struct CancelArgs {
    /// The request's id
    #[arg(value_name = "ID", value_parser = request_id)]
    pub(crate) id: String,
    /// Tell the agent to stop, too
    #[arg(long)]
    pub(crate) interrupt: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  turnd request list --state bound
  turnd request list --session $SESSION | jq -r '[.request_id, .state] | @tsv'

{STATUSES}"))]
pub(crate) struct ListArgs {
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(PENDING.iter().chain(&TERMINAL)))]
    pub(crate) state: Option<String>,
    /// Only those of this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
The object is printed when the request has ended, and also when the limit came first. A connection
that is lost meanwhile is made again.

Examples:
  turnd request wait review-17 | jq -r .terminal.final_message
  turnd request wait review-17 --timeout-ms 60000 || echo \"status $?\"

{STATUSES}"))]
pub(crate) struct WaitArgs {
    /// The request's id
    #[arg(value_name = "ID", value_parser = request_id)]
    pub(crate) id: String,
    /// How long to wait; 0 only looks [default: until it has ended]
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Every request that ends is one line, told once, under a number that only grows: keep the last
terminal_event_sequence (or better the cursor, which also knows its stream) that you have processed,
and go on behind it. Each line is handed on as it comes. After a lost connection, or a restart of
the daemon, the watch goes on by itself behind the last line that it printed: nothing is repeated,
and nothing left out.

Examples:
  turnd request watch --after 42
  turnd request watch --cursor \"$(tail -1 ended.jsonl | jq -r .cursor)\" --once >> ended.jsonl

{STATUSES}"))]
pub(crate) struct WatchArgs {
    /// Begin behind this terminal_event_sequence
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "cursor")]
    pub(crate) after: u64,
    /// Begin behind the event with this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// The stream that the number is one of; another one is not read
    #[arg(long, value_name = "STREAM")]
    pub(crate) stream: Option<String>,
    /// Only what ended in this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(TERMINAL))]
    pub(crate) state: Option<String>,
    /// Print what has ended by now, and exit
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
The daemon only keeps the number for you. It moves forward only: a smaller one is ignored, and one
beyond the end of the stream is refused.

Examples:
  turnd request ack billing 42
  turnd request ack billing 42 --protect true

{STATUSES}"))]
pub(crate) struct AckArgs {
    /// The consumer's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The terminal_event_sequence up to which all is processed
    #[arg(value_name = "N")]
    pub(crate) number: u64,
    /// Whether what the consumer has not processed is kept longer than usual
    #[arg(long, value_name = "BOOL")]
    pub(crate) protect: Option<bool>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = format!("\
The store is one database a daemon, in the folder of its primary workspace: stop the daemon first,
and name the --store and the --workspace that it was started with.

Examples:
  turnd request store verify --workspace ~/project
  turnd request store recover --workspace ~/project | tee recovered.json

{STATUSES}")
)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Look whether everything holds that must; changes nothing
    Verify(VerifyArgs),
    /// Write the whole store to one file that goes on elsewhere, and close it here
    Export(ExportArgs),
    /// Make a store of what can be read of a damaged one; the old files stay aside
    Recover(RecoverArgs),
}

/// Which daemon's store.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// The store of the daemon; of native transcripts ~/.qwen [default: the user's state folder]
    #[arg(long, env = "TURND_STORE", value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The daemon's primary workspace, its first [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Prints one object with what was counted; `violations` says what does not hold, and ends with 8: also
a row that is not what its event says, and commits that were done and are not there any more.
`notes` says what cannot be told of a store that may well be sound.

Examples:
  turnd request store verify
  turnd request store verify --store /var/lib/turnd --workspace /srv/project | jq .violations

{STATUSES}"))]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
The copy keeps the stream, its numbers and its cursors. To go on with it, put it into the request
folder of the other daemon's workspace as requests.db. The store that it was taken from refuses new
requests from then on: there are never two that go on.

Examples:
  turnd request store export /mnt/backup/requests.db
  turnd request store export requests.db --workspace ~/project && scp requests.db other:

{STATUSES}"))]
pub(crate) struct ExportArgs {
    /// The file to write; there must be none
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
The stream is another one afterwards, with numbers above all that were ever seen: watchers are told
so (status 7), and begin anew. A request that was open ends with the outcome that was seen, if one
was, else as indeterminate. A store that is sound is left alone, and one of another version is not
touched. Where not all of the old store could be read, a line says what is missing (status 12).

Examples:
  turnd request store recover
  turnd request store recover --above 4711 --workspace ~/project

{STATUSES}"))]
pub(crate) struct RecoverArgs {
    /// The highest terminal_event_sequence that any consumer has seen, where that is known
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) above: u64,
    /// Keep nothing: begin with an empty store
    #[arg(long)]
    pub(crate) empty: bool,
    /// Do it to a sound store, too
    #[arg(long)]
    pub(crate) anyway: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

/// An id that a daemon takes, so that a mistyped one is told before anything is sent.
fn request_id(text: &str) -> Result<String, String> {
    let is_id = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | ':' | '-');
    if text.is_empty() || text.len() > REQUEST_ID_CHARS_MAX || !text.chars().all(is_id) {
        return Err(format!("up to {REQUEST_ID_CHARS_MAX} letters, digits, `.`, `_`, `:` and `-` are an id"));
    }
    if PATH_WORDS.contains(&text) {
        return Err("it is a word of the daemon's paths and no id".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{REQUEST_ID_CHARS_MAX, request_id};
    use crate::cli::Cli;

    #[test]
    fn an_id_is_what_the_daemon_takes_for_one() {
        let longest = "x".repeat(REQUEST_ID_CHARS_MAX);
        for (text, expected) in [
            ("review-17", true),
            ("a.b_c:d-E9", true),
            (&longest, true),
            ("", false),
            (&format!("{longest}x"), false),
            ("a b", false),
            ("a/b", false),
            ("ü", false),
            ("events", false),
            ("stream", false),
            ("consumers", false),
            ("webhooks", false),
            ("event", true),
        ] {
            assert_eq!(request_id(text).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_not_taken() {
        for (words, expected) in [
            (&["send", "S", "hello"][..], true),
            (
                &["send", "S", "--return-final", "--request-id", "x", "--final-timeout-ms", "5", "--queue", "hello"],
                true,
            ),
            (&["send", "S", "--return-final", "--incarnation", "i"], true),
            (&["send", "S", "--request-id", "x", "hello"], false),
            (&["send", "S", "--queue", "hello"], false),
            (&["send", "S", "--final-timeout-ms", "5", "hello"], false),
            (&["send", "S", "--return-final", "--final-timeout-ms", "-5", "hello"], false),
            (&["send"], false),
            (&["request", "get", "a b"], false),
            (&["request", "watch", "--after", "1", "--cursor", "c"], false),
            (&["request", "watch", "--state", "bound"], false),
            (&["request", "watch", "--state", "completed", "--stream", "s", "--after", "7"], true),
            (&["request", "list", "--state", "bound"], true),
            (&["request", "list", "--state", "lost"], false),
            (&["request", "ack", "billing", "-1"], false),
            (&["request", "ack", "billing", "1", "--url", "http://x"], true),
        ] {
            let parsed = Cli::try_parse_from(["turnd"].iter().chain(words));
            assert_eq!(parsed.is_ok(), expected, "{words:?}");
        }
    }

    #[test]
    fn a_token_is_in_no_debug_output() {
        let cli = Cli::try_parse_from(["turnd", "request", "get", "x", "--token", "s3cret"]).unwrap();
        assert!(!format!("{cli:?}").contains("s3cret"));
    }
}
