//! Who carries events to one endpoint: asks what is to be done, does it, tells what became of it, one thing at a time.

use std::sync::Arc;
use std::time::Duration;

use request::Position;
use request::store::{Page, PageError, Stepped, Store, StoreError};
use request::webhook::{Effect, Endpoint, EndpointName, Fault, Input, Standing, Ticket, message_id, sign_with_all};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::post::{Letterhead, post};
use super::target::Target;
use super::{Outside, moment};
use crate::limits::WEBHOOK_STORE_PAUSE_MS;
use crate::returns::asked;
use crate::tasks::blocking;

/// One endpoint's courier.
pub(super) struct Courier {
    pub(super) store: Arc<Store>,
    pub(super) head: watch::Receiver<u64>,
    pub(super) outside: Outside,
    pub(super) name: EndpointName,
    pub(super) poke: Arc<Notify>,
}

/// There is nothing more to carry: the endpoint is gone, or the store.
struct Dismissed;

impl Courier {
    /// Serves until it is dismissed.
    pub(super) async fn serve(mut self) {
        while self.turn().await.is_ok() {}
    }

    /// What is to be done next, done.
    async fn turn(&mut self) -> Result<(), Dismissed> {
        let Stepped { endpoint, effects } = self.tell(Input::Due).await?;
        match effects.last() {
            Some(&Effect::Send { ticket, .. }) => {
                let became = self.carry(&endpoint, ticket).await?;
                self.tell(became).await?;
            }
            // It is not on its way with us, but with a life before this one; or the store took a note of which it could not say so.
            Some(Effect::Sleep { .. }) if endpoint.sending.is_some() => drop(self.tell(Input::Started).await?),
            Some(&Effect::Sleep { until_ms }) => self.rest(&endpoint, until_ms).await?,
            // An event was given up, or a gap was found: something else is next.
            _ => {}
        }
        Ok(())
    }

    /// Tells the endpoint's machine something, until it is on record. What cannot be told now is told later: nothing else goes to this
    /// endpoint meanwhile.
    async fn tell(&self, input: Input) -> Result<Stepped, Dismissed> {
        loop {
            let now = moment(&self.outside);
            match asked(|reply| self.store.step_endpoint(self.name.clone(), input, now, reply)).await {
                Ok(stepped) => return Ok(stepped),
                Err(StoreError::Busy | StoreError::Full | StoreError::Io(_)) => pause().await,
                Err(StoreError::Unknown | StoreError::Closed) => return Err(Dismissed),
                Err(error) => {
                    tracing::error!(%error, webhook = %self.name, "a webhook is not served any more");
                    return Err(Dismissed);
                }
            }
        }
    }

    /// One try.
    async fn carry(&self, endpoint: &Endpoint, ticket: Ticket) -> Result<Input, Dismissed> {
        let failed = |fault| Ok(Input::Failed { ticket, fault });
        let seq = ticket.sending.seq;
        let Some((stream_id, body)) = self.body(seq).await? else { return failed(Fault::Pruned) };
        // It was one when it was named.
        let Ok(target) = Target::parse(&endpoint.url) else { return failed(Fault::Unreachable) };
        let message_id = message_id(&stream_id, seq);
        let at_s = (self.outside.now_ms)() / 1_000;
        let signature = sign_with_all(endpoint.secrets(), &message_id, at_s, &body);
        let head = Letterhead { message_id, at_s, signature, user_agent: &self.outside.user_agent };
        Ok(match post(&*self.outside.dial, &target, &head, body, (self.outside.now_ms)()).await {
            Ok(answer) => Input::Answered { ticket, status: answer.status, retry_after_ms: answer.retry_after_ms },
            Err(fault) => Input::Failed { ticket, fault },
        })
    }

    /// The stream's id and the event's body; none when it was pruned.
    async fn body(&self, seq: u64) -> Result<Option<(String, String)>, Dismissed> {
        loop {
            let page = Page { limit: 1, ..Page::after(Position::Number(seq.saturating_sub(1))) };
            let store = Arc::clone(&self.store);
            match blocking(move || store.events(&page)).await {
                Some(Ok(page)) => {
                    let event = page.events.into_iter().next().filter(|event| event.seq == seq);
                    return Ok(event.map(|event| (page.next_cursor.stream_id, event.payload)));
                }
                Some(Err(PageError::Store(StoreError::Closed))) => return Err(Dismissed),
                Some(Err(PageError::Store(error))) => {
                    tracing::warn!(%error, webhook = %self.name, "an event cannot be read for a webhook; it is tried again");
                    pause().await;
                }
                Some(Err(_)) => return Ok(None),
                None => return Err(Dismissed),
            }
        }
    }

    /// Waits until there may be something to do.
    async fn rest(&mut self, endpoint: &Endpoint, until_ms: Option<u64>) -> Result<(), Dismissed> {
        let poked = self.poke.notified();
        if let Some(until_ms) = until_ms {
            let pause = Duration::from_millis(until_ms.saturating_sub((self.outside.now_ms)()));
            tokio::select! {
                () = sleep(pause) => {}
                () = poked => {}
            }
            return Ok(());
        }
        if endpoint.standing != Standing::Active {
            poked.await;
            return Ok(());
        }
        tokio::select! {
            newer = self.head.wait_for(|head| *head > endpoint.acked) => newer.map(drop).map_err(|_| Dismissed),
            () = poked => Ok(()),
        }
    }
}

async fn pause() {
    sleep(Duration::from_millis(WEBHOOK_STORE_PAUSE_MS)).await;
}
