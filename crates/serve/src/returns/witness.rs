//! The bridge's word on a prompt becomes the store's: every fact is handed on as it is told, in its order, and what must not go on before it
//! is on disk waits for that (return requests, section 2.6).

use std::sync::Arc;
use std::time::Duration;

use acp::Echoed;
use bridge::witness::{Cause, Dispatch, Ended, FinalText, Heard, Process, Settling};
use bridge::{FlushOrigin, InputWritten, Session, Terminal, Witness};
use request::store::{Applied, StoreError};
use request::{ArmedCursor, Baseline, Category, Evidence, Input, Mismatch, Outcome, Recovered, Stage};
use tokio::time::timeout;

use crate::clock::now_ms;
use crate::limits::STAGE_WAIT_MS;
use crate::returns::refusal;
use crate::returns::tracked::Entry;
use crate::returns::{Returns, asked, final_text, host_word};
use crate::tasks::blocking;

/// Who tells the requests of a daemon what becomes of their prompts.
pub(crate) struct Eyewitness(pub(crate) Arc<Returns>);

/// What was told of a dispatch, to be looked at elsewhere.
struct Told {
    baseline: Baseline,
    process: Option<Process>,
    last_event_id: u64,
}

impl Witness for Eyewitness {
    fn dispatching(&self, session: &str, prompt: &str, facts: Dispatch<'_>) {
        let told = Told {
            baseline: baseline(facts.baseline),
            process: facts.incarnation.cloned(),
            last_event_id: facts.last_event_id,
        };
        let (returns, session, prompt) = (Arc::clone(&self.0), session.to_owned(), prompt.to_owned());
        self.0.spawn(async move {
            let Some(session) = returns.session(&session) else { return };
            let goes = match returns.tracked.of_prompt(&prompt) {
                Some(entry) => returns.dispatch(&session, &entry, told).await,
                None => false,
            };
            session.dispatch(&prompt, goes);
        });
    }

    fn written(&self, _session: &str, prompt: &str) {
        self.0.tell(prompt, Input::Written);
    }

    fn heard(&self, _session: &str, prompt: &str, what: Heard<'_>) {
        match what {
            Heard::FirstUpdate => {
                self.0.tell(prompt, Input::Bound { evidence: Evidence::FirstUpdate, user_record_id: None });
            }
            Heard::UserMessage { message_id, content } => {
                let Some(entry) = self.0.tracked.of_prompt(prompt) else { return };
                if entry.hear_echo(message_id, &echoed_text(content)) == Echoed::Agrees {
                    let user_record_id = message_id.map(str::to_owned);
                    self.0.tell_of(&entry, Input::Bound { evidence: Evidence::UserRecord, user_record_id });
                }
            }
        }
    }

    fn settling(&self, session: &str, prompt: &str, outcome: Settling<'_>) {
        let answer = Answer::new(outcome);
        let (returns, session, prompt) = (Arc::clone(&self.0), session.to_owned(), prompt.to_owned());
        self.0.spawn(async move {
            let Some(session) = returns.session(&session) else { return };
            if let Some(entry) = returns.tracked.of_prompt(&prompt) {
                returns.stage(&session, &entry, answer).await;
            }
            session.confirm(&prompt);
        });
    }

    fn ended(&self, session: &str, prompt: &str, ending: Ended<'_>) {
        let Some(entry) = self.0.tracked.of_prompt(prompt) else { return };
        entry.note_prompt_over();
        let (terminal, input_written, text) = (ending.terminal, ending.input_written, ending.text);
        let Ended { strayed, unreadable, heard, stopped_by, incarnation, .. } = ending;
        let settling = Settling { terminal, input_written, text, strayed, unreadable, heard, stopped_by, incarnation };
        match input_of(ending.cause, terminal, input_written) {
            Ending::Nothing => self.0.tracked.end(&entry),
            // Its own end took it out of the queue.
            Ending::Fact(_) if ending.cause == Cause::TakenBack && entry.standing().is_over() => {
                self.0.tracked.end(&entry)
            }
            Ending::Fact(input) => self.0.finish(&entry, input),
            Ending::Answer => self.0.settle(session, &entry, Answer::new(settling)),
        }
    }

