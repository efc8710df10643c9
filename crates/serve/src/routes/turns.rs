//! The poll (turn status seed). An answer that memory holds is given from memory; otherwise the transcript is read once, and what it
//! adds is kept; `lookup.rs` says in which order. With `wait_ms` it answers when the prompt has ended, or then, whichever comes first.

use std::sync::Arc;

use bridge::{Ended, Session, TurnView};
use transcript::PageError;

use crate::dispatch::Call;
use crate::lookup::{self, Found, Scanned, Sources};
use crate::polled::Seen;
use crate::published::published;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::tasks::blocking;
use crate::turn_status::from_ledger;
use crate::wait;
use crate::wire::Turn;
use crate::workspace::Workspace;

/// Where an answer comes from that no transcript and no memory holds.
const LEDGER: &str = "ledger";

/// `GET /session/:id/turns/:promptId`.
pub(crate) async fn exact(call: &Call<'_>) -> Result<Reply, Refusal> {
    let wait = wait::asked(call.head.uri.query())?;
    let (session, _) = call.session_and_client()?;
    let prompt = call.matched.second();
    wait::until_settled(&session, prompt, wait).await;
    of_prompt(call.workspace, &session, prompt).await
}

/// `GET /session/:id/turns/current`.
pub(crate) async fn current(call: &Call<'_>) -> Result<Reply, Refusal> {
    let wait = wait::asked(call.head.uri.query())?;
    let (session, _) = call.session_and_client()?;
    let view = session.turn(None);
    if let (Some(wait), Some(live)) = (wait, &view.live) {
        // What was current when the request came is what its sender waits for, whatever is current afterwards.
        wait::until_settled(&session, &live.prompt_id, Some(wait)).await;
        return of_prompt(call.workspace, &session, &live.prompt_id).await;
    }
    let found = lookup::of_current(&Live::new(call.workspace, &session)).await?;
    Ok(answer(&session, &found).unwrap_or_else(|| ok(&Turn::idle(session.id()))))
}

/// What is known of one prompt now.
async fn of_prompt(workspace: &Arc<Workspace>, session: &Session, prompt: &str) -> Result<Reply, Refusal> {
    let found = lookup::of_prompt(&Live::new(workspace, session), prompt).await?;
    answer(session, &found).ok_or_else(|| Refusal::prompt_not_found(session.id(), prompt))
}

fn answer(session: &Session, found: &Found) -> Option<Reply> {
    match found {
        Found::Live(live) => Some(ok(&Turn::live(session.id(), live))),
        Found::Ended(ended) => Some(ok(&Turn::ended(session.id(), ended, None))),
        Found::Ledger(ended) => Some(ok(&Turn::ended(session.id(), ended, Some(LEDGER)))),
        Found::Nothing => None,
    }
}

/// A live session and its files.
pub(crate) struct Live<'a> {
    workspace: &'a Arc<Workspace>,
    session: &'a Session,
    /// How often the session had been rewound before anything was looked at.
    rewinds: u64,
}

impl<'a> Live<'a> {
    /// The session as it is before anything is looked at.
    pub(crate) fn new(workspace: &'a Arc<Workspace>, session: &'a Session) -> Self {
        Self { workspace, session, rewinds: session.rewinds() }
    }
}

impl Sources for Live<'_> {
    fn view(&self, prompt: Option<&str>) -> TurnView {
        self.session.turn(prompt)
    }

    fn is_settled(&self, ended: &Ended) -> bool {
        match self.workspace.polled.get(self.session.id(), &ended.prompt_id) {
            None => false,
            Some(Seen::Record) => true,
            Some(Seen::Nothing { transcript_bytes }) => {
                transcript_bytes == transcript_len(self.workspace, self.session.id())
            }
        }
    }

    async fn record(&self, prompt: Option<&str>) -> Result<Scanned, Refusal> {
        read_record(self.workspace, self.session, prompt).await
    }

    async fn ledger(&self, prompt: &str) -> Option<Ended> {
        read_ledger(self.workspace, self.session, prompt).await
    }

    fn keep(&self, ended: &Ended, seen: Seen, changed: bool) {
        if changed {
            self.session.absorb(ended.clone(), self.rewinds);
        }
        self.workspace.polled.set(self.session.id(), &ended.prompt_id, seen);
    }
}

async fn read_record(workspace: &Arc<Workspace>, session: &Session, prompt: Option<&str>) -> Result<Scanned, Refusal> {
    let (workspace, id, prompt) = (Arc::clone(workspace), session.id().to_owned(), prompt.map(str::to_owned));
    let searched = session.clone();
    let read = move || -> Result<Scanned, PageError> {
        let transcript_bytes = transcript_len(&workspace, &id);
        let found = transcript::find_turn_result(&workspace.layout.transcript(&id), prompt.as_deref())?;
        let found = found.map(|record| published(&workspace, &searched, record));
        Ok(Scanned { found, transcript_bytes })
    };
    let outcome = blocking(read).await.ok_or_else(Refusal::internal)?;
    outcome.map_err(|error| {
        tracing::warn!(session = session.id(), %error, "transcript cannot be searched");
        Refusal::of_transcript(session.id(), &error)
    })
}

/// The length of a transcript in bytes; 0 when there is none.
fn transcript_len(workspace: &Workspace, session: &str) -> u64 {
    std::fs::metadata(workspace.layout.transcript(session)).map_or(0, |meta| meta.len())
}

/// The last source before nothing is known: the ledger's own terminal.
pub(super) async fn read_ledger(workspace: &Arc<Workspace>, session: &Session, prompt: &str) -> Option<Ended> {
    let (workspace, id, prompt) = (Arc::clone(workspace), session.id().to_owned(), prompt.to_owned());
    blocking(move || {
        let reading = workspace.sink.ledger(&id).read().ok()?;
        // When the last rewind cannot be told, nothing may rest on a terminal before it.
        let rewound = transcript::last_rewind_at_ms(&workspace.layout.transcript(&id)).ok()?;
        from_ledger(&reading.records, &prompt, rewound)
    })
    .await?
}
