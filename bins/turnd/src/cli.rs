//! What can be typed: every command, flag and help text.

use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Puts any coding agent that speaks ACP behind HTTP, and never loses track of what became of a prompt.
///
/// A prompt is admitted under an id (202), queued first in first out per session, and run by the agent. Its outcome can
/// be streamed, polled, awaited, or collected after a crash. When the outcome cannot be known, turnd says so.
#[derive(Debug, Parser)]
#[command(
    name = "turnd",
    version,
    max_term_width = 100,
    after_help = "\
First steps:
  turnd demo                      the whole story in ten seconds, with a kill -9 in the middle
  turnd serve                     the daemon, with the built-in agent, on http://127.0.0.1:4170
  turnd serve --agent qwen        the daemon, with qwen-code as the agent
  turnd explain SESSION           why a prompt's outcome is known, or is not"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// How the program logs. Logs go to stderr, results to stdout.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The form of log lines on stderr
    #[arg(long, global = true, value_enum, default_value = "text", help_heading = "Logging")]
    pub(crate) log_format: LogFormat,
    /// The least severe level that is logged: error, warn, info, debug, trace
    #[arg(long, global = true, default_value = "info", value_name = "LEVEL", help_heading = "Logging")]
    pub(crate) log_level: tracing::level_filters::LevelFilter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One readable line an event.
    Text,
    /// One JSON object an event.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the daemon: HTTP in front, one agent process a session behind
    Serve(Box<ServeArgs>),
    /// Watch three prompts live through a kill -9 of the daemon
    Demo(DemoArgs),
    /// Say why each open prompt of a session, or of all below a folder, is or is not resolvable
    Explain(ExplainArgs),
    /// Run the built-in scripted agent on stdin and stdout
    Agent(AgentArgs),
    /// Internal: stand between the daemon and one agent
    #[command(hide = true)]
    Host(HostArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0   ended by SIGTERM or SIGINT
  1   something failed: the address is taken, a file or the store cannot be used
  2   wrong usage
  78  others can reach the address and there is no token: nothing was opened")]
pub(crate) struct ServeArgs {
    /// Where to listen; 0 picks a free port
    #[arg(long, default_value_t = 4170)]
    pub(crate) port: u16,
    /// The address to bind; anything but loopback needs a token
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS", value_parser = bind_address)]
    pub(crate) hostname: IpAddr,
    /// The folder the agents work in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Where ledgers and transcripts live [default: the user's state folder; for native transcripts ~/.qwen]
    #[arg(long, env = "TURND_STORE", value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The agent: `builtin`, `qwen`, or a command line that speaks ACP on stdio
    #[arg(long, default_value = "builtin", value_name = "COMMAND|PRESET", help_heading = "Agent")]
    pub(crate) agent: String,
    /// Who writes the transcript: turnd (recorded) or the agent itself (native) [default: the preset's own, else recorded]
    #[arg(long, value_enum, help_heading = "Agent")]
    pub(crate) transcript: Option<TranscriptMode>,
    /// How long a turn may go on and be recorded after the daemon was killed
    #[arg(long, default_value_t = 600_000, value_name = "MS", help_heading = "Agent")]
    pub(crate) linger_ms: u64,
    /// How long the agent may take to start, and again to open a session
    #[arg(long, default_value_t = 10_000, value_name = "MS", help_heading = "Agent")]
    pub(crate) initialize_timeout_ms: u64,
    /// How long restoring a session may take
    #[arg(long, default_value_t = 60_000, value_name = "MS", help_heading = "Agent")]
    pub(crate) session_restore_timeout_ms: u64,
    /// How long any prompt's caller waits for its outcome, counted from admission [default: for ever]
    #[arg(long, value_name = "MS", value_parser = at_least_one_ms, help_heading = "Agent")]
    pub(crate) prompt_deadline_ms: Option<u64>,
    /// How long any prompt's caller waits for its outcome, counted from dispatch [default: for ever]
    #[arg(long, value_name = "MS", value_parser = at_least_one_ms, help_heading = "Agent")]
    pub(crate) prompt_run_deadline_ms: Option<u64>,
    /// How long an agent that was told to stop may take before its process is replaced
    #[arg(long, default_value_t = serve::limits::SETTLE_GRACE_MS, value_name = "MS", help_heading = "Agent")]
    pub(crate) settle_grace_ms: u64,
    /// How long a close waits for the running turn to settle before it ends as `session_closed`
    #[arg(long, default_value_t = serve::limits::CLOSE_SETTLE_MS, value_name = "MS", help_heading = "Agent")]
    pub(crate) close_settle_ms: u64,
    /// What an acknowledged admission or outcome survives: the end of the process, or of the machine
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) durability: Durability,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) rates: RateArgs,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Security")]
pub(crate) struct AccessArgs {
    /// The bearer token clients must send. Everyone on this machine can read a command line: better set the variable
    #[arg(long, env = "TURND_TOKEN", hide_env_values = true, conflicts_with_all = ["token_file", "generate_token"])]
    pub(crate) token: Option<Hidden>,
    /// A file that holds the token, alone on one line
    #[arg(long, value_name = "PATH", conflicts_with = "generate_token")]
    pub(crate) token_file: Option<PathBuf>,
    /// Make a random token and print it on stdout, in the line `turnd token TOKEN` before the one with the address
    #[arg(long)]
    pub(crate) generate_token: bool,
    /// The certificate chain to speak https with, the server's own first; PEM. SIGHUP reads it and the key again
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The certificate's private key; PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Ask for the token on /health too
    #[arg(long)]
    pub(crate) require_auth: bool,
    /// A browser origin that may call, such as http://localhost:3000; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
}

