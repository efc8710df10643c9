//! `turnd explain`: why each open prompt of a session is, or is not, resolvable.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use attribution::{Explanation, Plan, Session, Withheld};
use ledger::Ledger;
use transcript::{LockError, Owner, SessionLock, layout};

use crate::cli::{ExplainArgs, TranscriptMode};
use crate::output::line;
use crate::store;

/// Something stays unknown.
const EXIT_UNKNOWN: u8 = 3;
/// The words on the command line cannot be meant.
const EXIT_USAGE: u8 = 2;

/// A session's files.
struct Files {
    session_id: String,
    workspace: PathBuf,
    transcript: PathBuf,
    ledger: Ledger,
}

impl Files {
    fn new(store: &Path, workspace: &Path, session_id: &str) -> Self {
        let chats = layout::chats_dir(store, workspace);
        Self {
            session_id: session_id.to_owned(),
            workspace: workspace.to_owned(),
            transcript: layout::transcript_path(&chats, session_id),
            ledger: Ledger::new(layout::ledger_path(&chats, session_id), ledger::Durability::Process),
        }
    }

    fn session(&self) -> Session<'_> {
        Session {
            ledger: &self.ledger,
            transcript: &self.transcript,
            session_id: &self.session_id,
            workspace: &self.workspace,
        }
    }
}

/// Explains, and with `--apply` appends what it printed.
pub(crate) fn run(args: ExplainArgs) -> ExitCode {
    if !is_one_name(&args.session) {
        eprintln!("turnd: a session id is one file name, and `{}` is not", args.session);
        return ExitCode::from(EXIT_USAGE);
    }
    let workspace = match place(args.workspace.as_deref()) {
        Ok(workspace) => workspace,
        Err(error) => return failed(&format!("cannot tell which workspace is meant: {error}")),
    };
    let store = args.store.unwrap_or_else(|| store::default_for(TranscriptMode::Recorded));
    let files = Files::new(&store, &workspace, &args.session);
    if !files.transcript.exists() && !files.ledger.path().exists() {
        // Nothing is open in files that are not there. A person has more likely mistyped something.
        let folder = files.transcript.parent().unwrap_or(&store).display();
        let session = &args.session;
        eprintln!("turnd: no files of session {session} in {folder}; --store and --workspace say where to look");
    }
    // Held until the end: what is printed is what is appended.
    let lock = if args.apply { lock(&files.transcript).map(Some) } else { Ok(None) };
    let lock = match lock {
        Ok(lock) => lock,
        Err(error) => return failed(&error.to_string()),
    };
    let explanation = attribution::explain(&files.session());
    if let Err(error) = print(&explanation, args.json) {
        return failed(&error.to_string());
    }
    if let Err(error) = files.ledger.read() {
        return failed(&format!("{}: {error}", files.ledger.path().display()));
    }
    let code = exit_code(&explanation);
    if lock.is_none() { code } else { apply(explanation.plan, &files, code) }
}

/// The workspace that is meant: only its name is needed, since a crash may have outlived the folder.
fn place(given: Option<&Path>) -> std::io::Result<PathBuf> {
    let path = given.unwrap_or(Path::new("."));
    path.canonicalize().or_else(|_| std::path::absolute(path))
}

/// Why something of the session stays unknown, or nothing when all is known.
pub(crate) fn withheld(store: &Path, workspace: &Path, session_id: &str) -> Option<Withheld> {
    let files = Files::new(store, workspace, session_id);
    attribution::plan(&files.session()).verdict.withheld
}

/// Appends what was printed. The daemon's own appends do not ask for the session's lock, so the ledger may have changed.
fn apply(plan: Plan, files: &Files, code: ExitCode) -> ExitCode {
    let had_something = !plan.verdict.settled.is_empty();
    let done = plan.apply(&files.ledger, now_ms());
    match (done.failure, done.withheld) {
        (Some(error), _) => failed(&error.to_string()),
        (None, Some(Withheld::LedgerChanged)) if had_something => failed(Withheld::LedgerChanged.explanation()),
        (None, _) => code,
    }
}

fn print(explanation: &Explanation, json: bool) -> std::io::Result<()> {
    if json { line(explanation.to_json()) } else { line(explanation.to_string().trim_end()) }
}

fn exit_code(explanation: &Explanation) -> ExitCode {
    if explanation.is_unreadable() {
        ExitCode::FAILURE
    } else if explanation.is_settled() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_UNKNOWN)
    }
}

/// Takes the session's lock, so that no daemon has it live while something is appended.
fn lock(transcript: &Path) -> Result<SessionLock, LockError> {
    let owner = Owner { pid: std::process::id(), started_at: now_ms(), start_ticks: None };
    SessionLock::acquire(&transcript.with_extension("lock"), &owner)
}

/// Whether the text names one file: a path would leave the store.
fn is_one_name(session_id: &str) -> bool {
    !session_id.is_empty()
        && !session_id.starts_with('.')
        && !session_id.contains(|letter: char| letter == '/' || letter == '\\' || letter.is_control())
}

fn failed(text: &str) -> ExitCode {
    eprintln!("turnd: {text}");
    ExitCode::FAILURE
}

#[expect(clippy::disallowed_methods, reason = "the one place of this program that reads the clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::is_one_name;

    #[test]
    fn a_session_id_that_would_leave_the_store_is_refused() {
        for id in ["", ".", "..", "../x", "a/b", "a\\b", "a\0b"] {
            assert!(!is_one_name(id), "{id:?}");
        }
        assert!(is_one_name("11111111-2222-4333-8444-555555555555"));
        assert!(is_one_name("ses_1"));
    }
}
