//! `turnd agent`: the built-in agent on stdin and stdout.

use std::fmt::Write;

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
pub(crate) async fn run() -> std::io::Result<()> {
    let options = agent::AgentOptions {
        die: std::sync::Arc::new(|| std::process::abort()),
        // Ids that no other run of this agent gives out, so that a stale one is never taken for its own.
        session_prefix: format!("builtin-{}-", std::process::id()),
    };
    agent::run(tokio::io::stdin(), tokio::io::stdout(), options).await
}
