//! Turns of an earlier life that go on behind the end of their request: it was cancelled, or its deadline came, while a host that outlived
//! the daemon was at its turn, or the daemon died as it was about to tell the agent. The host is told to stop it where that is wanted, and
//! what the turn comes to is late evidence.

use std::sync::Arc;
use std::time::Duration;

use bridge::{PromptLedger as _, Wish};
use request::recovery::{Found, Loss, Verdict, recover};
use request::{Input, LateKind, Phase, Recovered, Request, State};
use tokio::time::{Instant, sleep};
use transcript::{LockError, Owner, SessionLock};

use crate::clock::now_ms;
use crate::limits::{AFTERWARDS_LOOK_MS, AFTERWARDS_TURNS_MAX};
use crate::refusal::Refusal;
use crate::returns::{Returns, asked, evidence, recovery, refusal};
use crate::tasks::blocking;
use crate::workspace::Workspace;

impl Returns {
    /// Follows the turn of a request that was decided while its host still held the session, until then at most.
    pub(super) fn follow_up(
        self: &Arc<Self>,
        workspace: Arc<Workspace>,
        request: Request,
        decided: &Request,
        until: Instant,
    ) {
        match decided.state {
            State::TimedOut if decided.registration.options.cancel_on_timeout => {
                // Nobody waits to hear whether there is a place; the log says so.
                self.recovering.following.want_stop(decided.id());
            }
            State::Cancelled | State::TimedOut => {}
            _ => {
                self.recovering.following.take_stop(decided.id());
                return;
            }
        }
        self.follow_turn(workspace, request, until);
    }

    fn follow_turn(self: &Arc<Self>, workspace: Arc<Workspace>, request: Request, until: Instant) {
        if !self.recovering.following.begin(request.id()) {
            return;
        }
        let returns = Arc::clone(self);
        self.spawn(async move {
            let id = request.id().clone();
            returns.see_out(workspace, request, until).await;
            returns.recovering.following.end(&id);
        });
    }

    /// Puts on record that the turn of a request is to stop, before its end is: a daemon that dies in between finds it there when it is back.
    pub(crate) async fn note_interrupt(&self, request: &Request) {
        let Ok(store) = self.store() else { return };
        if request.phase < Phase::Dispatching {
            return;
        }
        if let Some(workspace) = self.workspace_of(store, request).await {
            wish(&workspace, request).await;
        }
    }

    /// Passes on that the turn of a request that has ended is to stop, if it goes on: to its session, where only this very prompt is meant, or
    /// to the host of an earlier life.
    ///
    /// # Errors
    /// 429 `too_many_interrupts` when it goes on and there is no place for one more whose host is to be told.
    pub(crate) async fn interrupt_ended(self: &Arc<Self>, request: &Request) -> Result<(), Refusal> {
        if !may_go_on(request) {
            return Ok(());
        }
        if let Some(session) = self.session(&request.registration.session_id) {
            // A session that ends takes its turn with it.
            let _ = session.cancel(Some(&request.registration.prompt_id), None);
            return Ok(());
        }
        let Some(workspace) = self.workspace_of(self.store()?, request).await else { return Ok(()) };
        if self.is_held(&workspace, request).await {
            wish(&workspace, request).await;
            if !self.stop_turn(workspace, request, Instant::now()) {
                return Err(refusal::too_many_interrupts(request));
            }
        }
        Ok(())
    }

