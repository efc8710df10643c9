//! From nothing to an agent that runs and a session that is ours.

use std::path::Path;

use acp::RpcError;
use tokio::io::AsyncRead;
use tokio::time::{Instant, timeout_at};
use transcript::{Identity, LockError, SessionLock, Writer};

use crate::choice::Choice;
use crate::incoming::Incoming;
use crate::journal::Journal;
use crate::launch::{self, Agent};
use crate::leftovers::{end_leftovers, lock};
use crate::limits::LOCK_POLL;
use crate::options::{HostOptions, Mode};
use crate::sidecar;
use crate::tree::Tree;
use crate::wire::{code, refusal_unwritten, writer_conflict};

/// Everything a host needs to begin.
pub(crate) struct Started {
    /// Held until the tree is gone.
    pub(crate) lock: SessionLock,
    /// None in native mode.
    pub(crate) journal: Option<Journal>,
    /// The agent's name for the session, from an earlier host.
    pub(crate) remembered: Option<String>,
    /// What an earlier host's agent was set to.
    pub(crate) choices: Vec<Choice>,
    /// How the agent was started.
    pub(crate) order: launch::Order,
    pub(crate) agent: Agent,
    pub(crate) tree: Tree,
}

/// Takes the session and starts its agent, in this order: the lock; then the end of whatever a dead host of the very
/// session left behind, since two agents on one session silently lose a branch of it; then the agent.
///
/// None when the daemon went away while the lock was waited for.
pub(crate) async fn start<R: AsyncRead + Unpin>(
    options: &HostOptions,
    daemon: &mut Incoming<R>,
) -> Result<Option<Started>, RpcError> {
    let transcript = std::path::absolute(&options.transcript_path).map_err(|error| {
        refusal_unwritten(code::TRANSCRIPT_UNWRITABLE, "the transcript has no place", &error.to_string())
    })?;
    let Some(lock) = wait_for_lock(options, &transcript, daemon).await? else { return Ok(None) };
    let tree = Tree::of_session(transcript.as_os_str());
    end_leftovers(&tree).await.map_err(|stubborn| writer_conflict(&stubborn.to_string(), None))?;
    let (journal, note) = match options.mode {
        Mode::Native => (None, None),
        Mode::Recorded => {
            let note = sidecar::read(&sidecar::path_beside(&transcript), &options.session_id);
            (Some(open_journal(options, &transcript)?), note)
        }
    };
    let remembered = note.as_ref().and_then(sidecar::Note::agent_session);
    let choices = note.map_or_else(Vec::new, |note| note.choices);
    let order = launch::Order::new(options, &transcript);
    let agent = launch::start(&order).map_err(|error| {
        let program = options.agent.program.to_string_lossy();
        refusal_unwritten(
            code::AGENT_UNAVAILABLE,
            "the agent cannot be started",
            &format!("cannot start {program}: {error}"),
        )
    })?;
    Ok(Some(Started { lock, journal, remembered, choices, order, agent, tree }))
}

/// An earlier host may linger over a turn whose daemon has died. Its outcome is worth the wait.
async fn wait_for_lock<R: AsyncRead + Unpin>(
    options: &HostOptions,
    transcript: &Path,
    daemon: &mut Incoming<R>,
) -> Result<Option<SessionLock>, RpcError> {
    let until = Instant::now() + options.lock_wait;
    loop {
        match lock(transcript) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Held { .. }) if Instant::now() < until => {}
            Err(error) => return Err(not_locked(&error)),
        }
        // What the daemon says meanwhile is kept; that it is gone is the end of the wait.
        if let Ok(read) = timeout_at(until.min(Instant::now() + LOCK_POLL), daemon.read()).await {
            daemon.take(&read);
            if !daemon.is_open() {
                return Ok(None);
            }
        }
    }
}

fn not_locked(error: &LockError) -> RpcError {
    let details = error.to_string();
    match error {
        LockError::Held { owner, .. } => writer_conflict(&details, owner.as_ref()),
        LockError::Io { .. } => {
            refusal_unwritten(code::TRANSCRIPT_UNWRITABLE, "the session cannot be locked", &details)
        }
    }
}

fn open_journal(options: &HostOptions, transcript: &Path) -> Result<Journal, RpcError> {
    let identity = Identity {
        session_id: options.session_id.clone(),
        cwd: options.workspace.to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let writer = Writer::open(transcript, identity, options.durability).map_err(|error| {
        refusal_unwritten(code::TRANSCRIPT_UNWRITABLE, "the transcript cannot be opened", &error.to_string())
    })?;
    let writer = writer.keeping_title().map_err(|error| {
        refusal_unwritten(code::TRANSCRIPT_UNWRITABLE, "the transcript cannot be read", &error.to_string())
    })?;
    Ok(Journal::new(writer))
}