/// Text that no log and no error message shows.
#[derive(Clone)]
pub(crate) struct Hidden(String);

impl Hidden {
    /// The text itself, for the one place that needs it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct PermissionArgs {
    /// Who decides what an agent asks before it acts
    #[arg(long, value_enum, default_value = "first-responder", value_name = "POLICY")]
    pub(crate) permission_policy: PermissionPolicy,
    /// Votes for one option that decide under `consensus` [default: more than half of the clients registered at the time]
    #[arg(long, value_name = "N")]
    pub(crate) consensus_quorum: Option<NonZeroUsize>,
    /// How long a question waits before it is denied; 0 lets it wait for as long as its turn runs
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) permission_response_timeout_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionPolicy {
    /// The first valid vote, whosever it is.
    FirstResponder,
    /// The client whose prompt it is; anybody where the prompt is nobody's.
    Designated,
    /// So many clients as must agree.
    Consensus,
    /// Anybody who calls from this machine, and not through a proxy.
    LocalOnly,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Live sessions at a time
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_sessions: usize,
    /// Running and queued prompts of one session; 0 lifts the limit
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) max_pending_prompts_per_session: usize,
    /// Open client connections
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_connections: usize,
    /// Events kept per session for readers that come back
    #[arg(long, default_value_t = 8_000, value_name = "N", value_parser = at_least_one)]
    pub(crate) event_ring_size: usize,
    /// How long a reader may accept nothing before its connection is ended [default: 30 s]
    #[arg(long, value_name = "MS", value_parser = at_least_one_ms)]
    pub(crate) writer_idle_timeout_ms: Option<u64>,
    /// Bytes of history that a load replays
    #[arg(long, default_value_t = 4 * 1024 * 1024, value_name = "BYTES")]
    pub(crate) compacted_replay_max_bytes: usize,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Rate limit")]
