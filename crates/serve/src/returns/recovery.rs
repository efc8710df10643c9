//! What is said after a crash of every request that had not ended, oldest first, while the daemon serves already (return requests, section
//! 2.7). A host that outlived its daemon lets its turn settle and records it (design, section 7): it is waited for by the session's lock,
//! and no transcript is taken for final before that is free.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use request::recovery::{
    Found, LedgerFound, Loss, TranscriptFound, Verdict, is_never_dispatched, needs_transcript, recover,
};
use request::store::{Entry as Known, Store, StoreError};
use request::{Input, Outcome, Request, RequestId, Stage};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use transcript::{LockError, SessionLock};

use crate::clock::now_ms;
use crate::limits::{DEADLINE_GRACE_MS, RECOVERY_LOOK_MS, RECOVERY_WAIT_MS};
use crate::returns::following::Following;
use crate::returns::{Returns, asked, evidence};
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// Why the processes of an earlier life are gone.
const LOST: &str = "daemon_lost";

/// The requests that are not decided yet, by their sessions; none is known before the store is open.
#[derive(Default)]
pub(crate) struct Recovering {
    open: watch::Sender<Option<HashMap<RequestId, String>>>,
    /// The turns of those that are decided while their hosts are at them.
    pub(super) following: Following,
}

impl Recovering {
    /// These are all that had not ended.
    pub(super) fn begin(&self, requests: &[Request]) {
        let open = requests.iter().map(|request| (request.id().clone(), request.registration.session_id.clone()));
        self.open.send_replace(Some(open.collect()));
    }

    /// Waits until it is known what had not ended.
    pub(super) async fn begun(&self) {
        self.wait_for(|_| true).await;
    }

    fn done(&self, request_id: &RequestId) {
        self.open.send_if_modified(|open| open.as_mut().is_some_and(|open| open.remove(request_id).is_some()));
    }

    /// Whether a request is not decided yet.
    pub(crate) fn has(&self, request_id: &RequestId) -> bool {
        self.open.borrow().as_ref().is_some_and(|open| open.contains_key(request_id))
    }

    /// Waits until a request is decided.
    pub(crate) async fn decided(&self, request_id: &RequestId) {
        self.wait_for(|open| !open.contains_key(request_id)).await;
    }

    /// Waits until all requests of a session are decided.
    async fn decided_in(&self, session_id: &str) {
        self.wait_for(|open| open.values().all(|session| session != session_id)).await;
    }

    async fn wait_for(&self, holds: impl Fn(&HashMap<RequestId, String>) -> bool) {
        // The sender is ours, so that it does not go.
        let _ = self.open.subscribe().wait_for(|open| open.as_ref().is_some_and(&holds)).await;
    }
}

/// When a life began to decide: by the clock that nobody sets, and by the one on the wall.
#[derive(Debug, Clone, Copy)]
struct Beginning {
    at: Instant,
    at_ms: u64,
}

impl Beginning {
    fn now() -> Self {
        Self { at: Instant::now(), at_ms: now_ms() }
    }

    /// What time it is for the deadline of a request of an earlier life: that of the clock on the wall, and no less than what has passed in
    /// this life makes it, in which no request is younger than it was when it was made. So a clock that was set back makes a deadline late
    /// by its own length at most, and one that is set back by now does not make it late at all.
    fn reckoned_ms(self, request: &Request) -> u64 {
        let lived_ms = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        now_ms().max(self.at_ms.max(request.registration.created_at).saturating_add(lived_ms))
    }
}

impl Returns {
    /// Notes that the caller of a request, which waits for its recovery, wants its turn to stop with it. Whether that can be passed on; of
    /// any other request nothing is noted.
    pub(crate) fn want_interrupt(&self, request_id: &RequestId) -> bool {
        !self.is_recovering(request_id) || self.recovering.following.want_stop(request_id)
    }

    /// Whether a request waits for its recovery.
    pub(crate) fn is_recovering(&self, request_id: &RequestId) -> bool {
        self.recovering.has(request_id)
    }

    /// Waits until a request is decided, at once if it is.
    pub(crate) async fn decided(&self, request_id: &RequestId) {
        self.recovering.decided(request_id).await;
    }

    /// Waits, but not longer than so many milliseconds, until nothing of a session is open from earlier lives: what another process writes
    /// afterwards is no evidence. Whether that is so.
    pub(crate) async fn before_opening(&self, session_id: &str, wait_ms: u64) -> bool {
        timeout(Duration::from_millis(wait_ms), self.recovering.decided_in(session_id)).await.is_ok()
    }

