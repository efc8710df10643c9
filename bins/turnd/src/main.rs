//! The `turnd` program: parse, bind, wire, wait.

mod agents;
mod cli;
mod client;
mod commands;
mod demo;
mod exit;
mod output;
mod store;

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::FromArgMatches;
use tokio::runtime::{Builder, Runtime};

use cli::{Cli, Command, LogArgs, LogFormat};
use exit::{Exit, Failure};

/// Threads that serve requests: the daemon waits far more than it computes, and idle threads cost memory.
const SERVE_THREADS: usize = 2;

fn main() -> ExitCode {
    let typed = Cli::definitions().try_get_matches().and_then(|typed| Cli::from_arg_matches(&typed));
    let cli = match typed {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => error.exit(),
        Err(page) => return told(shown(&page)),
    };
    log_to_stderr(&cli.log);
    if cli.command.has_a_result()
        && let Err(error) = output::check()
    {
        return told(Err(Failure::from(error).and("nothing was done")));
    }
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
            on(&mut Builder::new_current_thread(), |runtime| told(runtime.block_on(demo::run(&args))))
        }
        Command::Send(args) => {
            on(&mut Builder::new_current_thread(), |runtime| told(runtime.block_on(commands::send::run(args))))
        }
        Command::Request(args) => {
            on(&mut Builder::new_current_thread(), |runtime| told(runtime.block_on(commands::request::run(args))))
        }
        Command::Webhook(args) => {
            on(&mut Builder::new_current_thread(), |runtime| told(runtime.block_on(commands::webhook::run(args))))
        }
        Command::Completions(args) => told(commands::completions::run(&args)),
        Command::Man(args) => told(commands::man::run(&args)),
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

/// Prints a page that was asked for: the help, or the version.
fn shown(page: &clap::Error) -> Result<Exit, Failure> {
    let text = page.render();
    output::bytes(if io::stdout().is_terminal() { text.ansi().to_string() } else { text.to_string() }.as_bytes())?;
    Ok(Exit::Done)
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

/// One line on stderr and a status for what went wrong.
fn told(result: Result<Exit, Failure>) -> ExitCode {
    let exit = result.unwrap_or_else(|failure| {
        if let Some(text) = failure.text {
            output::complain(format_args!("turnd: {text}"));
        }
        failure.exit
    });
    exit.into()
}

fn failed(error: impl Display) -> ExitCode {
    output::complain(format_args!("turnd: {error}"));
    ExitCode::FAILURE
}

fn log_to_stderr(args: &LogArgs) {
    let builder = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(args.log_level)
        // It would complain of a stderr that takes nothing on stderr, and panic.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal());
    match args.log_format {
        LogFormat::Text => builder.with_target(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
