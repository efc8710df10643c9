//! A live session as the crates above hold it.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;
use uuid::Uuid;

use super::live::Live;
use super::subscription::{Subscribe, SubscribeError, Subscription};
use crate::bus::{Cursor, Refused};
use crate::compaction::Told;
use crate::effect::Reply;
use crate::input::Input;
use crate::limits::SUBSCRIBER_FRAMES_DEFAULT;
use crate::{
    AdmitError, Announcement, Ended, NotOpen, PendingPrompt, Prompt, Receipt, Source, Status, Steered, SteeringView,
    Title, TurnView, Vote, VoteOutcome, Voter,
};

/// A live session. Clones are the same session; it stays readable while it is being closed.
#[derive(Clone)]
pub struct Session {
    pub(super) live: Arc<Live>,
}

/// Why a session was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CloseError {
    /// It is gone already.
    #[error("session is gone")]
    NotFound,
    /// Somebody else is closing it.
    #[error("session is closing")]
    Closing,
}

/// What a detach left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detached {
    /// Registered clients left.
    pub client_count: usize,
    /// Open streams left.
    pub subscriber_count: usize,
    /// A prompt runs or waits.
    pub has_active_prompt: bool,
}

impl Session {
    /// Our id for it.
    pub fn id(&self) -> &str {
        &self.live.id
    }

    /// The agent's id for it. An agent that was replaced may have taken another with it.
    pub fn agent_session_id(&self) -> String {
        self.live.state.lock().agent.id.clone()
    }

    /// The folder the agent works in.
    pub fn workspace_cwd(&self) -> &str {
        &self.live.workspace_cwd
    }

    /// When this live entry was made, epoch milliseconds.
    pub fn created_at_ms(&self) -> u64 {
        self.live.created_at_ms
    }

    /// The agent's answer to the opening request, raw JSON object text, with what it was set to since.
    pub fn agent_state(&self) -> String {
        self.live.state.lock().agent.settings.answer().to_owned()
    }

    /// The newest of each kind of update that is state (commands, mode, options, title, usage): raw JSON texts for clients that
    /// join late.
    pub fn state_updates(&self) -> Vec<String> {
        self.live.state.lock().machine.state_updates()
    }

    /// The life of its event stream, a UUID.
    pub fn epoch(&self) -> &str {
        &self.live.epoch
    }

    /// The number of the newest event.
    pub fn last_event_id(&self) -> u64 {
        self.live.state.lock().bus.tip()
    }

    /// What a client that attaches is shown, and the cursor that goes on behind it.
    pub fn told(&self) -> Told {
        let state = self.live.state.lock();
        let (turns, journal) = state.compaction.told(&self.live.id);
        Told { turns, journal, last_event_id: state.bus.tip(), has_active_prompt: state.machine.is_busy() }
    }

    /// Registers a client: one registered before is counted again, any other gets a fresh `client_<uuid>`.
    pub fn register(&self, client_id: Option<&str>) -> String {
        let (fresh, now_ms) = (format!("client_{}", Uuid::new_v4()), self.live.clock.now_ms());
        let mut state = self.live.state.lock();
        state.machine.note_activity(now_ms);
        let (id, gone) = state.clients.register(client_id, fresh, now_ms);
        if let Some(client_id) = gone {
            self.live.step_locked(&mut state, Input::ClientGone { client_id }, now_ms);
        }
        id
    }

    /// Whether the client is registered.
    pub fn is_registered(&self, client_id: &str) -> bool {
        self.live.state.lock().clients.is_registered(client_id)
    }

    /// Notes that a client is there and gives the time of that, epoch milliseconds.
    pub fn heartbeat(&self, client_id: Option<&str>) -> u64 {
        let now_ms = self.live.clock.now_ms();
        let mut state = self.live.state.lock();
        state.machine.note_activity(now_ms);
        if let Some(client_id) = client_id {
            state.clients.see(client_id, now_ms);
        }
        now_ms
    }

    /// Takes one registration of a client back. What only a client that is gone could decide is refused.
    pub fn detach(&self, client_id: Option<&str>) -> Detached {
        let now_ms = self.live.clock.now_ms();
        let mut state = self.live.state.lock();
        if let Some(client_id) = client_id.filter(|client_id| state.clients.detach(client_id)) {
            self.live.step_locked(&mut state, Input::ClientGone { client_id: client_id.to_owned() }, now_ms);
        }
        Detached {
            client_count: state.clients.len(),
            subscriber_count: state.bus.subscriber_count(),
            has_active_prompt: state.machine.is_busy(),
        }
    }