    /// Decides all that earlier lives left open, the oldest first. Resolves when that is done.
    pub(crate) async fn recover(self: Arc<Self>, open: Vec<Request>) {
        let Ok(store) = self.store().cloned() else { return };
        let begun = Beginning::now();
        self.spawn(Arc::clone(&self).take_up_ends(begun.at));
        let mut waiting = Vec::new();
        for request in open {
            if let Some(later) = self.first_look(&store, request, begun).await {
                waiting.push(later);
            }
        }
        // Sessions are waited for side by side, and within one the oldest comes first.
        let mut sessions: Vec<(String, Vec<Request>)> = Vec::new();
        for request in waiting {
            let session = &request.registration.session_id;
            match sessions.iter_mut().find(|(id, _)| id == session) {
                Some((_, requests)) => requests.push(request),
                None => sessions.push((session.clone(), vec![request])),
            }
        }
        let tasks: Vec<_> = sessions
            .into_iter()
            .map(|(_, requests)| self.spawn(Arc::clone(&self).recover_session(Arc::clone(&store), requests, begun)))
            .collect();
        for task in tasks {
            // A fault of ours in one leaves it open, and the next life decides.
            let _ = task.await;
        }
        self.bury(&store).await;
    }

    /// Decides what needs no transcript; gives back what does.
    async fn first_look(&self, store: &Arc<Store>, request: Request, begun: Beginning) -> Option<Request> {
        let (looker, id) = (Arc::clone(store), request.id().clone());
        let stage = blocking(move || looker.staged(&id)).await.unwrap_or(Err(StoreError::Closed));
        let stage = stage.unwrap_or_else(|error| {
            tracing::error!(request = %request.id(), %error, "a staged outcome cannot be read");
            None
        });
        if needs_transcript(&request, stage.as_ref()) {
            return Some(request);
        }
        let workspace = self.workspace_of(store, &request).await;
        if let Some(workspace) = &workspace {
            self.mend_ledger(workspace, &request, stage.as_ref()).await;
        }
        let found = Found { stage, ledger: LedgerFound::Open, transcript: TranscriptFound::NotYet };
        self.decide(store, &request, &found, begun).await;
        self.recovering.following.take_stop(request.id());
        None
    }

    async fn recover_session(self: Arc<Self>, store: Arc<Store>, requests: Vec<Request>, begun: Beginning) {
        for request in requests {
            let Some(workspace) = self.workspace_of(&store, &request).await else {
                self.decide(&store, &request, &nothing(Loss::Missing), begun).await;
                self.recovering.following.take_stop(request.id());
                continue;
            };
            let until = begun.at + patience(&workspace);
            let found = self.look(&workspace, &request, latest(&request, until, begun)).await;
            let decided = self.decide(&store, &request, &found, begun).await;
            if found.transcript == TranscriptFound::Lost(Loss::StillWritten)
                && let Some(decided) = decided
            {
                self.follow_up(workspace, request, &decided, until);
            } else {
                self.recovering.following.take_stop(request.id());
            }
        }
    }

    /// Looks into transcript and ledger once nobody writes them any more.
    async fn look(&self, workspace: &Arc<Workspace>, request: &Request, until: Instant) -> Found {
        let session = &request.registration.session_id;
        let is_free = tokio::select! {
            is_free = is_free(workspace, session, until) => is_free,
            () = self.has_ended(request.id()) => false,
        };
        if !is_free {
            return nothing(Loss::StillWritten);
        }
        found(workspace, request).await
    }

