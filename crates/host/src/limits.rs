//! Every bound of a host, with its unit and its reason.

use std::time::Duration;

/// Text of one response block in bytes: what one message of the agent may bring. It is held until the turn ends, as nothing may look
/// like an answer before, and written in lines that fit a reader's page.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Output of one tool call as it is recorded, in UTF-16 units. Enough for what a model is shown; the live stream has all.
pub(crate) const TOOL_OUTPUT_UNITS_MAX: usize = 256 * 1024;
/// Arguments of one tool call as they are recorded, in bytes of JSON. A file written by a tool comes this way.
pub(crate) const ARGS_BYTES_MAX: usize = 256 * 1024;
/// A tool's name in UTF-16 units. Agents put whole commands here.
pub(crate) const NAME_UNITS_MAX: usize = 256;
/// Tool calls of one turn that are recorded. Busy turns have some hundreds.
pub(crate) const CALLS_MAX: usize = 4_096;
/// Announced calls that wait for their arguments before they are written together.
pub(crate) const HELD_CALLS_MAX: usize = 64;
/// Text in UTF-16 units kept of what an agent says while no turn runs.
pub(crate) const LATE_UNITS_MAX: usize = 32 * 1024;
/// Milliseconds behind an answer in which words are listened for that the agent says late, where the daemon has died and nobody else
/// listens. As long as the daemon itself would.
pub(crate) const LATE_WORDS_MS: u64 = 10;
/// Warnings about what one agent wrote and nobody can read. More of them would say nothing new.
pub(crate) const UNREADABLE_WARNINGS_MAX: u64 = 10;
/// Requests of the agent that may wait for the daemon at once. Two were the most ever seen.
pub(crate) const ASKED_MAX: usize = 1_024;
/// Requests of the daemon whose answers are only handed on and that may be open at the agent at once. More than one a client are rare.
pub(crate) const PASSED_MAX: usize = 1_024;

/// Prompts of one session of the agent whose ids are kept, to know what it remembers. Behind so many nobody claims to know it.
pub(crate) const TOLD_MAX: usize = 10_000;
/// How long a command of a user may take (wire, section 13.4).
pub(crate) const COMMAND_TIME_MAX: Duration = Duration::from_secs(120);
/// How long the output of a command is waited for that has ended: what it left behind may hold it open.
pub(crate) const COMMAND_FADE_WAIT: Duration = Duration::from_millis(250);
/// Output of a command in bytes, both streams together; the rest is read and dropped. It is answered, told and recorded whole.
pub(crate) const COMMAND_OUTPUT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of commands and their output that the agent is told at the next prompt; the oldest go first.
pub(crate) const HEARD_BYTES_MAX: usize = 512 * 1024;

/// Bytes read from a pipe at once: what a pipe holds.
pub(crate) const READ_BYTES: usize = 64 * 1024;
/// Bytes that may wait for the daemon before the agent's output is left unread, so that a slow daemon slows the agent.
pub(crate) const TO_DAEMON_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that may wait for the agent. A prompt is at most 10 MB and there is one; an agent that leaves more than this
/// unread has stopped reading for good.
pub(crate) const TO_AGENT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes kept of the end of the agent's standard error, and of its standard output before it has answered.
pub(crate) const TAIL_BYTES_MAX: usize = 8 * 1024;
/// Bytes of one line of the agent's standard error that are logged.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of records held back while the transcript cannot be written: the longest answer, and some turns.
pub(crate) const HELD_RECORD_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of the parameters that set an agent to something. Names of modes and models have some tens.
pub(crate) const CHOICE_BYTES_MAX: usize = 4 * 1024;
/// Things that a client has set and that are set again; agents offer a handful.
pub(crate) const CHOICES_MAX: usize = 16;
/// UTF-16 units of a name that an agent gives its session; more than a client may give.
pub(crate) const TITLE_UNITS_MAX: usize = 512;
/// Bytes of the host's own note that are read. Ours has some hundreds.
pub(crate) const SIDECAR_BYTES_MAX: u64 = 1024 * 1024;

/// Between two tries for the lock: short enough to be unnoticed behind the start of an agent.
pub(crate) const LOCK_POLL: Duration = Duration::from_millis(50);
/// Between two tries to write records that are held back.
pub(crate) const RETRY_RECORDS: Duration = Duration::from_secs(1);
/// How long left-over processes may take to die of SIGKILL before the session counts as taken.
pub(crate) const LEFTOVERS_WAIT: Duration = Duration::from_secs(5);
/// Between two looks at processes that are not our children and therefore do not tell us of their end.
pub(crate) const TREE_POLL: Duration = Duration::from_millis(20);
/// Between closing the agent's input and SIGTERM: the agents that end on it do so within 0.3 s.
pub(crate) const EOF_WAIT: Duration = Duration::from_secs(2);
/// Between SIGTERM and SIGKILL: a real agent took up to 6.5 s to end after a turn with a tool, most of them before this.
pub(crate) const TERM_WAIT: Duration = Duration::from_secs(5);
/// How long a killed tree may take to be gone. A process that outlives SIGKILL waits in the kernel and never runs again.
pub(crate) const KILL_WAIT: Duration = Duration::from_secs(10);
/// How long an agent that has closed its output, or is dead with its output still held open, has to show the rest.
pub(crate) const FADE_WAIT: Duration = Duration::from_secs(2);
/// How long the last messages may take to be read by the daemon.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(2);
/// How long a host that was told to end from outside is waited for: its own end takes no longer.
pub(crate) const DISMISS_WAIT: Duration = Duration::from_secs(20);

const _: () = assert!(
    EOF_WAIT.as_secs() + TERM_WAIT.as_secs() + KILL_WAIT.as_secs() + FLUSH_WAIT.as_secs() < DISMISS_WAIT.as_secs()
);
const _: () = assert!(NAME_UNITS_MAX < TOOL_OUTPUT_UNITS_MAX && LATE_UNITS_MAX <= BLOCK_BYTES_MAX);
const _: () = assert!(BLOCK_BYTES_MAX < HELD_RECORD_BYTES_MAX && acp::FRAME_BYTES_MAX <= BLOCK_BYTES_MAX);
const _: () = assert!(READ_BYTES < TO_DAEMON_BYTES_MAX);
const _: () = assert!(acp::FRAME_BYTES_MAX <= TO_AGENT_BYTES_MAX);
