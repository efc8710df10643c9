//! What can be typed: every command, flag and help text.

mod request;
mod serve;
mod webhook;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use request::{
    AckArgs, CancelArgs, DaemonArgs, ExportArgs, GetArgs, ListArgs, PlaceArgs, RecoverArgs, RequestArgs,
    RequestCommand, SendArgs, StoreArgs, StoreCommand, WaitArgs, WatchArgs,
};
pub(crate) use serve::{AccessArgs, Hidden, LimitArgs, PermissionArgs, PermissionPolicy, RateArgs, ServeArgs};
pub(crate) use webhook::{
    WebhookAddArgs, WebhookArgs, WebhookCommand, WebhookListArgs, WebhookNameArgs, WebhookRedeliverArgs,
    WebhookRetireArgs, WebhookRotateArgs, WebhookShownArgs, WhichSecret,
};

/// The widest that a help text is shown: lines of more words than that are tiring to read.
const HELP_COLUMNS: usize = 100;

/// Puts any coding agent that speaks ACP behind HTTP, and never loses track of what became of a prompt.
///
/// A prompt is admitted under an id (202), queued first in first out per session, and run by the agent. Its outcome can
/// be streamed, polled, awaited, or collected after a crash. When the outcome cannot be known, turnd says so.
#[derive(Debug, Parser)]
#[command(
    name = "turnd",
    version,
    max_term_width = HELP_COLUMNS,
    after_help = "\
First steps:
  turnd demo                      the whole story in ten seconds, with a kill -9 in the middle
  turnd serve                     the daemon, with the built-in agent, on http://127.0.0.1:4170
  turnd serve --agent qwen        the daemon, with qwen-code as the agent
  turnd send SESSION \"hello\"      a prompt to an open session of that daemon
  turnd explain SESSION           why a prompt's outcome is known, or is not"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

impl Cli {
    /// The definitions as they are parsed, completed and printed: with what other crates know of their part.
    pub(crate) fn definitions() -> clap::Command {
        Self::command().mut_subcommand("agent", |agent| agent.after_help(crate::commands::agent::scripts_help()))
    }
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
    /// Send a prompt to a session; with --return-final its answer is kept, and told in order
    Send(SendArgs),
    /// Look at durable requests, wait for them, cancel them, and follow what becomes of them
    Request(RequestArgs),
    /// Have what ends posted to endpoints: name them, look after them, change their secrets
    Webhook(WebhookArgs),
    /// Say why each open prompt of a session, or of all below a folder, is or is not resolvable
    Explain(ExplainArgs),
    /// Run the built-in scripted agent on stdin and stdout
    Agent(AgentArgs),
    /// Print what makes a shell complete this program's commands and flags
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder
    Man(ManArgs),
    /// Internal: stand between the daemon and one agent
    #[command(hide = true)]
    Host(HostArgs),
}

impl Command {
    /// Whether what it prints is what it is for. The others speak to another program, or say where they can be spoken to.
    pub(crate) const fn has_a_result(&self) -> bool {
        !matches!(self, Self::Serve(_) | Self::Agent(_) | Self::Host(_))
    }
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
    /// Say a text unasked behind every answer that gives a session, as an agent does that introduces itself
    #[arg(long, value_name = "TEXT")]
    pub(crate) greeting: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  turnd completions bash > ~/.local/share/bash-completion/completions/turnd
  turnd completions fish > ~/.config/fish/completions/turnd.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: CompletedShell,
}

/// The shells that are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletedShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  turnd man | man -l -
  turnd man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Where one page a command goes; the folder is made if need be
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Become the program behind `--`, in a process session of its own
    #[arg(long)]
    pub(crate) exec: bool,
    /// End what a killed host of the session left behind, and nothing else
    #[arg(long, conflicts_with = "exec")]
    pub(crate) sweep: bool,
    /// End the host that lingers over the session, if it is the one that the session's lock has named so, and nothing else
    #[arg(long, value_name = "OWNER", conflicts_with_all = ["exec", "sweep"], value_parser = owner)]
    pub(crate) dismiss: Option<transcript::Owner>,
    /// Have the host that lingers over the session cancel its turn, if it is the one that the session's lock has named so, and nothing else
    #[arg(long, value_name = "OWNER", conflicts_with_all = ["exec", "sweep", "dismiss"], value_parser = owner)]
    pub(crate) interrupt: Option<transcript::Owner>,
    /// The session's id
    #[arg(long, required_unless_present_any = ["exec", "sweep", "dismiss", "interrupt"])]
    pub(crate) session: Option<String>,
    /// Who writes the transcript
    #[arg(long, value_enum, default_value = "recorded")]
    pub(crate) mode: TranscriptMode,
    /// The session's transcript; lock and note lie beside it
    #[arg(long, required_unless_present = "exec")]
    pub(crate) transcript: Option<PathBuf>,
    /// The folder the agent works in
    #[arg(long, required_unless_present_any = ["exec", "sweep", "dismiss", "interrupt"])]
    pub(crate) workspace: Option<PathBuf>,
    /// How long a running turn may go on after the daemon was killed
    #[arg(long, default_value_t = 600_000)]
    pub(crate) linger_ms: u64,
    /// How long to wait for an earlier host of the session
    #[arg(long, default_value_t = 0)]
    pub(crate) lock_wait_ms: u64,
    /// How long the agent may leave a part of a watched prompt unread
    #[arg(long, default_value_t = ::serve::limits::AGENT_INPUT_MS)]
    pub(crate) agent_input_timeout_ms: u64,
    /// What a record survives: the end of the process, or of the machine
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) durability: Durability,
    /// The agent's command line
    #[arg(last = true, required_unless_present_any = ["sweep", "dismiss", "interrupt"])]
    pub(crate) command: Vec<std::ffi::OsString>,
}

/// The owner of a session's lock, as the lock has it.
fn owner(text: &str) -> Result<transcript::Owner, serde_json::Error> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that is broken by whoever shows it breaks what stands below it.
    #[test]
    fn no_line_of_a_help_text_is_wider_than_help_is_shown() {
        let mut commands = vec![Cli::definitions()];
        while let Some(command) = commands.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= HELP_COLUMNS, "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