    fn late(&self, session: &str, prompt: &str, outcome: Settling<'_>) {
        let Some(entry) = self.0.tracked.of_prompt(prompt) else { return };
        match outcome.terminal.code().and_then(|code| host_word::input(code, written(outcome.input_written))) {
            Some(input) => self.0.tell_of(&entry, input),
            None => self.0.settle(session, &entry, Answer::new(outcome)),
        }
    }
}

/// The agent's answer, to be looked at elsewhere.
pub(crate) struct Answer {
    terminal: Terminal,
    input_written: InputWritten,
    text: FinalText,
    strayed: bool,
    unreadable: bool,
    stopped_by: Option<FlushOrigin>,
    process: Option<Process>,
}

impl Answer {
    fn new(settling: Settling<'_>) -> Self {
        Self {
            terminal: settling.terminal.clone(),
            input_written: settling.input_written,
            text: settling.text.clone(),
            strayed: settling.strayed,
            unreadable: settling.unreadable,
            stopped_by: settling.stopped_by,
            process: settling.incarnation.cloned(),
        }
    }

    /// The outcome, where nothing has to be read for it.
    fn outcome(&self) -> Option<Outcome> {
        let final_text = match &self.text {
            FinalText::Elsewhere => return None,
            FinalText::Whole(text) => request::FinalText::new(text),
            FinalText::None => None,
        };
        Some(self.outcome_with(final_text))
    }

    /// The outcome with this text.
    fn outcome_with(&self, final_text: Option<request::FinalText>) -> Outcome {
        let (evidence, is_strayed, is_unreadable) = (Evidence::RpcResponse, self.strayed, self.unreadable);
        match &self.terminal {
            Terminal::Completed { stop_reason } => {
                let stop_reason = stop_reason.clone();
                Outcome::Ended { stop_reason, final_text, evidence, is_strayed, is_unreadable }
            }
            Terminal::Cancelled { agent_stop_reason } => {
                let cause = self.stopped_by.and_then(host_word::cause).unwrap_or(request::Cause::TurnCancelled);
                // It may also have stopped by itself: its word is passed on then as any other one is.
                let stop_reason = agent_stop_reason.clone();
                let evidence = stop_reason.is_some().then_some(evidence);
                Outcome::Stopped { cause, stop_reason, evidence }
            }
            Terminal::Error { code: Some(code), .. } if host_word::is_unread(code) => Outcome::Unread { evidence },
            Terminal::Error { code, .. } => match code.as_deref().and_then(rejection) {
                Some(category) => Outcome::Rejected { category },
                None => Outcome::Failed { category: None, evidence },
            },
        }
    }
}

/// What an end is to the request.
enum Ending {
    /// It was said before.
    Nothing,
    /// One fact.
    Fact(Input),
    /// The answer of the agent, or of its host in the agent's place.
    Answer,
}

fn input_of(cause: Cause, terminal: &Terminal, input_written: InputWritten) -> Ending {
    let written = written(input_written);
    match cause {
        Cause::Dropped => Ending::Nothing,
        Cause::Answered => match terminal.code().and_then(|code| host_word::input(code, written)) {
            Some(input) => Ending::Fact(input),
            None => Ending::Answer,
        },
        Cause::TakenBack => Ending::Fact(Input::SessionEnded { cause: request::Cause::TurnCancelled, written }),
        Cause::Expired(_) => Ending::Fact(Input::Deadline),
        Cause::Flushed(origin) => Ending::Fact(match host_word::cause(origin) {
            Some(cause) => Input::SessionEnded { cause, written },
            None => Input::AgentExited { written },
        }),
    }
}

fn written(input_written: InputWritten) -> request::InputWritten {
    match input_written {
        InputWritten::No => request::InputWritten::No,
        InputWritten::Maybe => request::InputWritten::Maybe,
        InputWritten::Yes => request::InputWritten::Yes,
    }
}

