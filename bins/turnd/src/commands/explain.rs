//! `turnd explain`: why each open prompt is, or is not, resolvable; of one session, or of all below a folder.

mod files;
mod folder;
mod ledgers;
mod target;
mod told;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use attribution::{Withheld, printable_path};
use transcript::{LockError, Owner, SessionLock};

use crate::cli::ExplainArgs;
use crate::output::line;
use files::Files;
use target::{Refusal, Target};
use told::Told;

/// Something stays unknown.
const EXIT_UNKNOWN: u8 = 3;
/// The words on the command line cannot be meant.
const EXIT_USAGE: u8 = 2;

/// Nobody reads what is printed any more: what a shell makes of a program that a closed pipe ended.
const EXIT_UNHEARD: u8 = 141;

/// How a run ends; of several the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Nothing is open, or all of it is resolvable.
    Known,
    /// Something stays unknown, or is open in a live session.
    Unknown,
    /// A file could not be read or written.
    Failed,
    /// Nobody reads what is printed any more.
    Unheard,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Known => Self::SUCCESS,
            Outcome::Unknown => Self::from(EXIT_UNKNOWN),
            Outcome::Failed => Self::FAILURE,
            Outcome::Unheard => Self::from(EXIT_UNHEARD),
        }
    }
}

/// Explains, and with `--apply` appends what it printed.
pub(crate) fn run(args: ExplainArgs) -> ExitCode {
    match target::of(&args) {
        Ok(Target::Session(files)) => explain_one(&files, &args).into(),
        Ok(Target::Folder(path, workspace)) => folder::explain(&path, workspace.as_deref(), &args).into(),
        Err(Refusal::Usage(text)) => {
            complain(&text);
            ExitCode::from(EXIT_USAGE)
        }
        Err(Refusal::Io(text)) => failed(&text).into(),
    }
}

/// Why something of the session stays unknown, or nothing when all is known.
pub(crate) fn withheld(store: &Path, workspace: &Path, session_id: &str) -> Option<Withheld> {
    let files = Files::in_store(store, workspace, session_id);
    attribution::plan(&files.session()).verdict.withheld
}

fn explain_one(files: &Files, args: &ExplainArgs) -> Outcome {
    let mut outcome = Outcome::Known;
    // A session in which nothing was asked yet has its lock and nothing else.
    let is_nowhere = [files.transcript.as_path(), files.ledger.path(), &files.lock].iter().all(|path| !path.exists());
    if is_nowhere {
        // Nothing is open in files that are not there (evidence rules, section 6). A person has more likely mistyped something.
        let (session, folder) = (&files.session_id, files.ledger.path().parent().unwrap_or(Path::new("")).display());
        complain(&format!("no files of session {session} in {folder}; --store and --workspace say where to look"));
    }
    let told = if args.apply && !is_nowhere {
        apply(files, args.json)
    } else {
        Told::unheld(files, args.json).map(|told| (told, Outcome::Known))
    };
    let (told, applied) = match told {
        Ok(told) => told,
        Err(error) => return failed(&error.to_string()),
    };
    if let Err(error) = line(&told) {
        return unprinted(&error);
    }
    if let Err(error) = files.ledger.read() {
        outcome = failed(&format!("{}: {error}", files.ledger.path().display()));
    }
    outcome.max(applied).max(said(&told, files))
}

/// Appends under the session's lock what is told. The daemon's own appends do not ask for that lock, so the ledger may
/// have changed meanwhile.
fn apply(files: &Files, json: bool) -> Result<(Told, Outcome), LockError> {
    let _lock = lock(files)?;
    let told = Told::held(files, json);
    let had_something = !told.plan().verdict.settled.is_empty();
    let (told, done) = told.apply(files);
    let path = files.ledger.path().display();
    let outcome = match (done.failure, done.withheld) {
        (Some(error), _) => failed(&format!("{path}: {error}")),
        (None, Some(withheld @ Withheld::LedgerChanged)) if had_something => {
            failed(&format!("{path}: {}; {}", withheld.explanation(), withheld.remedy()))
        }
        (None, _) => Outcome::Known,
    };
    Ok((told, outcome))
}

/// How what was told ends. An unreadable transcript is no verdict, and said on its own.
fn said(told: &Told, files: &Files) -> Outcome {
    if let Some(error) = told.error() {
        failed(&format!("{}: {error}", printable_path(&files.transcript)));
    }
    told.outcome()
}

/// Nothing could be printed; whoever closed the pipe has read enough and is not told so.
fn unprinted(error: &io::Error) -> Outcome {
    if error.kind() == io::ErrorKind::BrokenPipe { Outcome::Unheard } else { failed(&error.to_string()) }
}

/// Takes the session's lock, so that no daemon has it live while something is appended.
fn lock(files: &Files) -> Result<SessionLock, LockError> {
    let owner = Owner { pid: std::process::id(), started_at: now_ms(), start_ticks: None };
    SessionLock::acquire(&files.lock, &owner)
}

fn failed(text: &str) -> Outcome {
    complain(text);
    Outcome::Failed
}

/// Says something on stderr, if anybody reads it: it may be the very pipe that was closed.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "turnd: {text}");
}

#[expect(clippy::disallowed_methods, reason = "the one place of this program that reads the clock")]
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn the_worst_of_several_outcomes_is_that_nobody_could_look() {
        assert!(Outcome::Failed > Outcome::Unknown && Outcome::Unknown > Outcome::Known);
        assert!(Outcome::Unheard > Outcome::Failed, "what was not told may be worse");
    }
}
