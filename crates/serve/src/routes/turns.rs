//! The poll (turn status seed). An answer that memory holds is given from memory; otherwise the transcript is read once, and what it
//! adds is kept. With `wait_ms` it answers when the prompt has ended, or then, whichever comes first.

use std::sync::Arc;

use bridge::{Ended, Session, TurnView};
use transcript::{PageError, TurnResult};

use crate::app::App;
use crate::dispatch::Call;
use crate::polled::Seen;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::tasks::blocking;
use crate::turn_status::{self, Newest, from_ledger, merged};
use crate::wait;
use crate::wire::Turn;

/// Where an answer comes from that no transcript and no memory holds.
const LEDGER: &str = "ledger";

/// `GET /session/:id/turns/:promptId`.
pub(crate) async fn exact(call: &Call<'_>) -> Result<Reply, Refusal> {
    let wait = wait::asked(call.head.uri.query())?;
    let (session, _) = call.session_and_client()?;
    let prompt = call.matched.second();
    wait::until_settled(&session, prompt, wait).await;
    of_prompt(call.app, &session, prompt).await
}

/// What is known of one prompt now.
async fn of_prompt(app: &Arc<App>, session: &Session, prompt: &str) -> Result<Reply, Refusal> {
    let view = session.turn(Some(prompt));
    if let Some(reply) = from_memory(app, session, &view) {
        return Ok(reply);
    }
    let read = read_record(app, session, Some(prompt)).await;
    // The state may have moved while the disk was read, and a failed read must not answer for it either.
    let view = session.turn(Some(prompt));
    if let Some(live) = &view.live {
        return Ok(ok(&Turn::live(session.id(), live)));
    }
    let (record, refusal) = match read {
        Ok(record) => (record, None),
        Err(refusal) => (Scanned::default(), Some(refusal)),
    };
    if let Some(ended) = combine(app, session, view.overlay, record) {
        return Ok(ok(&Turn::ended(session.id(), &ended, None)));
    }
    match read_ledger(app, session, prompt).await {
        Some(ended) => Ok(ok(&Turn::ended(session.id(), &ended, Some(LEDGER)))),
        // What could not be searched does not show that there is nothing.
        None => Err(refusal.unwrap_or_else(|| Refusal::prompt_not_found(session.id(), prompt))),
    }
}

/// `GET /session/:id/turns/current`.
pub(crate) async fn current(call: &Call<'_>) -> Result<Reply, Refusal> {
    let wait = wait::asked(call.head.uri.query())?;
    let (session, _) = call.session_and_client()?;
    let view = session.turn(None);
    if let (Some(wait), Some(live)) = (wait, &view.live) {
        // What was current when the request came is what its sender waits for, whatever is current afterwards.
        wait::until_settled(&session, &live.prompt_id, Some(wait)).await;
        return of_prompt(call.app, &session, &live.prompt_id).await;
    }
    if let Some(reply) = from_memory(call.app, &session, &view) {
        return Ok(reply);
    }
    let read = read_record(call.app, &session, None).await;
    let view = session.turn(None);
    if let Some(live) = &view.live {
        return Ok(ok(&Turn::live(session.id(), live)));
    }
    let newest = match read {
        Err(refusal) if view.overlay.is_none() => return Err(refusal),
        read => read.unwrap_or_default(),
    };
    let (overlay, record) = match turn_status::newest(view.overlay.as_ref(), newest.found.as_ref()) {
        Newest::Agreed => (view.overlay, newest),
        Newest::Recorded => {
            let prompt = newest.found.as_ref().map(|record| record.prompt_id.clone());
            (session.turn(prompt.as_deref()).overlay, newest)
        }
        Newest::Remembered => {
            let prompt = view.overlay.as_ref().map(|ended| ended.prompt_id.as_str());
            let own = read_record(call.app, &session, prompt).await.unwrap_or_default();
            (view.overlay, own)
        }
    };
    match combine(call.app, &session, overlay, record) {
        Some(ended) => Ok(ok(&Turn::ended(session.id(), &ended, None))),
        None => Ok(ok(&Turn::idle(session.id()))),
    }
}

/// The answer if no disk can add to it.
fn from_memory(app: &App, session: &Session, view: &TurnView) -> Option<Reply> {
    if let Some(live) = &view.live {
        return Some(ok(&Turn::live(session.id(), live)));
    }
    let ended = view.overlay.as_ref()?;
    let settled = ended.started_at_ms.is_none() || is_settled(app, session, ended);
    settled.then(|| ok(&Turn::ended(session.id(), ended, None)))
}

/// Whether the overlay's answer contains all that the transcript has to say about it.
fn is_settled(app: &App, session: &Session, ended: &Ended) -> bool {
    match app.polled.get(session.id(), &ended.prompt_id) {
        None => false,
        Some(Seen::Record) => true,
        Some(Seen::Nothing { transcript_bytes }) => transcript_bytes == transcript_len(app, session.id()),
    }
}

/// Merges what memory and disk know, and writes the answer back into memory.
fn combine(app: &App, session: &Session, overlay: Option<Ended>, record: Scanned) -> Option<Ended> {
    let seen = match record.found {
        Some(_) => Seen::Record,
        None => Seen::Nothing { transcript_bytes: record.transcript_bytes },
    };
    let changed = record.found.is_some();
    let ended = merged(overlay, record.found)?;
    if changed {
        session.absorb(ended.clone());
    }
    app.polled.set(session.id(), &ended.prompt_id, seen);
    Some(ended)
}

/// What a look at the transcript gave.
#[derive(Default)]
struct Scanned {
    found: Option<TurnResult>,
    /// Its length before it was read.
    transcript_bytes: u64,
}

async fn read_record(app: &Arc<App>, session: &Session, prompt: Option<&str>) -> Result<Scanned, Refusal> {
    let (app, id, prompt) = (Arc::clone(app), session.id().to_owned(), prompt.map(str::to_owned));
    let read = move || -> Result<Scanned, PageError> {
        let transcript_bytes = transcript_len(&app, &id);
        let found = transcript::find_turn_result(&app.layout.transcript(&id), prompt.as_deref())?;
        Ok(Scanned { found, transcript_bytes })
    };
    let outcome = blocking(read).await.ok_or_else(Refusal::internal)?;
    outcome.map_err(|error| {
        tracing::warn!(session = session.id(), %error, "transcript cannot be searched");
        Refusal::of_transcript(session.id(), &error)
    })
}

/// The length of a transcript in bytes; 0 when there is none.
fn transcript_len(app: &App, session: &str) -> u64 {
    std::fs::metadata(app.layout.transcript(session)).map_or(0, |meta| meta.len())
}

/// The last source before nothing is known: the ledger's own terminal.
async fn read_ledger(app: &Arc<App>, session: &Session, prompt: &str) -> Option<Ended> {
    let (app, id, prompt) = (Arc::clone(app), session.id().to_owned(), prompt.to_owned());
    blocking(move || {
        let reading = app.sink.ledger(&id).read().ok()?;
        // When the last rewind cannot be told, nothing may rest on a terminal before it.
        let rewound = transcript::last_rewind_at_ms(&app.layout.transcript(&id)).ok()?;
        from_ledger(&reading.records, &prompt, rewound)
    })
    .await?
}
