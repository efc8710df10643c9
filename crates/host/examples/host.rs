//! The smallest program around a host.
//!
//! `host session=ID transcript=FILE workspace=DIR [mode=native] [linger_ms=N] [lock_wait_ms=N] [launcher=no] -- PROGRAM ARGS…`
//! hosts one session on standard input and output. `host --exec -- PROGRAM ARGS…` is how it starts the agent, and
//! `agent` is one: the built-in agent. `host --sweep FILE` ends what a dead host left.

#![expect(clippy::print_stderr, reason = "an example ends with its last words")]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use turnd_host as host;
use turnd_host::{AgentCommand, HostOptions, Mode};

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    let command = match words.iter().position(|word| word == "--") {
        Some(at) => words.split_off(at).split_off(1),
        None => Vec::new(),
    };
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    match words.iter().map(AsRef::as_ref).collect::<Vec<_>>()[..] {
        ["agent"] => ended(runtime().and_then(|runtime| runtime.block_on(agent()))),
        ["host", "--exec"] => {
            eprintln!("cannot start the agent: {}", host::exec(&command));
            ExitCode::from(127)
        }
        ["host", "--sweep", transcript] => {
            ended(runtime().and_then(|runtime| runtime.block_on(host::sweep(transcript.as_ref()))))
        }
        ["host", ref settings @ ..] => {
            let options = options(settings, command);
            ended(runtime().and_then(|runtime| runtime.block_on(serve(options))))
        }
        _ => ended(Err(std::io::Error::other("say host or agent"))),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn ended(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: HostOptions) -> std::io::Result<()> {
    let (input, output) = host::stdio()?;
    host::run(options, input, output).await
}

async fn agent() -> std::io::Result<()> {
    let (input, output) = host::stdio()?;
    let die = || kill_process(getpid(), Signal::KILL).unwrap_or_else(|_| std::process::abort());
    let session_prefix = format!("scripted-{}-", std::process::id());
    let options = agent::AgentOptions { die: Arc::new(die), session_prefix, ..agent::AgentOptions::default() };
    agent::run(input, output, options).await
}

fn options(settings: &[&str], command: Vec<OsString>) -> HostOptions {
    let setting = |name: &str| settings.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let millis = |name, default| Duration::from_millis(setting(name).and_then(|it| it.parse().ok()).unwrap_or(default));
    let mut command = command.into_iter();
    HostOptions {
        session_id: setting("session").unwrap_or("session-1").to_owned(),
        mode: if setting("mode") == Some("native") { Mode::Native } else { Mode::Recorded },
        transcript_path: setting("transcript").unwrap_or("session-1.jsonl").into(),
        workspace: setting("workspace").unwrap_or("/").into(),
        agent: AgentCommand { program: command.next().unwrap_or_default(), args: command.collect(), env: Vec::new() },
        launcher: if setting("launcher") == Some("no") { None } else { std::env::current_exe().ok() },
        linger: millis("linger_ms", 60_000),
        lock_wait: millis("lock_wait_ms", 0),
        input_wait: millis("input_wait_ms", 30_000),
        durability: transcript::Durability::Process,
    }
}