pub(crate) struct RateArgs {
    /// Count requests, by client id on a loopback bind, else by address
    #[arg(long)]
    pub(crate) rate_limit: bool,
    /// Admissions within a window
    #[arg(long, default_value = "10", value_name = "N")]
    pub(crate) rate_limit_prompt: NonZeroU32,
    /// Whatever else changes something
    #[arg(long, default_value = "30", value_name = "N")]
    pub(crate) rate_limit_mutation: NonZeroU32,
    /// Whatever changes nothing
    #[arg(long, default_value = "120", value_name = "N")]
    pub(crate) rate_limit_read: NonZeroU32,
    /// The window
    #[arg(long, default_value_t = 60_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate_limit_window_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TranscriptMode {
    /// turnd's host writes the session file.
    Recorded,
    /// The agent writes its own session file in the same format.
    Native,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// Handed to the operating system: survives a kill of anything.
    Process,
    /// Flushed to the disk: survives a loss of power.
    Fsync,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the store of the run and print where it is
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Of a session that another process has (its host, as a rule) the report says so first:
its verdicts are what a load would say if everything died now, and nothing of it is
settled. With --json its object ends with `\"live\":true`; a transcript that is there and
cannot be read adds `error` at the end.

A folder stands for every session below it that has a ledger, archived ones too. The
ones in which something is open are explained, and a last line counts them all. Each
session's workspace is the one its transcript was begun in, unless --workspace is
given. With --json there is one object a line for every session, led by `session`,
`ledger`, `transcript`, `workspace` and `archived`. With --apply a session that is
live is skipped; its object says `\"skipped\":\"live\"`, if something is open in it.
Links to ledgers, and those that lead out of the folder, are left out and counted.
A session that qwen-code's own daemon has live holds no lock that could be seen: end
that daemon before you believe a verdict or --apply it.

Exit status, of several sessions the worst:
  0  nothing open, or all of it resolvable; a session without files is noted on stderr
  3  something stays unknown, or is open in a live session
  2  wrong usage
  1  a file could not be read or written, or --apply was asked of one session that is live
  141  nobody reads the output any more; what was not told was not looked at")]
pub(crate) struct ExplainArgs {
    /// The session's id, its transcript or ledger, or a folder with sessions below it
    #[arg(value_name = "SESSION|FILE|DIR")]
    pub(crate) target: PathBuf,
    /// The store to look in; native sessions lie in ~/.qwen [default: the user's state folder]
    #[arg(long, env = "TURND_STORE", value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// The session's workspace [default: the current folder; for files and folders what the transcript says]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print one JSON object a session, with all that is known
    #[arg(long)]
    pub(crate) json: bool,
    /// Append what is printed; no daemon may have the session live
    #[arg(long)]
    pub(crate) apply: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Write down every message that is heard, and every answer to a prompt, and flush it to the disk at once
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// How long an answer comes after the last word: a real agent's is never instant, and clients may depend on that
    #[arg(long, default_value_t = 20, value_name = "MS")]
    pub(crate) answer_after_ms: u64,
}

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Become the program behind `--`, in a process session of its own
    #[arg(long)]
    pub(crate) exec: bool,
    /// End what a killed host of the session left behind, and nothing else
    #[arg(long, conflicts_with = "exec")]
    pub(crate) sweep: bool,
    /// The session's id
    #[arg(long, required_unless_present_any = ["exec", "sweep"])]
    pub(crate) session: Option<String>,
    /// Who writes the transcript
    #[arg(long, value_enum, default_value = "recorded")]
    pub(crate) mode: TranscriptMode,
    /// The session's transcript; lock and note lie beside it
    #[arg(long, required_unless_present = "exec")]
    pub(crate) transcript: Option<PathBuf>,
    /// The folder the agent works in
    #[arg(long, required_unless_present_any = ["exec", "sweep"])]
    pub(crate) workspace: Option<PathBuf>,
    /// How long a running turn may go on after the daemon was killed
    #[arg(long, default_value_t = 600_000)]
    pub(crate) linger_ms: u64,
    /// How long to wait for an earlier host of the session
    #[arg(long, default_value_t = 0)]
    pub(crate) lock_wait_ms: u64,
    /// What a record survives: the end of the process, or of the machine
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) durability: Durability,
    /// The agent's command line
    #[arg(last = true, required_unless_present = "sweep")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// An address to bind: a literal one, or the one name every machine has.
fn bind_address(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    text.parse().map_err(|_| format!("`{text}` is not an IP address"))
}

/// A count of which none would make no daemon.
fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("`{text}` is not a whole number")),
    }
}

/// A time of which none would end every connection, or every prompt, at once.
fn at_least_one_ms(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(ms) => Ok(ms),
        Err(_) => Err(format!("`{text}` is not a whole number")),
    }
}

/// A scheme and an authority, as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    match text.split_once("://") {
        Some((scheme, authority)) if !scheme.is_empty() && !authority.is_empty() && !authority.contains('/') => {
            Ok(text.to_owned())
        }
        _ => Err(format!("`{text}` is not an origin: scheme://host[:port], nothing behind it")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn serves(flags: &[&str]) -> bool {
        Cli::try_parse_from(["turnd", "serve"].iter().chain(flags)).is_ok()
    }

    #[test]
    fn a_limit_that_would_make_no_daemon_is_refused() {
        for flag in ["--max-sessions", "--max-connections", "--event-ring-size", "--writer-idle-timeout-ms"] {
            assert!(!serves(&[flag, "0"]), "{flag}");
            assert!(!serves(&[flag, "-1"]), "{flag}");
            assert!(serves(&[flag, "1"]), "{flag}");
        }
        assert!(serves(&["--max-pending-prompts-per-session", "0"]), "0 lifts this limit");
    }

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for origin in ["zzz", "http://", "://x", "http://x/", "http://x/path"] {
            assert!(!serves(&["--allow-origin", origin]), "{origin}");
        }
        assert!(serves(&["--allow-origin", "http://localhost:3000", "--allow-origin", "app://editor"]));
    }

    #[test]
    fn an_address_is_literal_or_localhost() {
        assert!(serves(&["--hostname", "localhost"]));
        assert!(serves(&["--hostname", "::1"]));
        assert!(!serves(&["--hostname", "example.org"]));
    }
}