fn baseline(baseline: &bridge::witness::Baseline) -> Baseline {
    Baseline { prompt_id: baseline.prompt_id.as_deref().map(str::to_owned), turn: baseline.turn }
}

/// The text of a content block that the agent echoes, as a user record would have it.
fn echoed_text(content: &str) -> String {
    transcript::block_text(&acp::lenient_value(content).unwrap_or_default())
}

/// The error numbers which mean that the call never started: unknown method, invalid parameters, not logged in.
fn rejection(code: &str) -> Option<Option<Category>> {
    match code {
        "-32601" | "-32602" => Some(None),
        "-32000" => Some(Some(Category::Auth)),
        _ => None,
    }
}

impl Returns {
    /// Hands a fact about a prompt to the store.
    fn tell(self: &Arc<Self>, prompt: &str, input: Input) {
        if let Some(entry) = self.tracked.of_prompt(prompt) {
            self.tell_of(&entry, input);
        }
    }

    /// The same, of a request. What comes of it is noted; a store in trouble keeps the fact and tries again.
    pub(crate) fn tell_of(self: &Arc<Self>, entry: &Arc<Entry>, input: Input) {
        self.apply(entry, input, |_| ());
    }

    /// The same, of the last fact about a prompt. Whoever waits for the end finds the request until the store has said it.
    fn finish(self: &Arc<Self>, entry: &Arc<Entry>, input: Input) {
        let (returns, ended) = (Arc::clone(self), Arc::clone(entry));
        self.apply(entry, input, move |_| returns.tracked.end(&ended));
    }

    /// The same, and `then` hears what came of it, on the store's own thread.
    pub(crate) fn apply(
        &self,
        entry: &Arc<Entry>,
        input: Input,
        then: impl FnOnce(Result<Applied, StoreError>) + Send + 'static,
    ) {
        let Ok(store) = self.store() else { return then(Err(StoreError::Closed)) };
        let noted = Arc::clone(entry);
        store.apply(entry.request_id.clone(), input, now_ms(), move |applied| {
            match &applied {
                Ok(applied) => noted.note(applied),
                Err(error) => {
                    tracing::error!(request = %noted.request_id, %error, "a fact about a return request is not on record");
                }
            }
            then(applied);
        });
    }

    /// The same, waited for.
    ///
    /// # Errors
    /// When the store does not take it.
    pub(crate) async fn applied(&self, entry: &Arc<Entry>, input: Input) -> Result<Applied, StoreError> {
        asked(|reply| self.apply(entry, input, reply)).await
    }

    /// Looks at everything once more and puts the dispatch on record. Whether the prompt may go.
    async fn dispatch(self: &Arc<Self>, session: &Session, entry: &Arc<Entry>, told: Told) -> bool {
        let Some(workspace) = self.home(session.id()) else { return false };
        if session.rewinds() != entry.rewinds {
            let why = request::Refusal::Removed(request::Cause::SessionRewound);
            return self.turn_away(entry, why, refusal::busy(session.id())).await;
        }
        let noted = self.note_incarnation(&workspace, told.process.as_ref(), session.epoch()).await;
        let incarnation_id = match noted {
            Ok(incarnation_id) => incarnation_id,
            Err(error) => {
                return self
                    .turn_away(entry, request::Refusal::NotRecorded, refusal::unsent(refusal::of_store(&error)))
                    .await;
            }
        };
        if entry.expected_incarnation.is_some() && entry.expected_incarnation != incarnation_id {
            let refusal = refusal::stale(session.id(), incarnation_id.as_deref());
            return self.turn_away(entry, request::Refusal::StaleIncarnation, refusal).await;
        }
        let path = workspace.layout.transcript(session.id());
        let tail = blocking(move || transcript::tail_uuid(&path)).await.flatten();
        if entry.is_due() {
            // The deadline's own word, should its timer be late.
            let _ = self.applied(entry, Input::Deadline).await;
            return false;
        }
        entry.dispatched_to(incarnation_id.clone());
        let armed = ArmedCursor { event_id: told.last_event_id, tail };
        let input = Input::Dispatched { armed, baseline: told.baseline, incarnation_id };
        match self.applied(entry, input).await {
            Ok(applied) => !applied.is_removed && !applied.request.state.is_terminal(),
            Err(error) => {
                self.turn_away(entry, request::Refusal::NotRecorded, refusal::unsent(refusal::of_store(&error))).await
            }
        }
    }

