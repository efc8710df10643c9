//! What can be typed behind `turnd serve`.

use std::net::{IpAddr, Ipv4Addr};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::{Durability, TranscriptMode};

#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM or SIGINT ends it: what waits ends at once, the turn of a return request has 9 s to be
answered, and a second signal ends that too.

Exit status:
  0   ended by SIGTERM or SIGINT
  1   something failed: the address is taken, a file or the store cannot be used
  2   wrong usage; workspaces that cannot be served together
  78  others can reach the address and there is no token: nothing was opened")]
pub(crate) struct ServeArgs {
    /// Where to listen; 0 picks a free port
    #[arg(long, default_value_t = 4170)]
    pub(crate) port: u16,
    /// The address to bind; anything but loopback needs a token
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS", value_parser = bind_address)]
    pub(crate) hostname: IpAddr,
    /// A folder the agents work in; repeatable, the first is the one of callers who name none [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
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
    /// How long the agent may leave a part of a return request's prompt in its input unread before its process is ended:
    /// the request reads delivery_failed (write_failed), or indeterminate (write_unknown) if the agent may have all of it
    #[arg(long, default_value_t = ::serve::limits::AGENT_INPUT_MS, value_name = "MS", help_heading = "Agent")]
    #[arg(value_parser = at_least_one::<u64>)]
    pub(crate) agent_input_timeout_ms: u64,
    /// How long restoring a session may take
    #[arg(long, default_value_t = 60_000, value_name = "MS", help_heading = "Agent")]
    pub(crate) session_restore_timeout_ms: u64,
    /// How long any prompt's caller waits for its outcome, counted from admission [default: for ever]
    #[arg(long, value_name = "MS", value_parser = at_least_one::<u64>, help_heading = "Agent")]
    pub(crate) prompt_deadline_ms: Option<u64>,
    /// How long any prompt's caller waits for its outcome, counted from dispatch [default: for ever]
    #[arg(long, value_name = "MS", value_parser = at_least_one::<u64>, help_heading = "Agent")]
    pub(crate) prompt_run_deadline_ms: Option<u64>,
    /// How long an agent that was told to stop may take before its process is replaced
    #[arg(long, default_value_t = ::serve::limits::SETTLE_GRACE_MS, value_name = "MS", help_heading = "Agent")]
    pub(crate) settle_grace_ms: u64,
    /// How long a close waits for the running turn to settle before it ends as `session_closed`
    #[arg(long, default_value_t = ::serve::limits::CLOSE_SETTLE_MS, value_name = "MS", help_heading = "Agent")]
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
    /// Let registered clients run commands in the workspace, as the user this daemon runs as
    #[arg(long)]
    pub(crate) enable_session_shell: bool,
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
    /// Live sessions of a workspace at a time
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = at_least_one::<usize>)]
    pub(crate) max_sessions: usize,
    /// Live sessions of all workspaces at a time
    #[arg(long, default_value_t = 800, value_name = "N", value_parser = at_least_one::<usize>)]
    pub(crate) max_total_sessions: usize,
    /// Running and queued prompts of one session; 0 lifts the limit
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) max_pending_prompts_per_session: usize,
    /// Open client connections
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = at_least_one::<usize>)]
    pub(crate) max_connections: usize,
    /// Events kept per session for readers that come back
    #[arg(long, default_value_t = 8_000, value_name = "N", value_parser = at_least_one::<usize>)]
    pub(crate) event_ring_size: usize,
    /// How long a reader may accept nothing before its connection is ended [default: 30 s]
    #[arg(long, value_name = "MS", value_parser = at_least_one::<u64>)]
    pub(crate) writer_idle_timeout_ms: Option<u64>,
    /// Between two looks for sessions that nobody uses; 0 looks never
    #[arg(long, default_value_t = ::serve::limits::REAP_INTERVAL_MS, value_name = "MS")]
    pub(crate) session_reap_interval_ms: u64,
    /// How long a session may rest that nobody reads before it is closed; 0 lets it rest for ever
    #[arg(long, default_value_t = ::serve::limits::SESSION_IDLE_MS, value_name = "MS")]
    pub(crate) session_idle_timeout_ms: u64,
    /// How long a session stays behind the end of its prompts when its last client left while they ran
    #[arg(long, default_value_t = 0, value_name = "MS")]
    pub(crate) session_prompt_settled_close_grace_ms: u64,
    /// Bytes of history and of finished turns that a load replays
    #[arg(long, default_value_t = 4 * 1024 * 1024, value_name = "BYTES")]
    pub(crate) compacted_replay_max_bytes: usize,
    /// Events of the running turn that a load replays
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = at_least_one::<usize>)]
    pub(crate) max_journal_events: usize,
    /// Bytes of the running turn's events that a load replays
    #[arg(long, default_value_t = 8 * 1024 * 1024, value_name = "BYTES", value_parser = at_least_one::<usize>)]
    pub(crate) max_journal_bytes: usize,
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

/// An address to bind: a literal one, or the one name every machine has.
fn bind_address(text: &str) -> Result<IpAddr, String> {
    if text == "localhost" {
        return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    text.parse().map_err(|_| format!("`{text}` is not an IP address"))
}

/// A number of which none would make no daemon, or end at once what it gives time to.
fn at_least_one<N: FromStr + From<u8> + PartialEq>(text: &str) -> Result<N, String> {
    match text.parse() {
        Ok(number) if number == N::from(0) => Err("at least 1 is needed".to_owned()),
        Ok(number) => Ok(number),
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

    use crate::cli::Cli;

    fn serves(flags: &[&str]) -> bool {
        Cli::try_parse_from(["turnd", "serve"].iter().chain(flags)).is_ok()
    }

    #[test]
    fn a_limit_that_would_make_no_daemon_is_refused() {
        for flag in [
            "--max-sessions",
            "--max-total-sessions",
            "--max-connections",
            "--event-ring-size",
            "--max-journal-events",
            "--max-journal-bytes",
            "--writer-idle-timeout-ms",
            "--agent-input-timeout-ms",
        ] {
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
