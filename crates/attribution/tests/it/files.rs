//! A session's files in a folder of their own.

use std::path::{Path, PathBuf};

use attribution::{Explanation, Plan, Reconciliation, Report, Session, explain, plan, report};
use ledger::{Durability, Ledger};
use tempfile::TempDir;

/// The session of every case.
pub(crate) const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
/// The workspace of every case.
pub(crate) const WORKSPACE: &str = "/ws";
/// When a reconciliation of these tests takes place: after everything that is written in any of them.
pub(crate) const NOW_MS: u64 = 1_999_999_999_999;

/// The files of one session.
pub(crate) struct Files {
    _folder: TempDir,
    ledger: Ledger,
    transcript: PathBuf,
    session_id: String,
    workspace: PathBuf,
}

impl Files {
    pub(crate) fn new(session_id: &str, workspace: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let ledger = Ledger::new(folder.path().join("s.ledger.jsonl"), Durability::Process);
        let transcript = folder.path().join("s.jsonl");
        Self { _folder: folder, ledger, transcript, session_id: session_id.to_owned(), workspace: workspace.into() }
    }

    /// Both files with these bytes; none is no file.
    pub(crate) fn with(ledger: Option<&[u8]>, transcript: Option<&[u8]>) -> Self {
        let files = Self::new(SESSION_ID, WORKSPACE);
        if let Some(bytes) = ledger {
            files.write_ledger(bytes);
        }
        if let Some(bytes) = transcript {
            files.write_transcript(bytes);
        }
        files
    }

    pub(crate) fn write_ledger(&self, bytes: &[u8]) {
        write(self.ledger.path(), bytes);
    }

    pub(crate) fn write_transcript(&self, bytes: &[u8]) {
        write(&self.transcript, bytes);
    }

    pub(crate) fn make_ledger_a_folder(&self) {
        std::fs::create_dir(self.ledger.path()).unwrap();
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(crate) fn ledger_bytes(&self) -> Vec<u8> {
        std::fs::read(self.ledger.path()).unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Session<'_> {
        Session {
            ledger: &self.ledger,
            transcript: &self.transcript,
            session_id: &self.session_id,
            workspace: &self.workspace,
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        plan(&self.session())
    }

    pub(crate) fn explain(&self) -> Explanation {
        explain(&self.session())
    }

    pub(crate) fn report(&self) -> Report {
        report(&self.session())
    }

    pub(crate) fn reconcile(&self) -> Reconciliation {
        attribution::reconcile(&self.session(), NOW_MS)
    }
}

/// Some file systems flush a file that is written anew, and none one that is new.
fn write(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}
