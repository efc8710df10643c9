//! The `turnd` program: parse, bind, wire, wait.

mod agents;
mod cli;
mod client;
mod commands;
mod demo;
mod output;
mod store;

use std::fmt::Display;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use tokio::runtime::{Builder, Runtime};

use cli::{Cli, Command, LogArgs, LogFormat};

/// Threads that serve requests: the daemon waits far more than it computes, and idle threads cost memory.
const SERVE_THREADS: usize = 2;

fn main() -> ExitCode {
    let command = Cli::command().mut_subcommand("agent", |agent| agent.after_help(commands::agent::scripts_help()));
    let cli = Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit());
    log_to_stderr(&cli.log);
    match cli.command {
        Command::Serve(args) => on(Builder::new_multi_thread().worker_threads(SERVE_THREADS), |runtime| {
            runtime.block_on(commands::serve::run(*args)).map_or_else(
                |error| {
                    failed(&error);
                    ExitCode::from(error.status())
                },
                |()| ExitCode::SUCCESS,
            )
        }),
        Command::Demo(args) => {
            on(&mut Builder::new_current_thread(), |runtime| ended(runtime.block_on(demo::run(&args))))
        }
        Command::Explain(args) => commands::explain::run(args),
        Command::Agent(args) => {
            on(&mut Builder::new_current_thread(), |runtime| ended(runtime.block_on(commands::agent::run(&args))))
        }
        Command::Host(args) if args.exec => commands::host::exec(&args.command),
        Command::Host(args) => {
            on(&mut Builder::new_current_thread(), |runtime| ended(runtime.block_on(commands::host::run(args))))
        }
    }
}

/// Builds the runtime and runs on it.
fn on(builder: &mut Builder, run: impl FnOnce(&Runtime) -> ExitCode) -> ExitCode {
    match builder.enable_all().build() {
        Ok(runtime) => {
            let code = run(&runtime);
            // A thread that reads stdin cannot be called back; do not wait for it.
            runtime.shutdown_background();
            code
        }
        Err(error) => failed(error),
    }
}

fn ended<E: Display>(result: Result<(), E>) -> ExitCode {
    result.map_or_else(failed, |()| ExitCode::SUCCESS)
}

fn failed(error: impl Display) -> ExitCode {
    output::complain(format_args!("turnd: {error}"));
    ExitCode::FAILURE
}

fn log_to_stderr(args: &LogArgs) {
    let builder = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(args.log_level)
        // It would complain of a stderr that takes nothing on stderr, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match args.log_format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