    /// Accepts a prompt: it is in the ledger when this returns, and runs when its turn comes.
    ///
    /// # Errors
    /// See [`AdmitError`]; nothing has happened then.
    pub fn admit(&self, mut prompt: Prompt) -> Result<Receipt, AdmitError> {
        prompt.witnessed &= self.live.witness.is_some();
        let prompt_id = prompt.prompt_id.take().unwrap_or_else(|| Uuid::new_v4().to_string());
        let reply = self.live.step(|state| {
            let receipt = Receipt { prompt_id, last_event_id: state.bus.tip(), event_epoch: self.live.epoch.clone() };
            Input::Admit { prompt, receipt }
        });
        match reply {
            Some(Reply::Admitted(receipt)) => Ok(receipt),
            Some(Reply::NotAdmitted(error)) => Err(error),
            _ => Err(AdmitError::Gone),
        }
    }

    /// Says something into the running turn. What its agent does not ask for becomes a prompt under the id of the message.
    ///
    /// # Errors
    /// See [`AdmitError`]; nothing has happened then.
    pub fn steer(&self, mut message: Prompt) -> Result<Steered, AdmitError> {
        let prompt_id = message.prompt_id.take().unwrap_or_else(|| Uuid::new_v4().to_string());
        let reply = self.live.step(|state| {
            let receipt = Receipt { prompt_id, last_event_id: state.bus.tip(), event_epoch: self.live.epoch.clone() };
            Input::Steer { prompt: message, receipt }
        });
        match reply {
            Some(Reply::Steered(steered)) => Ok(steered),
            Some(Reply::NotAdmitted(error)) => Err(error),
            _ => Err(AdmitError::Gone),
        }
    }

    /// What was said into the running turn, and what became of earlier messages.
    pub fn steering(&self) -> SteeringView {
        self.live.state.lock().machine.steering()
    }

    /// Cancels the running prompt, if there is one and no other is named. Prompts that wait go on.
    ///
    /// # Errors
    /// When the session is closing or gone.
    pub fn cancel(&self, prompt_id: Option<&str>, by: Option<&str>) -> Result<(), NotOpen> {
        let input = Input::Cancel { prompt_id: prompt_id.map(str::to_owned), by: by.map(Into::into) };
        match self.live.step(|_| input) {
            Some(Reply::NotOpen(not_open)) => Err(not_open),
            _ => Ok(()),
        }
    }

    /// The unfinished prompts, the running one first.
    pub fn pending_prompts(&self) -> Vec<PendingPrompt> {
        self.live.state.lock().machine.pending()
    }

