//! `turnd agent`: the built-in agent on stdin and stdout.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::cli::AgentArgs;
use crate::output::complain;

/// The scripts, as the help text of `turnd agent` lists them.
pub(crate) fn scripts_help() -> String {
    let mut help = String::from("The prompt's text says what the agent does:\n");
    for script in agent::SCRIPTS {
        // Writing to a string cannot fail.
        let _ = writeln!(help, "  {:<16} {}", script.example, script.what);
    }
    help
}

/// Runs the agent until its input ends.
///
/// # Errors
/// When the journal cannot be opened, or a stream fails.
pub(crate) async fn run(args: &AgentArgs) -> io::Result<()> {
    let options = agent::AgentOptions {
        die: Arc::new(|| std::process::abort()),
        journal: args.journal.as_deref().map(journal).transpose()?,
        answer_after: Duration::from_millis(args.answer_after_ms),
        greeting: args.greeting.clone(),
        // Ids that no other run of this agent gives out, so that a stale one is never taken for its own.
        session_prefix: format!("builtin-{}-", std::process::id()),
    };
    agent::run(input(), output(), options).await
}

/// Standard input. A pipe is what every client gives an agent; the runtime's own stream, for anything else, hands each read to another
/// thread, which costs a turn more than the agent does.
fn input() -> Box<dyn AsyncRead + Unpin + Send> {
    match host::stdin() {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output, in the same way.
fn output() -> Box<dyn AsyncWrite + Unpin + Send> {
    match host::stdout() {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

/// A file at whose end every line is on the disk before the agent goes on. One that cannot be written ends the agent: what it did
/// without its journal would not have been seen.
fn journal(path: &Path) -> io::Result<agent::Journal> {
    let file = File::options().create(true).append(true).open(path)?;
    Ok(Arc::new(move |line| {
        let written = (&file).write_all(format!("{line}\n").as_bytes()).and_then(|()| file.sync_data());
        if let Err(error) = written {
            complain(format_args!("turnd agent: the journal cannot be written: {error}"));
            std::process::abort();
        }
    }))
}
