//! What can be seen of a session without anything happening to it.

use super::{Phase, Session};
use crate::input::Input;
use crate::moment::Steady;
use crate::overlay::{Ended, TurnView};
use crate::queue::{Admitted, Entry};
use crate::status::Status;
use crate::steering::SteeringView;
use crate::turn::Turn;
use crate::{InputWritten, LivePrompt, PendingPrompt, PromptState, Source, Title};

impl Session {
    /// What happens next by itself, and when, if nothing else happens before.
    pub(crate) fn due(&self) -> Option<(Steady, Input)> {
        match &self.phase {
            Phase::Open => {
                let own = self.next_deadline().into_iter().chain(self.next_denial()).chain(self.pause_end());
                own.chain(self.next_replacement()).min_by_key(|(due, _)| *due)
            }
            Phase::Closing { settle_until, .. } => Some((*settle_until, Input::SettleOver)),
            Phase::Draining { settle_until, .. } => {
                let chance = self.drain_cancel().map(|due| (due, Input::ChanceOver));
                let own = chance.into_iter().chain(self.pause_end());
                own.chain([(*settle_until, Input::SettleOver)]).min_by_key(|(due, _)| *due)
            }
            Phase::Ending { until, .. } => Some((*until, Input::EndOver)),
            Phase::Over => None,
        }
    }

    fn next_deadline(&self) -> Option<(Steady, Input)> {
        let running = self.turn.iter().filter(|turn| !turn.over).map(|turn| (&turn.entry, Some(turn.started.steady)));
        let deadline = |(entry, started): (&Entry, Option<Steady>)| {
            let (due, deadline) = entry.clocks.next(entry.queued.steady, started)?;
            Some((due, Input::DeadlineExpired { prompt_id: entry.prompt_id.clone(), deadline }))
        };
        let waiting = self.queue.iter().map(|entry| (entry, None));
        running.chain(waiting).filter_map(deadline).min_by_key(|(due, _)| *due)
    }

    fn next_denial(&self) -> Option<(Steady, Input)> {
        let (due, request_id) = self.permissions.due()?;
        Some((due, Input::PermissionExpired { request_id: request_id.clone() }))
    }

    /// Nothing can happen any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// The agent holds a prompt, or one waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some() || self.settling().is_some() || !self.queue.is_empty()
    }

    /// Prompts without an outcome: those that wait, and the one that runs.
    pub(super) fn unfinished(&self) -> usize {
        self.queue.len() + usize::from(self.running_turn().is_some())
    }

    /// The turn that runs, its outcome not being out: the agent works on it, or its witness does not have the outcome.
    fn running_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| !turn.over).or_else(|| self.settling())
    }

    /// The admission of a prompt that is unfinished, or ended lately.
    pub(super) fn admission(&self, prompt_id: &str) -> Option<&Admitted> {
        let turn = self.turn.as_ref().or_else(|| self.settling());
        let running = turn.map(|turn| &turn.entry).filter(|entry| *entry.prompt_id == *prompt_id);
        let live = running.or_else(|| self.queue.get(prompt_id)).map(|entry| &entry.admission);
        live.or_else(|| self.overlay.admission(prompt_id))
    }

    /// The list of unfinished prompts, the running one first. One that runs and was removed is not on it.
    pub(crate) fn pending(&self) -> Vec<PendingPrompt> {
        let running = self.running_turn().into_iter().filter(|turn| !turn.removed);
        let running = running.map(|turn| turn.entry.pending(PromptState::Running, turn.input_written()));
        let queued = self.queue.iter().map(|entry| entry.pending(PromptState::Queued, InputWritten::No));
        let said = self.steering.iter().map(|entry| entry.pending(PromptState::Queued, InputWritten::No));
        running.chain(queued).chain(said).collect()
    }

    /// What was said into the running turn, and what became of earlier messages.
    pub(crate) fn steering(&self) -> SteeringView {
        self.steering.view()
    }

    /// What is known of a prompt, or (`None`) of the running one, else the head of the queue, else the newest ended one.
    pub(crate) fn turn(&self, prompt_id: Option<&str>) -> TurnView {
        let running = self.running_turn();
        match prompt_id {
            None => TurnView {
                live: running.map(|turn| self.running(turn)).or_else(|| self.queue.head().map(Entry::queued)),
                overlay: self.overlay.newest().cloned(),
            },
            Some(prompt_id) => TurnView { live: self.live(prompt_id), overlay: self.overlay.get(prompt_id).cloned() },
        }
    }

    fn live(&self, prompt_id: &str) -> Option<LivePrompt> {
        let running = self.running_turn().filter(|turn| *turn.entry.prompt_id == *prompt_id);
        running.map(|turn| self.running(turn)).or_else(|| self.queue.get(prompt_id).map(Entry::queued))
    }

    fn running(&self, turn: &Turn) -> LivePrompt {
        LivePrompt { waiting: self.permissions.waiting(&turn.entry.prompt_id), ..turn.running() }
    }

    /// Whether the prompt waits or runs, its outcome not being out.
    pub(crate) fn is_unfinished(&self, prompt_id: &str) -> bool {
        let runs = self.running_turn().is_some_and(|turn| *turn.entry.prompt_id == *prompt_id);
        runs || self.queue.get(prompt_id).is_some()
    }

    /// Takes an outcome that a poll put together after so many rewinds. What is unfinished has no outcome, whatever the poll thinks, and what
    /// was read before the last rewind may be about a turn that is gone.
    pub(crate) fn absorb(&mut self, ended: Ended, rewinds: u64) {
        if rewinds == self.rewinds && self.live(&ended.prompt_id).is_none() {
            self.overlay.absorb(ended);
        }
    }

    /// Its records call the session so. What the agent has just called it is newer, unless a person chose this.
    pub(crate) fn entitle(&mut self, title: Title) {
        if title.is_chosen() || self.latest.title().is_none() {
            self.latest.name(title);
        }
    }

    /// The session comes from there.
    pub(crate) fn originate(&mut self, source: Source) {
        self.latest.originate(source);
    }

    /// What the session is called.
    pub(crate) fn title(&self) -> Option<&Title> {
        self.latest.title()
    }

    /// Whether the agent may call the session so.
    pub(crate) fn takes(&self, title: &Title) -> bool {
        self.latest.takes(title)
    }

    /// A client gave a sign of life.
    pub(crate) fn note_activity(&mut self, at_ms: u64) {
        self.active_at_ms = self.active_at_ms.max(at_ms);
    }

    /// Whether a permission request is or was one of this session's.
    pub(crate) fn knows_permission(&self, request_id: &str) -> bool {
        self.permissions.knows(request_id)
    }

    /// The newest updates that are state: raw JSON texts.
    pub(crate) fn state_updates(&self) -> Vec<String> {
        self.latest.updates().map(str::to_owned).collect()
    }

    /// The session at a glance. Who reads, who is registered and who asks is not the machine's business.
    pub(crate) fn status(&self, created_at_ms: u64, client_count: usize, subscriber_count: usize) -> Status {
        Status {
            inquiry_count: 0,
            background: None,
            title: self.latest.title().cloned(),
            source: self.latest.source().cloned(),
            created_at_ms,
            updated_at_ms: self.updated_at_ms,
            active_at_ms: self.active_at_ms,
            client_count,
            subscriber_count,
            has_active_prompt: self.is_busy(),
            pending_prompt_count: self.unfinished(),
            turn_error: self.turn_error.clone(),
            pending_permissions: self.permissions.pending(),
            recording: self.recording,
            closing: self.open().is_err(),
            late_answers: self.late_answers,
        }
    }
}
