//! Whether a transcript may be read as this session's, in this workspace.

use std::io;
use std::path::{Component, Path};

use thiserror::Error;

use crate::branch::{Transcript, WINDOW_BYTES};

/// Where the worktrees of a workspace lie, seen from it.
const WORKTREES: [&str; 2] = [".qwen", "worktrees"];

/// Why a transcript does not load (evidence rules, section 2).
#[derive(Debug, Error)]
pub enum Absent {
    /// There is no file, or nothing in it.
    #[error("there is no transcript")]
    NoFile,
    /// No record in it is usable.
    #[error("the transcript holds no usable record")]
    NoRecord,
    /// Its records belong to another session, or to several.
    #[error("the transcript holds records of another session")]
    TwoSessions,
    /// It was begun in another workspace, or nobody knows where.
    #[error("the transcript was begun in another workspace")]
    ForeignWorkspace,
    /// The system does not let us read it.
    #[error("the transcript cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

/// Whether the transcript at `path` loads as that of `session_id` in `workspace`. Looks at the first object and at the
/// last [`WINDOW_BYTES`]; what lies between is not read.
pub fn check(path: &Path, session_id: &str, workspace: &Path) -> Result<(), Absent> {
    let transcript = open(path, session_id, workspace)?;
    let branch = transcript.branch(WINDOW_BYTES)?;
    if branch.session_id() == Some(session_id) { Ok(()) } else { Err(Absent::TwoSessions) }
}

/// Opens a transcript that begins as this session's, in this workspace: by its first object, even when that is no usable
/// record, for what nobody can read must not be passed over when it is asked where the file is from. Whether the rest
/// belongs to the session too is for the reader to see as it reads.
pub fn open(path: &Path, session_id: &str, workspace: &Path) -> Result<Transcript, Absent> {
    let transcript = Transcript::open(path)?.ok_or(Absent::NoFile)?;
    let head = transcript.head()?.ok_or(Absent::NoRecord)?;
    if !begins_in(head.cwd.as_deref(), workspace) {
        return Err(Absent::ForeignWorkspace);
    }
    if head.session_id.as_deref() != Some(session_id) {
        return Err(Absent::TwoSessions);
    }
    if transcript.first_record()?.is_none() {
        return Err(Absent::NoRecord);
    }
    Ok(transcript)
}

/// Whether this is the workspace or one of its worktrees.
pub(crate) fn begins_in(cwd: Option<&str>, workspace: &Path) -> bool {
    let Some(cwd) = cwd.map(Path::new) else { return false };
    // Letter by letter, as every program that writes the format compares it: `/ws/` is another text than `/ws`.
    cwd.as_os_str() == workspace.as_os_str() || is_worktree(cwd, workspace)
}

fn is_worktree(cwd: &Path, workspace: &Path) -> bool {
    let Ok(inside) = cwd.strip_prefix(workspace.join(WORKTREES.iter().collect::<std::path::PathBuf>())) else {
        return false;
    };
    let mut steps = inside.components().peekable();
    steps.peek().is_some() && steps.all(|step| matches!(step, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_lies_below_its_own_folder() {
        for (cwd, is_one) in [
            ("/ws/.qwen/worktrees/a", true),
            ("/ws/.qwen/worktrees/a/src", true),
            ("/ws/.qwen/worktrees", false),
            ("/ws/.qwen/worktrees/../../etc", false),
            ("/ws/src", false),
            ("/wsx/.qwen/worktrees/a", false),
        ] {
            assert_eq!(is_worktree(Path::new(cwd), Path::new("/ws")), is_one, "{cwd}");
        }
    }
}
