//! A session that goes on from a point of another one (docs/design/2026-11-30-branch.md).
//!
//! The daemon copies the transcript itself, in both modes, as the one exception to the rule that it writes none: nobody else knows of the new
//! session yet, and its lock is held until its file has its name. The copy is written under another name and renamed, so that whoever is
//! killed in between leaves no half session; what he leaves is removed by the next copy.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use bridge::{Held, Meanwhile, Session, Title};
use hyper::StatusCode;
use serde::Serialize;
use transcript::{
    Fork, ForkError, ForkPoint, HEADLINE_BYTES_MAX, Identity, PageError, SessionLock, find_title, fork, rewind_points,
};

use crate::clock::now_ms;
use crate::desk::{Action, RestoreRequest};
use crate::identity::fresh_uuid;
use crate::limits::{AGENT_ASK_MS, BRANCH_NAME_CHARS_MAX, TITLES_READ_MAX};
use crate::options::{Durability, Mode};
use crate::refusal::Refusal;
use crate::restore::{Joined, restore};
use crate::server::this_process;
use crate::shelf::discard;
use crate::tasks::{blocking, spawn};
use crate::workspace::Workspace;

/// How far back a session's own name is looked for, in bytes of its transcript.
const OWN_TITLE_BYTES: u64 = 4 * 1024 * 1024;
/// Letters of a session's id that stand for its name where it has none.
const ID_CHARS: usize = 8;

/// What is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Branch {
    /// What it is to be called, before the number that makes it the only one.
    pub(crate) name: Option<String>,
    /// A checkpoint, or a prompt of ours, with whose turn the copy ends; none for the end of the conversation.
    pub(crate) at: Option<String>,
}

/// Where a session comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    pub(crate) session_id: String,
    pub(crate) display_name: String,
}

/// A session that was made of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branched {
    pub(crate) session_id: String,
    pub(crate) display_name: String,
    pub(crate) forked_from: Origin,
}

/// Copies an idle session. It goes on when the caller does not.
///
/// # Errors
/// 409 while a prompt runs or waits, and for a point that is none.
pub(crate) async fn branch(workspace: &Arc<Workspace>, session: &Session, wanted: Branch) -> Result<Branched, Refusal> {
    let not_held = |error| Refusal::not_held(session.id(), error, || busy(session.id()));
    let held = session.hold(Meanwhile::Wait).map_err(not_held)?;
    if workspace.options.mode == Mode::Native {
        // Whatever it is asked it answers only when all that it had to write is in the file.
        let _ = session.ask("qwen/control/session/turn_status", "{}", AGENT_ASK_MS).await;
    }
    let (workspace, session) = (Arc::clone(workspace), session.clone());
    blocking(move || copy(&workspace, &session, &wanted, held)).await.unwrap_or_else(|| Err(Refusal::internal()))
}

/// The same, and the copy brought to life. A copy that cannot be is taken back, unless somebody else has found it meanwhile.
///
/// # Errors
/// The same, and whatever keeps a session from being loaded.
pub(crate) async fn live_branch(
    workspace: &Arc<Workspace>,
    session: &Session,
    wanted: Branch,
) -> Result<(Branched, Joined), Refusal> {
    // A place is looked for before anything is written.
    drop(workspace.slot()?);
    let (workspace, session) = (Arc::clone(workspace), session.clone());
    let task = spawn(async move {
        let branched = branch(&workspace, &session, wanted).await?;
        let request = RestoreRequest { action: Action::Load, records_max: None, options: Vec::new() };
        match restore(&workspace, &branched.session_id, request).await {
            Ok(joined) => {
                let title = Title { text: branched.display_name.clone(), source: Title::MANUAL.to_owned() };
                joined.session().entitle(title);
                Ok((branched, joined))
            }
            Err(refusal) => {
                let id = branched.session_id;
                if let Err(why) = discard(&workspace, &id).await {
                    tracing::warn!(session = id, why = %why.message, "a copy that does not load stays");
                }
                Err(refusal)
            }
        }
    });
    task.await.unwrap_or_else(|_| Err(Refusal::internal()))
}

/// Blocks.
fn copy(workspace: &Workspace, session: &Session, wanted: &Branch, held: Held) -> Result<Branched, Refusal> {
    let layout = &workspace.layout;
    let source = layout.transcript(session.id());
    let own_name = name_of(session, &source);
    let base = wanted.name.clone().unwrap_or_else(|| own_name.clone());
    let display_name = only_name(&base, &titles(workspace));
    let id = fresh_uuid();
    let copy = Fork {
        at: point(session.id(), &source, wanted.at.as_deref())?,
        source,
        source_session: session.id().to_owned(),
        identity: Identity {
            session_id: id.clone(),
            cwd: workspace.cwd.clone(),
            version: workspace.options.version.clone(),
        },
        title: display_name.clone(),
        at_ms: now_ms(),
        durability: match workspace.options.durability {
            Durability::Process => transcript::Durability::Process,
            Durability::Fsync => transcript::Durability::Fsync,
        },
    };
    sweep(workspace);
    let written = write(workspace, &id, &copy);
    // Nothing of the source is looked at any more.
    drop(held);
    written.map_err(|error| refused(session.id(), wanted, &error))?;
    let forked_from = Origin { session_id: session.id().to_owned(), display_name: own_name };
    Ok(Branched { session_id: id, display_name, forked_from })
}

