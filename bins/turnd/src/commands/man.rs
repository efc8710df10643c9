//! `turnd man`: manual pages from the definitions that are parsed.

use std::fs;

use clap_mangen::{Man, generate_to};

use crate::cli::{Cli, ManArgs};
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints the page of the program, or writes the pages of all commands.
pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        Man::new(Cli::definitions()).render(&mut page)?;
        output::bytes(&page)?;
        return Ok(Exit::Done);
    };
    fs::create_dir_all(folder).and_then(|()| generate_to(Cli::definitions(), folder)).map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot write manual pages to {}: {error}", folder.display()))
    })?;
    Ok(Exit::Done)
}
