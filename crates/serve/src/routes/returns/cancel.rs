//! Ending a request: its record, and with `interrupt` its agent's turn (return requests, section 2.13).

use std::sync::Arc;

use hyper::StatusCode;
use request::store::StoreError;
use request::{Input, Phase, Request, RequestId};

use crate::clock::now_ms;
use crate::dispatch::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::returns::{Returns, asked, refusal};
use crate::routes::returns::{flag, named, receipt, row};

/// `POST /return-requests/:rid/cancel`. It never waits for the agent; with `interrupt` the agent is told to stop too.
pub(crate) async fn post(call: &Call<'_>) -> Result<Reply, Refusal> {
    let interrupt = flag(&call.fields, "interrupt", "invalid_interrupt")?;
    let returns = &call.daemon.returns;
    let request_id = named(call)?;
    let before = row(returns, &request_id).await?;
    if !before.state.is_terminal() {
        returns.cancel(&before, interrupt).await?;
    } else if interrupt {
        returns.interrupt_ended(&before).await?;
    }
    receipt(returns, StatusCode::OK, request_id, false).await
}

impl Returns {
    /// Ends a request as cancelled, unless it has ended. What waits in a queue goes; what runs goes on, unless it is to be interrupted.
    ///
    /// # Errors
    /// When that is not on record; and 429 `too_many_interrupts` when it is, and its turn is not told to stop.
    pub(crate) async fn cancel(self: &Arc<Self>, before: &Request, interrupt: bool) -> Result<(), Refusal> {
        let request_id = before.id();
        if interrupt {
            self.note_interrupt(before).await;
        }
        let Some(entry) = self.tracked.of_request(request_id) else {
            // Its prompt is an earlier life's: nothing of it is with any agent of ours, but a host of that life may be at it.
            let store = self.store()?;
            let may_run = before.phase >= Phase::Dispatching;
            let is_taken = !(interrupt && may_run) || self.want_interrupt(request_id);
            let applied = asked(|reply| store.apply(request_id.clone(), Input::Cancel, now_ms(), reply)).await;
            let applied = applied.map_err(|error| not_cancelled(request_id, &error))?;
            if interrupt && applied.event.is_none() {
                return self.interrupt_ended(&applied.request).await;
            }
            if !is_taken {
                return Err(refusal::too_many_interrupts(&applied.request));
            }
            return Ok(());
        };
        let applied = self.applied(&entry, Input::Cancel).await.map_err(|error| not_cancelled(request_id, &error))?;
        if applied.event.is_none() {
            if interrupt {
                self.interrupt_ended(&applied.request).await?;
            }
        } else if let Some(session) = self.session(&entry.session_id) {
            if applied.request.phase < Phase::Dispatching {
                // One that ends with its session is gone all the same.
                let _ = session.remove(&entry.prompt_id, None);
            } else if interrupt {
                let _ = session.cancel(Some(&entry.prompt_id), None);
            }
        }
        Ok(())
    }
}

/// What is said of a cancel that is not on record. A request that was refused in that moment is none any more.
fn not_cancelled(request_id: &RequestId, error: &StoreError) -> Refusal {
    match error {
        StoreError::Unknown => refusal::unknown(request_id.as_str()),
        error => refusal::of_store(error),
    }
}