/// Writes the copy under its lock, and gives it its name when it is whole.
fn write(workspace: &Workspace, id: &str, copy: &Fork) -> Result<(), ForkError> {
    let layout = &workspace.layout;
    let lock = layout.session_lock(id);
    let held =
        SessionLock::acquire(&lock, &this_process()).map_err(|error| ForkError::Write(io::Error::other(error)))?;
    let (draft, path) = (layout.branching(id), layout.transcript(id));
    let written = fork(copy, &draft).and_then(|()| {
        std::fs::rename(&draft, &path).map_err(ForkError::Write)?;
        match copy.durability {
            transcript::Durability::Process => Ok(()),
            transcript::Durability::Fsync => sync_folder(&path).map_err(ForkError::Write),
        }
    });
    if written.is_err() {
        for left in [&draft, &path] {
            let _ = std::fs::remove_file(left);
        }
        let _ = held.retire(&lock);
    }
    written
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Removes what daemons left that were killed while they copied.
fn sweep(workspace: &Workspace) {
    for id in workspace.layout.branchings() {
        let lock = workspace.layout.session_lock(&id);
        if let Ok(held) = SessionLock::acquire(&lock, &this_process()) {
            let _ = std::fs::remove_file(workspace.layout.branching(&id));
            let _ = held.retire(&lock);
        }
    }
}

/// Where the copy ends. A prompt's copy ends with its turn.
fn point(session: &str, source: &Path, at: Option<&str>) -> Result<ForkPoint, Refusal> {
    let Some(at) = at else { return Ok(ForkPoint::Tip) };
    let found = rewind_points(source, Some(at)).map_err(|error| unreadable(session, &error))?;
    let mut prompts = found.points.into_iter().filter(|point| point.prompt_id.as_deref() == Some(at));
    match (prompts.next(), prompts.next()) {
        (Some(prompt), None) => Ok(ForkPoint::Record(prompt.last)),
        _ => Ok(ForkPoint::Checkpoint(at.to_owned())),
    }
}

/// What a session is called: by a person or its agent, in this life or an earlier one; else the beginning of its id.
fn name_of(session: &Session, transcript: &Path) -> String {
    let told = session.status().title.map(|title| title.text);
    let written = || find_title(transcript, OWN_TITLE_BYTES).ok().flatten();
    told.or_else(written).unwrap_or_else(|| session.id().chars().take(ID_CHARS).collect())
}

/// The names that are taken: of live sessions, and of those on disk that were written to last.
fn titles(workspace: &Workspace) -> HashSet<String> {
    let live = workspace.bridge.sessions().into_iter().filter_map(|session| session.status().title);
    let written = workspace.layout.latest_transcripts(TITLES_READ_MAX).into_iter();
    let written = written.filter_map(|path| find_title(&path, HEADLINE_BYTES_MAX).ok().flatten());
    live.map(|title| title.text).chain(written).collect()
}

/// `name(1)`, or the first number with which nobody else is called so.
fn only_name(name: &str, taken: &HashSet<String>) -> String {
    let plain: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let plain: String = plain.trim().chars().take(BRANCH_NAME_CHARS_MAX).collect();
    (1_u64..).map(|number| format!("{plain}({number})")).find(|name| !taken.contains(name)).unwrap_or(plain)
}

fn busy(session: &str) -> Refusal {
    let message = format!("Cannot branch session {session}: a prompt is currently active");
    Refusal::conflict("branch_while_prompt_active", message).with("sessionId", session).retry_later()
}

fn unreadable(session: &str, error: &PageError) -> Refusal {
    tracing::warn!(session, %error, "transcript cannot be copied");
    Refusal::of_transcript(session, error)
}

fn refused(session: &str, wanted: &Branch, error: &ForkError) -> Refusal {
    match error {
        ForkError::NoPoint => {
            let message = match &wanted.at {
                Some(at) => format!("Invalid or inactive branch point: {at}"),
                None => "There is nothing in this session yet to branch from".to_owned(),
            };
            Refusal::conflict("branch_point_invalid", message)
                .with("errorKind", "branch_point_invalid")
                .with("sessionId", session)
        }
        ForkError::Unreadable(error) => unreadable(session, error),
        ForkError::TooLong => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "transcript_too_large",
            "The transcript is too large to be copied",
        )
        .with("sessionId", session),
        ForkError::Write(_) | ForkError::Append(_) => {
            tracing::error!(session, %error, "a copy cannot be written");
            let message = "The copy cannot be written";
            Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "transcript_unwritable", message)
                .with("sessionId", session)
                .retry_later()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_first_that_nobody_has_and_fits_on_a_line() {
        let taken: HashSet<String> = ["a(1)".to_owned(), "a(2)".to_owned()].into();
        let long = "ä".repeat(1_000);
        for (name, expected) in [
            ("a", "a(3)".to_owned()),
            (" b\n", "b(1)".to_owned()),
            ("a(1)", "a(1)(1)".to_owned()),
            (&long, format!("{}(1)", "ä".repeat(BRANCH_NAME_CHARS_MAX))),
        ] {
            assert_eq!(only_name(name, &taken), expected);
        }
    }
}