    /// Ends a request whose prompt is not sent: there never was one where its caller still waits, and it has failed where nobody does.
    async fn turn_away(
        self: &Arc<Self>,
        entry: &Arc<Entry>,
        why: request::Refusal,
        refusal: crate::refusal::Refusal,
    ) -> bool {
        if entry.queue {
            self.tell_of(entry, Input::Dropped(why));
        } else {
            self.refuse(entry, refusal).await;
        }
        false
    }

    /// Puts an answer on record before anything else knows it. A store that does not take it keeps it in mind and goes on trying, and holds
    /// the prompt's own end back only for a while.
    async fn stage(self: &Arc<Self>, session: &Session, entry: &Arc<Entry>, answer: Answer) {
        if self.contradiction(entry, &answer).is_some() {
            return;
        }
        let Some(outcome) = self.outcome(session.id(), entry, answer).await else { return };
        let Ok(store) = self.store() else { return };
        let staged = asked(|reply| store.stage(entry.request_id.clone(), Stage::new(outcome, now_ms()), reply));
        match timeout(Duration::from_millis(STAGE_WAIT_MS), staged).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!(request = %entry.request_id, %error, "an outcome is not on record"),
            Err(_) => tracing::warn!(request = %entry.request_id, "an outcome waits for the request store"),
        }
    }

    /// Puts the end on record.
    fn settle(self: &Arc<Self>, session: &str, entry: &Arc<Entry>, answer: Answer) {
        if let Some(fact) = self.contradiction(entry, &answer) {
            let written = written(answer.input_written);
            return self.finish(entry, Input::Mismatch { fact, written });
        }
        if let Some(outcome) = answer.outcome() {
            return self.finish(entry, Input::Settled(outcome));
        }
        let (returns, session, entry) = (Arc::clone(self), session.to_owned(), Arc::clone(entry));
        self.spawn(async move {
            let input = match returns.outcome(&session, &entry, answer).await {
                Some(outcome) => Input::Settled(outcome),
                None => Input::Recovered(Recovered::FinalTextUnavailable),
            };
            returns.finish(&entry, input);
        });
    }

    /// A fact that does not hold; none when all do.
    fn contradiction(&self, entry: &Entry, answer: &Answer) -> Option<Mismatch> {
        let process = answer.process.as_ref().and_then(|process| self.incarnation_id(process, &entry.life));
        if entry.incarnation_id() != process {
            return Some(Mismatch::IncarnationChanged);
        }
        match entry.echoed() {
            Echoed::Differs => Some(Mismatch::PromptMismatch),
            Echoed::Several => Some(Mismatch::ExtraUserMessage),
            Echoed::Agrees | Echoed::Unknown => entry.has_extra_message().then_some(Mismatch::ExtraUserMessage),
        }
    }

    /// The outcome. A text that is too long to be handed over is read from the transcript, where its host wrote it before it answered; none
    /// when it is not there.
    async fn outcome(&self, session: &str, entry: &Entry, answer: Answer) -> Option<Outcome> {
        if let Some(outcome) = answer.outcome() {
            return Some(outcome);
        }
        let path = self.home(session)?.layout.transcript(session);
        let prompt = entry.prompt_id.clone();
        let text = blocking(move || final_text::recorded(&path, &prompt)).await.flatten();
        text.map(|text| answer.outcome_with(Some(text)))
    }
}

#[cfg(test)]
mod tests;
