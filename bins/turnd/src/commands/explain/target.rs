//! What is to be explained: a session of the store, the session of a file, or every session below a folder.

use std::io;
use std::path::{Path, PathBuf};

use ledger::sidecar;

use super::files::Files;
use crate::cli::{ExplainArgs, TranscriptMode};
use crate::store;

/// What the words on the command line mean.
pub(super) enum Target {
    Session(Files),
    /// A folder, and the workspace if one was given.
    Folder(PathBuf, Option<PathBuf>),
}

/// Why they mean nothing.
pub(super) enum Refusal {
    Usage(String),
    Io(String),
}

pub(super) fn of(args: &ExplainArgs) -> Result<Target, Refusal> {
    let target = &args.target;
    let workspace = args.workspace.as_deref().map(place).transpose().map_err(lost)?;
    // A folder in a ledger's place is that session's trouble and no folder with sessions.
    if target.is_dir() && !sidecar::is_ledger(target) {
        return Ok(Target::Folder(target.clone(), workspace));
    }
    if target.is_file() || target.is_dir() {
        // The lock lies beside the file itself, not beside a link to it.
        let path = target.canonicalize().map_err(|error| Refusal::Io(format!("{}: {error}", target.display())))?;
        if let Some(files) = Files::beside(&path, workspace.as_deref()) {
            return Ok(Target::Session(files));
        }
    }
    let Some(session_id) = target.to_str().filter(|name| is_one_name(name)) else {
        let what = "neither a session's id nor a folder, a transcript or a ledger that is there";
        return Err(Refusal::Usage(format!("{target:?} is {what}")));
    };
    let workspace = workspace.map_or_else(|| place(Path::new(".")), Ok).map_err(lost)?;
    let store = args.store.clone().unwrap_or_else(|| store::default_for(TranscriptMode::Recorded));
    Ok(Target::Session(Files::in_store(&store, &workspace, session_id)))
}

/// The workspace that is meant: only its name is needed, since a crash may have outlived the folder.
fn place(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().or_else(|_| std::path::absolute(path))
}

fn lost(error: io::Error) -> Refusal {
    Refusal::Io(format!("cannot tell which workspace is meant: {error}"))
}

/// Whether the text names one file: a path would leave the store.
fn is_one_name(session_id: &str) -> bool {
    !session_id.is_empty()
        && !session_id.starts_with('.')
        && !session_id.contains(|letter: char| letter == '/' || letter == '\\' || letter.is_control())
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
