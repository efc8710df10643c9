//! `turnd explain`: why each open prompt is, or is not, resolvable; of one session, or of all below a folder.

mod files;
mod folder;
mod ledgers;
mod target;

use std::path::Path;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use attribution::{Plan, Session, Standing, Withheld};
use transcript::{LockError, Owner, SessionLock};

use crate::cli::ExplainArgs;
use crate::output::line;
use files::Files;
use target::{Refusal, Target};

/// Something stays unknown.
const EXIT_UNKNOWN: u8 = 3;
/// The words on the command line cannot be meant.
const EXIT_USAGE: u8 = 2;

/// How a run ends; of several the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Nothing is open, or all of it is resolvable.
    Known,
    /// Something stays unknown.
    Unknown,
    /// A file could not be read or written.
    Failed,
}

impl Outcome {
    fn of(plan: &Plan) -> Self {
        match plan.standing() {
            Standing::NothingOpen | Standing::Resolvable => Self::Known,
            Standing::Unknown => Self::Unknown,
            Standing::Unreadable => Self::Failed,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Known => Self::SUCCESS,
            Outcome::Unknown => Self::from(EXIT_UNKNOWN),
            Outcome::Failed => Self::FAILURE,
        }
    }
}

/// What is told, and the plan it tells of.
struct Told {
    plan: Plan,
    text: String,
}

impl Told {
    /// To a program all that is known, to a person what the verdict needs.
    fn of(session: &Session<'_>, json: bool) -> Self {
        if json {
            let explanation = attribution::explain(session);
            Self { text: explanation.to_json(), plan: explanation.plan }
        } else {
            let report = attribution::report(session);
            Self { text: report.to_string().trim_end().to_owned(), plan: report.plan }
        }
    }
}

/// Explains, and with `--apply` appends what it printed.
pub(crate) fn run(args: ExplainArgs) -> ExitCode {
    match target::of(&args) {
        Ok(Target::Session(files)) => explain_one(&files, &args).into(),
        Ok(Target::Folder(path, workspace)) => folder::explain(&path, workspace.as_deref(), &args).into(),
        Err(Refusal::Usage(text)) => {
            eprintln!("turnd: {text}");
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
    if !files.transcript.exists() && !files.ledger.path().exists() {
        // Nothing is open in files that are not there. A person has more likely mistyped something.
        let (session, folder) = (&files.session_id, files.ledger.path().parent().unwrap_or(Path::new("")).display());
        eprintln!("turnd: no files of session {session} in {folder}; --store and --workspace say where to look");
    }
    // Held until the end: what is printed is what is appended.
    let lock = if args.apply { lock(files).map(Some) } else { Ok(None) };
    let lock = match lock {
        Ok(lock) => lock,
        Err(error) => return failed(&error.to_string()),
    };
    let told = Told::of(&files.session(), args.json);
    if let Err(error) = line(&told.text) {
        return failed(&error.to_string());
    }
    if let Err(error) = files.ledger.read() {
        return failed(&format!("{}: {error}", files.ledger.path().display()));
    }
    let outcome = Outcome::of(&told.plan);
    if lock.is_none() { outcome } else { outcome.max(apply(told.plan, files)) }
}

/// Appends what was printed. The daemon's own appends do not ask for the session's lock, so the ledger may have changed.
fn apply(plan: Plan, files: &Files) -> Outcome {
    let had_something = !plan.verdict.settled.is_empty();
    let done = plan.apply(&files.ledger, now_ms());
    let path = files.ledger.path().display();
    match (done.failure, done.withheld) {
        (Some(error), _) => failed(&format!("{path}: {error}")),
        (None, Some(withheld @ Withheld::LedgerChanged)) if had_something => {
            failed(&format!("{path}: {}; {}", withheld.explanation(), withheld.remedy()))
        }
        (None, _) => Outcome::Known,
    }
}

/// Takes the session's lock, so that no daemon has it live while something is appended.
fn lock(files: &Files) -> Result<SessionLock, LockError> {
    let owner = Owner { pid: std::process::id(), started_at: now_ms(), start_ticks: None };
    SessionLock::acquire(&files.lock, &owner)
}

fn failed(text: &str) -> Outcome {
    eprintln!("turnd: {text}");
    Outcome::Failed
}

#[expect(clippy::disallowed_methods, reason = "the one place of this program that reads the clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn the_worst_of_several_outcomes_is_that_nobody_could_look() {
        assert!(Outcome::Failed > Outcome::Unknown && Outcome::Unknown > Outcome::Known);
    }
}
