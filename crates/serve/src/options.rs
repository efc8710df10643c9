//! What the caller decides. Read once, by the binary; nothing here is read from the environment.

use std::path::PathBuf;

use bridge::Mediation;

use crate::limits::Limits;
use crate::rate::Rates;
use crate::reaper::Idleness;
use crate::tls::Tls;
use crate::token::Token;

/// How one daemon runs.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The folders that sessions run in, the primary one first: absolute paths without links, so that each place has one.
    pub workspaces: Vec<PathBuf>,
    /// The store. Files lie at `STORE/projects/<dir>/chats/<id>.{jsonl,ledger.jsonl,lock,host.json}`.
    pub store: PathBuf,
    /// Who writes transcripts.
    pub mode: Mode,
    /// The agent's program and its arguments.
    pub agent: Vec<String>,
    /// Whether a registered client may run commands in the workspace.
    pub session_shell: bool,
    /// The bearer token; without one every caller that passes the wall is trusted, so bind to loopback only.
    pub token: Option<Token>,
    /// The certificate to speak https with; none speaks plain http.
    pub tls: Option<Tls>,
    /// Whether `/health` needs the token on a loopback bind too.
    pub require_auth: bool,
    /// Origins whose pages may call us.
    pub allow_origins: Vec<String>,
    /// How many requests each caller may send; none counts nothing.
    pub rates: Option<Rates>,
    /// What is allowed at once.
    pub limits: Limits,
    /// How far an append must have come before it counts.
    pub durability: Durability,
    /// How long a host whose daemon is gone lets its running turn go on, in milliseconds.
    pub linger_ms: u64,
    /// How long an agent may leave a part of a return request's prompt in its input unread, in milliseconds, before it is ended.
    pub agent_input_ms: u64,
    /// How long a new session may take to start, in milliseconds.
    pub initialize_timeout_ms: u64,
    /// How long a restore may take, waiting for a lingering host included, in milliseconds.
    pub restore_timeout_ms: u64,
    /// The longest any prompt's caller waits, in milliseconds, counted from admission; none means for ever.
    pub prompt_deadline_ms: Option<u64>,
    /// The longest any prompt's caller waits for its turn, in milliseconds, counted from dispatch; none means for ever.
    pub prompt_run_deadline_ms: Option<u64>,
    /// How long an agent that was told to stop may take, in milliseconds, before it is replaced.
    pub settle_grace_ms: u64,
    /// How long the running turn of a session that is closed may take to settle, in milliseconds, before it ends as `session_closed`.
    pub close_settle_ms: u64,
    /// When a session counts as one that nobody uses.
    pub idleness: Idleness,
    /// Who decides what agents ask, and until when.
    pub mediation: Mediation,
    /// How long a reader may accept nothing before its connection ends, in milliseconds; none means the limit every connection has.
    pub writer_idle_timeout_ms: Option<u64>,
    /// The program that runs as `<launcher> host …`: the turnd binary itself.
    pub host_launcher: PathBuf,
    /// Our version, as `/capabilities` tells it.
    pub version: String,
}

impl ServeOptions {
    /// Whether it is known before the first session what its agent can do: of the built-in one, and of one that writes our format. What
    /// any other command can do is known when it is greeted, and is no promise of the daemon's.
    pub(crate) fn agent_is_known(&self) -> bool {
        let is_built_in = matches!(&self.agent[..], [program, word, ..]
            if word == "agent" && self.host_launcher.as_os_str() == program.as_str());
        self.mode == Mode::Native || is_built_in
    }
}

/// Who writes the transcript of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The host records what passes through it.
    Recorded,
    /// The agent writes its own file in the same format, under the session's id.
    Native,
}

impl Mode {
    /// The word of the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Native => "native",
        }
    }
}

/// Which failure an acknowledged ledger line survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The death of the process.
    Process,
    /// A power cut: every line is flushed before it is acknowledged.
    Fsync,
}

impl Durability {
    /// The word of the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Fsync => "fsync",
        }
    }
}
