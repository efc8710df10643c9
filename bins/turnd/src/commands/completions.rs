//! `turnd completions`: what makes a shell complete commands and flags, from the definitions that are parsed.

use clap_complete::{Shell, generate};

use crate::cli::{Cli, CompletedShell, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the script of one shell.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let shell = match args.shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Zsh => Shell::Zsh,
        CompletedShell::Fish => Shell::Fish,
    };
    // Written to memory first: the generator panics where its output takes nothing.
    let mut script = Vec::new();
    generate(shell, &mut Cli::definitions(), "turnd", &mut script);
    output::bytes(&script)?;
    Ok(Exit::Done)
}