    /// Resolves when a request has ended otherwise, as by a cancel.
    async fn has_ended(&self, request_id: &RequestId) {
        let mut head = self.follow();
        loop {
            let known = self.known(request_id).await;
            if matches!(known, Ok(Some(Known::Request(request))) if request.state.is_terminal()) {
                return;
            }
            if head.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// Writes the decision, and says how the request stands then. Each is its own step, so that whoever dies in between comes to the same one.
    async fn decide(&self, store: &Arc<Store>, request: &Request, found: &Found, begun: Beginning) -> Option<Request> {
        let id = request.id().clone();
        let mut decided = None;
        match recover(request, found, begun.reckoned_ms(request)) {
            Verdict::Decided(recovered) => {
                let input = Input::Recovered(recovered);
                match asked(|reply| store.apply(id.clone(), input, now_ms(), reply)).await {
                    // What was answered is for its owner's eyes, and not for a log.
                    Ok(applied) => {
                        let (state, code) = (applied.request.state.as_str(), &applied.request.code);
                        let code = code.as_ref().map(request::Code::as_str);
                        tracing::info!(request = %id, state, code, "a return request of an earlier life is decided");
                        decided = Some(applied.request);
                    }
                    Err(error) => tracing::error!(request = %id, %error, "a decision is not on record"),
                }
            }
            Verdict::Wait | Verdict::Nothing => {}
        }
        self.recovering.done(&id);
        decided
    }

    /// The workspace of a request: that of its agent's process, or the one where its session's files lie.
    pub(super) async fn workspace_of(&self, store: &Arc<Store>, request: &Request) -> Option<Arc<Workspace>> {
        let (store, registration) = (Arc::clone(store), request.registration.clone());
        let workspaces: Vec<_> = self.neighbours.all().collect();
        let found = blocking(move || {
            let key = registration.incarnation_id.as_ref().and_then(|id| store.incarnation(id).ok().flatten());
            let by_key = key.and_then(|known| workspaces.iter().find(|one| one.id == known.workspace_key).cloned());
            let mut by_files = workspaces.into_iter().filter(|one| one.layout.has_left(&registration.session_id));
            by_key.or_else(|| by_files.next())
        });
        found.await.flatten()
    }

    /// Says on the ledger what the request's own record knows: that its prompt was never dispatched, or how it ended (C3, C10).
    async fn mend_ledger(&self, workspace: &Arc<Workspace>, request: &Request, stage: Option<&Stage>) {
        let (workspace, session) = (Arc::clone(workspace), request.registration.session_id.clone());
        let prompt = request.registration.prompt_id.clone();
        let is_never_dispatched = is_never_dispatched(request);
        let stage = stage.cloned();
        let mended = blocking(move || {
            if is_never_dispatched {
                workspace.sink.never_dispatched(&session, &prompt, now_ms());
            } else if let Some(stage) = stage {
                workspace.sink.ended_before(&session, &prompt, &terminal_of(&stage.outcome), stage.at_ms);
            }
        });
        // A ledger that cannot be mended leaves the prompt open, as it was.
        let _ = mended.await;
    }

    /// Notes that the processes of earlier lives are gone.
    async fn bury(&self, store: &Arc<Store>) {
        let reader = Arc::clone(store);
        let open = blocking(move || reader.open_incarnations()).await.unwrap_or(Err(StoreError::Closed));
        for incarnation in open.unwrap_or_default() {
            if incarnation.daemon_epoch < store.daemon_epoch() {
                store.end_incarnation(incarnation.incarnation_id, LOST.to_owned(), now_ms(), |_| ());
            }
        }
    }
}

/// Until when a host of an earlier life is waited for: a deadline fires whatever the agent does. An outcome of the last moment before it gets
/// the time to be written.
fn latest(request: &Request, patience: Instant, begun: Beginning) -> Instant {
    let Some(deadline_ms) = request.registration.deadline_at else { return patience };
    let left_ms = deadline_ms.saturating_sub(begun.reckoned_ms(request)).saturating_add(DEADLINE_GRACE_MS);
    Instant::now().checked_add(Duration::from_millis(left_ms)).map_or(patience, |deadline| deadline.min(patience))
}

/// How long a host of an earlier life is waited for at all.
pub(super) fn patience(workspace: &Workspace) -> Duration {
    Duration::from_millis(workspace.options.linger_ms.saturating_add(RECOVERY_WAIT_MS))
}

/// What transcript and ledger say of a request now.
pub(super) async fn found(workspace: &Arc<Workspace>, request: &Request) -> Found {
    let (workspace, request) = (Arc::clone(workspace), request.clone());
    let looked = blocking(move || {
        let (layout, registration) = (&workspace.layout, &request.registration);
        let active = layout.transcript(&registration.session_id);
        let path = if active.exists() { active } else { layout.archived_transcript(&registration.session_id) };
        Found {
            stage: None,
            ledger: evidence::in_ledger(&workspace.sink.ledger(&registration.session_id), &registration.prompt_id),
            transcript: evidence::in_transcript(&path, &request),
        }
    });
    looked.await.unwrap_or_else(|| nothing(Loss::Unreadable))
}

/// Nothing but the reason why.
fn nothing(loss: Loss) -> Found {
    Found { stage: None, ledger: LedgerFound::Open, transcript: TranscriptFound::Lost(loss) }
}

/// Waits until nobody holds a session's lock, but not longer than until then.
async fn is_free(workspace: &Arc<Workspace>, session: &str, until: Instant) -> bool {
    let path = workspace.layout.session_lock(session);
    loop {
        let lock = path.clone();
        match blocking(move || SessionLock::probe(&lock)).await {
            Some(Ok(())) => return true,
            // Nobody can tell, so nothing is taken for final.
            Some(Err(LockError::Io { .. })) | None => return false,
            Some(Err(LockError::Held { .. })) if Instant::now() >= until => return false,
            Some(Err(LockError::Held { .. })) => sleep(Duration::from_millis(RECOVERY_LOOK_MS)).await,
        }
    }
}

/// The ledger's words for an outcome.
fn terminal_of(outcome: &Outcome) -> bridge::Terminal {
    match outcome {
        Outcome::Ended { stop_reason, .. } => bridge::Terminal::Completed { stop_reason: stop_reason.clone() },
        Outcome::Stopped { stop_reason, .. } => bridge::Terminal::Cancelled { agent_stop_reason: stop_reason.clone() },
        Outcome::Rejected { .. } | Outcome::Failed { .. } | Outcome::Unread { .. } => {
            bridge::Terminal::Error { message: String::new(), code: None }
        }
    }
}

#[cfg(test)]
mod tests;