    /// Looks, when a life begins, for ends behind which the one before it saw nothing any more: what could not be told to an agent is told, and
    /// what the turn came to, or comes to yet, is put beside the end.
    pub(super) async fn take_up_ends(self: Arc<Self>, begun: Instant) {
        let Ok(store) = self.store().cloned() else { return };
        let patience =
            self.neighbours().all().map(|workspace| recovery::patience(&workspace)).max().unwrap_or_default();
        let since_ms = now_ms().saturating_sub(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX));
        let ended = match self.read(move |store| store.ended_since(since_ms, AFTERWARDS_TURNS_MAX)).await {
            Ok(ended) => ended,
            Err(refusal) => {
                return tracing::error!(code = &*refusal.code, "ends of an earlier life cannot be looked through");
            }
        };
        let mut unheld = Vec::new();
        for request in ended.iter().filter(|request| may_go_on(request)) {
            let Some(workspace) = self.workspace_of(&store, request).await else { continue };
            if !self.is_held(&workspace, request).await {
                unheld.push((workspace, request));
            } else if is_to_stop(&workspace, request).await {
                self.stop_turn(workspace, request, begun);
            } else {
                self.follow_turn(Arc::clone(&workspace), before_end(request), begun + recovery::patience(&workspace));
            }
        }
        // Nobody is at these: they can wait, and what there is to see of them is seen with one look.
        for (workspace, request) in unheld {
            if !self.is_over(request).await && request.state != State::Indeterminate {
                self.see_out(workspace, before_end(request), begun).await;
            }
        }
    }

    /// Has the turn of a request stopped by its host. Whether there is a place for it.
    fn stop_turn(self: &Arc<Self>, workspace: Arc<Workspace>, request: &Request, begun: Instant) -> bool {
        let has_place = self.recovering.following.want_stop(request.id());
        if has_place {
            let until = begun + recovery::patience(&workspace);
            self.follow_turn(workspace, before_end(request), until);
        }
        has_place
    }

    /// Whether somebody has the session of a request whose turn is not known to be over.
    async fn is_held(&self, workspace: &Arc<Workspace>, request: &Request) -> bool {
        !self.is_over(request).await && holder(workspace, &request.registration.session_id).await.is_some()
    }

    /// Whether what the turn of a request came to behind its end is on record.
    async fn is_over(&self, request: &Request) -> bool {
        let id = request.id().clone();
        let late = self.read(move |store| store.late(&id)).await;
        late.is_ok_and(|late| late.iter().any(|one| one.late.kind == LateKind::Outcome))
    }

    /// Looks at the turn until it is over, nobody is at it any more, or time is; once at least.
    async fn see_out(&self, workspace: Arc<Workspace>, mut request: Request, until: Instant) {
        // The request has ended: how its turn does is not a question of time any more.
        request.registration.deadline_at = None;
        loop {
            // The lock first: what is read behind the end of its holder is all there will be.
            let holder = holder(&workspace, &request.registration.session_id).await;
            let found = recovery::found(&workspace, &request).await;
            if let Some(word) = last_word(&request, &found) {
                return self.add(&request, word).await;
            }
            let Some(owner) = holder else { return };
            // The transcript shows the turn to be the last one and open, and a host without a daemon begins no other: whatever else holds
            // the session by now does nothing when it is asked.
            if evidence::is_open(&found.transcript)
                && let Some(owner) = owner
                && self.recovering.following.take_stop(request.id())
            {
                let transcript = workspace.layout.transcript(&request.registration.session_id);
                workspace.hosts.interrupt(&transcript, &owner).await;
            }
            if Instant::now() >= until {
                return;
            }
            sleep(Duration::from_millis(AFTERWARDS_LOOK_MS)).await;
        }
    }

    /// Puts what the turn came to beside the request.
    async fn add(&self, request: &Request, word: Recovered) {
        let Ok(store) = self.store() else { return };
        let id = request.id().clone();
        if let Err(error) = asked(|reply| store.apply(id, Input::Recovered(word), now_ms(), reply)).await {
            tracing::error!(request = %request.id(), %error, "what came behind the end of a return request is not on record");
        }
    }
}

/// How the turn ended, when its record says that; none before, and of a turn that is not exactly the request's.
fn last_word(request: &Request, found: &Found) -> Option<Recovered> {
    match recover(request, found, now_ms()) {
        Verdict::Decided(word @ (Recovered::Exact(_) | Recovered::DaemonLost(Loss::AgentGone))) => Some(word),
        _ => None,
    }
}

/// Who holds the session's lock, if anybody does and as far as it says so.
async fn holder(workspace: &Arc<Workspace>, session: &str) -> Option<Option<Owner>> {
    let path = workspace.layout.session_lock(session);
    match blocking(move || SessionLock::probe(&path)).await {
        Some(Err(LockError::Held { owner, .. })) => Some(owner),
        _ => None,
    }
}

/// Whether the turn of a request that has ended may go on all the same.
fn may_go_on(request: &Request) -> bool {
    let is_ended_from_outside = matches!(request.state, State::Cancelled | State::TimedOut | State::Indeterminate);
    is_ended_from_outside && request.phase == Phase::Dispatching
}

/// A request as it was before its end, as far as its evidence has to do with that.
fn before_end(request: &Request) -> Request {
    let mut request = request.clone();
    request.state = match (request.submitted_at, request.bound_at) {
        (_, Some(_)) => State::Bound,
        (Some(_), None) => State::Submitted,
        (None, None) => State::Registered,
    };
    request
}

/// Whether it is on record that a turn is to stop.
async fn is_to_stop(workspace: &Arc<Workspace>, request: &Request) -> bool {
    if request.state == State::TimedOut && request.registration.options.cancel_on_timeout {
        return true;
    }
    let (workspace, registration) = (Arc::clone(workspace), request.registration.clone());
    let looked = blocking(move || {
        evidence::is_wished(&workspace.sink.ledger(&registration.session_id), &registration.prompt_id)
    });
    looked.await.unwrap_or(false)
}

/// Puts on the ledger that somebody wishes a prompt cancelled.
async fn wish(workspace: &Arc<Workspace>, request: &Request) {
    let (workspace, registration) = (Arc::clone(workspace), request.registration.clone());
    let wished = blocking(move || {
        let (session_id, prompt_id) = (&registration.session_id, &registration.prompt_id);
        workspace.sink.cancel_wished(&Wish { session_id, prompt_id, at_ms: now_ms() });
    });
    // A wish that is not on record stops no cancel.
    let _ = wished.await;
}

#[cfg(test)]
mod tests;
