//! Turns of an earlier life that go on behind the end of their request: it was cancelled, or its deadline came, while a host that outlived
//! the daemon was at its turn. The host is told to stop it where the caller wants that, and what the turn comes to is late evidence.

use std::sync::Arc;
use std::time::Duration;

use bridge::{PromptLedger as _, Wish};
use request::recovery::{Found, Loss, Verdict, recover};
use request::{Input, Recovered, Request, State};
use tokio::time::{Instant, sleep};
use transcript::{LockError, Owner, SessionLock};

use crate::clock::now_ms;
use crate::limits::AFTERWARDS_LOOK_MS;
use crate::returns::{Returns, asked, evidence, recovery};
use crate::tasks::blocking;
use crate::workspace::Workspace;

/// Why the turn of an ended request is to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Its caller cancelled it.
    Cancel,
    /// Its deadline cancels the turn too.
    Deadline,
}

impl Returns {
    /// Follows the turn of a request that was decided while its host still held the session, until then at most.
    pub(super) fn follow_up(
        self: &Arc<Self>,
        workspace: Arc<Workspace>,
        request: Request,
        decided: &Request,
        until: Instant,
    ) {
        let is_wanted = self.recovering.take_interrupt(decided.id());
        let stop = match decided.state {
            State::Cancelled => is_wanted.then_some(Stop::Cancel),
            State::TimedOut => decided.registration.options.cancel_on_timeout.then_some(Stop::Deadline),
            _ => return,
        };
        let returns = Arc::clone(self);
        self.spawn(async move { returns.see_out(workspace, request, stop, until).await });
    }

    async fn see_out(&self, workspace: Arc<Workspace>, mut request: Request, mut stop: Option<Stop>, until: Instant) {
        // The request has ended: how its turn does is not a question of time any more.
        request.registration.deadline_at = None;
        while Instant::now() < until {
            // The lock first: what is read behind the end of its holder is all there will be.
            let holder = holder(&workspace, &request.registration.session_id).await;
            let found = recovery::found(&workspace, &request).await;
            if let Some(word) = last_word(&request, &found) {
                return self.add(&request, word).await;
            }
            let Some(owner) = holder else { return };
            if evidence::is_open(&found.transcript)
                && let Some(owner) = owner
                && let Some(stop) = stop.take()
            {
                interrupt(&workspace, &request, &owner, stop).await;
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

/// Has the host cancel the turn. The transcript has just shown it to be the last one and open, and a host without a daemon begins no other:
/// whatever else holds the session by now does nothing when it is asked.
async fn interrupt(workspace: &Arc<Workspace>, request: &Request, owner: &Owner, stop: Stop) {
    let registration = &request.registration;
    if stop == Stop::Cancel {
        let (workspace, session, prompt) =
            (Arc::clone(workspace), registration.session_id.clone(), registration.prompt_id.clone());
        let wished = blocking(move || {
            let wish = Wish { session_id: &session, prompt_id: &prompt, at_ms: now_ms() };
            workspace.sink.cancel_wished(&wish);
        });
        // A wish that is not on record stops no cancel.
        let _ = wished.await;
    }
    workspace.hosts.interrupt(&workspace.layout.transcript(&registration.session_id), owner).await;
}
