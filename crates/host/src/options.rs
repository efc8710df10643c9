//! What a host is told when it is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use transcript::Durability;

/// Everything one host needs to know. The binary fills it in; nothing else is read from the environment.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The session's id, as turnd names it.
    pub session_id: String,
    /// Who writes the transcript.
    pub mode: Mode,
    /// The session's transcript. The lock and the host's own note lie beside it.
    pub transcript_path: PathBuf,
    /// Where the agent works, an absolute path.
    pub workspace: PathBuf,
    /// The program to put behind the wire.
    pub agent: AgentCommand,
    /// The program that is called as `LAUNCHER host --exec -- PROGRAM ARGS…` and must call [`exec`](crate::exec), so
    /// that the agent gets a process session of its own. Without one it only gets a process group of its own.
    pub launcher: Option<PathBuf>,
    /// How long a running turn may go on after the daemon has died.
    pub linger: Duration,
    /// How long to wait for an earlier host of the same session to let go of it.
    pub lock_wait: Duration,
    /// How long the agent may leave a witnessed prompt in its input unread, so that not all of it fits in. Behind that it is ended.
    pub input_wait: Duration,
    /// What an append to the transcript must have survived before it counts.
    pub durability: Durability,
}

/// Who writes the session's transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The host does, from what passes between daemon and agent.
    Recorded,
    /// The agent does, in the same format and under the same session id (qwen-code). The host only guards.
    Native,
}

/// The command line of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program: a path, or a name to be found through `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables added to the environment that the host itself was given.
    pub env: Vec<(OsString, OsString)>,
}