    /// Removes a prompt: one that waits is over at once and its slot is free; one that runs is cancelled. False for any other id.
    ///
    /// # Errors
    /// When the session is closing or gone.
    pub fn remove(&self, prompt_id: &str, by: Option<&str>) -> Result<bool, NotOpen> {
        let input = Input::Remove { prompt_id: prompt_id.to_owned(), by: by.map(Into::into) };
        match self.live.step(|_| input) {
            Some(Reply::NotOpen(not_open)) => Err(not_open),
            Some(Reply::Removed(removed)) => Ok(removed),
            _ => Ok(false),
        }
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    /// See [`SubscribeError`].
    pub fn subscribe(&self, how: &Subscribe) -> Result<Subscription, SubscribeError> {
        let same_epoch = how.epoch.as_ref().is_none_or(|epoch| *epoch == self.live.epoch);
        let cursor = how.cursor.map(|last_seen| Cursor { last_seen, same_epoch });
        let frames_max = if how.max_queued == 0 { SUBSCRIBER_FRAMES_DEFAULT } else { how.max_queued };
        let now_ms = self.live.clock.now_ms();
        let subscribed = self.live.state.lock().bus.subscribe(cursor, frames_max, now_ms);
        subscribed.map(|mailbox| Subscription { mailbox, live: Arc::downgrade(&self.live) }).map_err(|refused| {
            match refused {
                Refused::Full { limit } => SubscribeError::Limit { limit },
                Refused::Ended => SubscribeError::Gone,
            }
        })
    }

    /// Answers a permission request; whether that decides it is for the policy to say.
    pub fn vote(&self, request_id: &str, vote: &Vote, voter: &Voter) -> VoteOutcome {
        let input = Input::Vote { request_id: request_id.to_owned(), vote: vote.clone(), voter: voter.clone() };
        match self.live.step(|_| input) {
            Some(Reply::Voted(outcome)) => outcome,
            _ => VoteOutcome::Unknown,
        }
    }

    /// What is known of a prompt; without an id, of the running one, else the next one, else the newest ended one.
    pub fn turn(&self, prompt_id: Option<&str>) -> TurnView {
        let now_ms = self.live.clock.now_ms();
        self.live.state.lock().machine.turn(prompt_id).seen_at(now_ms)
    }

    /// Resolves when the prompt is not queued or running any more, at once if it never was. A session that ends settles all that
    /// it holds. Any number may wait for one prompt; each is woken once an ending and costs nothing in between.
    pub async fn settled(&self, prompt_id: &str) {
        self.live.settled(prompt_id).await;
    }

    /// How often the conversation was taken back in this life. To be asked before the transcript is read for [`Session::absorb`].
    pub fn rewinds(&self) -> u64 {
        self.live.state.lock().machine.rewinds()
    }

    /// Writes an outcome that the poll combined with the transcript back into the overlay. An unfinished prompt is left alone, and so is
    /// everything once the session was rewound again since `rewinds` was asked for.
    pub fn absorb(&self, ended: Ended, rewinds: u64) {
        self.live.state.lock().machine.absorb(ended, rewinds);
    }

    /// The session at a glance.
    pub fn status(&self) -> Status {
        self.live.status(&mut self.live.state.lock())
    }

    /// Tells all readers of a change that `by` brought about.
    pub fn announce(&self, announcement: Announcement, by: Option<&str>) {
        let input = Input::Announced { announcement, by: by.map(Into::into) };
        self.live.step(|_| input);
    }

    /// Calls a restored session as its records do; nobody is told. A change that somebody made is [announced](Self::announce).
    pub fn entitle(&self, title: Title) {
        self.live.state.lock().machine.entitle(title);
    }

    /// Notes where the session comes from.
    pub fn originate(&self, source: Source) {
        self.live.state.lock().machine.originate(source);
    }

    /// Closes the session: prompts that wait are flushed, the running one is cancelled and given time to settle, the agent is
    /// ended, `session_closed` is published and every stream ends. Resolves when all that is done; goes on when dropped.
    ///
    /// # Errors
    /// When it is gone or being closed by somebody else.
    pub async fn close(&self, reason: &str, closed_by: Option<&str>) -> Result<(), CloseError> {
        let input = Input::Close { reason: reason.to_owned(), closed_by: closed_by.map(str::to_owned) };
        let reply = self.live.step(|_| input);
        self.closed(reply).await
    }

    /// Closes the session if `is_due` says so of it at that very moment: nothing comes in between, so that a prompt is either in the
    /// session that `is_due` looks at or refused by the one that closes. Whether it was closed.
    ///
    /// # Errors
    /// When it is gone or being closed by somebody else.
    pub async fn close_if(&self, reason: &str, is_due: impl FnOnce(&Status) -> bool) -> Result<bool, CloseError> {
        let reply = {
            let mut state = self.live.state.lock();
            if !is_due(&self.live.status(&mut state)) {
                return Ok(false);
            }
            let input = Input::Close { reason: reason.to_owned(), closed_by: None };
            self.live.step_locked(&mut state, input, self.live.clock.now_ms())
        };
        self.closed(reply).await.map(|()| true)
    }

    /// Resolves when the close that was answered so is done.
    async fn closed(&self, reply: Option<Reply>) -> Result<(), CloseError> {
        match reply {
            Some(Reply::NotOpen(NotOpen::Closing)) => Err(CloseError::Closing),
            Some(Reply::NotOpen(NotOpen::Gone)) => Err(CloseError::NotFound),
            _ => {
                self.live.ended().await;
                Ok(())
            }
        }
    }

    /// Resolves when no prompt runs or waits, at once if none does.
    pub async fn idle(&self) {
        self.live.idle().await;
    }

    /// Gives the session up at once: every prompt ends as `session_killed`. Resolves when the agent's stream has ended.
    pub async fn kill(&self) {
        self.live.step(|_| Input::Kill);
        self.live.ended().await;
    }

    /// Resolves when the session is over, whatever ended it.
    pub async fn ended(&self) {
        self.live.ended().await;
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.live.id).finish_non_exhaustive()
    }
}
