//! How prompts and sessions end.

use super::witnessing::{told, written_when_answered};
use super::{Phase, Session};
use crate::effect::{Effect, Reply, Step, Tell, Word};
use crate::event::{Exit, News};
use crate::outcome::{Answer, judge};
use crate::overlay::Ended;
use crate::queue::Entry;
use crate::turn::Turn;
use crate::witness::Cause;
use crate::{Expiry, FlushOrigin, InputWritten, NotOpen, Reason, Terminal, TurnError};

/// How a prompt ended, and what goes with it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) terminal: Terminal,
    pub(super) input_written: InputWritten,
    /// Raw JSON object text.
    pub(super) branch_point: Option<String>,
    /// What ended it.
    pub(super) cause: Cause,
}

impl Outcome {
    /// The end of the session.
    fn flushed(origin: FlushOrigin, input_written: InputWritten) -> Self {
        let terminal = Terminal::Error { message: origin.message().to_owned(), code: Some(origin.code().to_owned()) };
        Self { terminal, input_written, branch_point: None, cause: Cause::Flushed(origin) }
    }

    /// A prompt that will not run.
    pub(super) fn unrun(cause: Cause) -> Self {
        let terminal = Terminal::Cancelled { agent_stop_reason: None };
        Self { terminal, input_written: InputWritten::No, branch_point: None, cause }
    }

    /// What an answer makes of its turn.
    pub(super) fn of_answer(turn: &Turn, answer: &Answer) -> Self {
        let (branch_point, said) = match answer {
            Answer::Settled { branch_point, .. } => (branch_point.clone(), None),
            Answer::Failed { input_written, .. } => (None, *input_written),
        };
        let terminal = judge(answer, turn.cancelled.is_some());
        let input_written = said.unwrap_or_else(|| written_when_answered(turn, answer));
        Self { terminal, input_written, branch_point, cause: Cause::Answered }
    }

    fn expiry(&self) -> Option<Expiry> {
        match self.cause {
            Cause::Expired(expiry) => Some(expiry),
            _ => None,
        }
    }
}

impl Session {
    /// The one door through which every prompt leaves: on record first, then in the overlay, then out to the readers.
    pub(super) fn end(&mut self, entry: &Entry, turn: Option<&Turn>, outcome: Outcome, step: &mut Step) {
        let (expiry, witnessed) = (outcome.expiry(), entry.witnessed.then(|| told(turn, &outcome)));
        let Outcome { terminal, input_written, branch_point, cause } = outcome;
        let prompt_id = entry.prompt_id.clone();
        let (recorded, at_ms) = (prompt_id.clone(), self.ledger_ms);
        let public = terminal.told();
        step.push(Effect::RecordTerminal { prompt_id: recorded, terminal: public.clone(), at_ms });
        self.forget_asked(&prompt_id);
        // Behind the ledger's line, and before anybody hears of the end.
        if let Some(told) = witnessed {
            step.witness(prompt_id.clone(), Word::Ended { cause, told });
        }
        match &public {
            Terminal::Completed { .. } => self.turn_error = None,
            Terminal::Cancelled { .. } => {}
            Terminal::Error { message, code } => {
                self.turn_error = Some(TurnError { message: message.clone(), code: code.clone() });
            }
        }
        let ended = Ended { expiry, ..ended(entry, turn, &terminal, input_written, step.at.at_ms) };
        self.overlay.insert(ended, Some(entry.admission.clone()));
        let news = match public {
            Terminal::Error { message, code } => News::TurnError { message, code, input_written, expiry },
            Terminal::Completed { stop_reason } => {
                News::TurnComplete { stop_reason, branch_point, cancel: None, input_written }
            }
            Terminal::Cancelled { .. } => {
                let cancel = turn.and_then(Turn::cancel_note);
                News::TurnComplete { stop_reason: "cancelled".to_owned(), branch_point: None, cancel, input_written }
            }
        };
        step.publish(Some(prompt_id), entry.originator.clone(), news);
    }

    pub(super) fn end_turn(&mut self, turn: &Turn, outcome: Outcome, step: &mut Step) {
        self.end(&turn.entry, Some(turn), outcome, step);
        if !turn.removed {
            leave_list(&turn.entry, step);
        }
    }

    /// Ends a turn that was answered.
    pub(super) fn conclude(&mut self, turn: &Turn, outcome: Outcome, step: &mut Step) {
        if matches!(outcome.terminal, Terminal::Error { .. }) && turn.cancelled.is_none() {
            let (prompt_id, originator) = (turn.entry.prompt_id.clone(), turn.entry.originator.clone());
            step.publish(Some(prompt_id), originator, News::PromptCancelled { forward_failed: true });
        }
        self.end_turn(turn, outcome, step);
    }

    pub(super) fn end_removed(&mut self, entry: &Entry, cause: Cause, step: &mut Step) {
        let news = News::PendingCompleted { removed: true };
        step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
        self.end(entry, None, Outcome::unrun(cause), step);
    }

    /// Ends every unfinished prompt with one code. The turn stays with the agent until it answers or is gone.
    fn flush(&mut self, origin: FlushOrigin, exit: Option<Exit>, step: &mut Step) {
        self.conclude_settling(step);
        if let Some(mut turn) = self.turn.take() {
            if !turn.over {
                self.flush_turn(&turn, origin, exit, step);
                turn.over = true;
            }
            self.turn = Some(turn);
        }
        self.flush_queue(origin, step);
    }

    fn flush_turn(&mut self, turn: &Turn, origin: FlushOrigin, exit: Option<Exit>, step: &mut Step) {
        // A host that lives to report the agent's end has handed the prompt over; of one that vanished nobody knows.
        let vanished =
            origin == FlushOrigin::ChannelClosed && exit.is_none() && turn.heard_at_ms.is_none() && !turn.written;
        let input_written = if vanished { InputWritten::Maybe } else { turn.input_written() };
        let cancelled = |forward_failed| News::PromptCancelled { forward_failed };
        let (prompt_id, originator) = (turn.entry.prompt_id.clone(), turn.entry.originator.clone());
        if origin == FlushOrigin::ChannelClosed && turn.cancelled.is_none() {
            step.publish(Some(prompt_id.clone()), originator.clone(), cancelled(true));
        }
        self.end_turn(turn, Outcome::flushed(origin, input_written), step);
        let is_news = turn.cancelled.is_none() || turn.stopped_by == Some(FlushOrigin::DaemonShutdown);
        if origin == FlushOrigin::DaemonShutdown && is_news {
            step.publish(Some(prompt_id), originator, cancelled(false));
        }
    }

    pub(super) fn flush_queue(&mut self, origin: FlushOrigin, step: &mut Step) {
        self.promote(step);
        while let Some(entry) = self.queue.pop() {
            self.end(&entry, None, Outcome::flushed(origin, InputWritten::No), step);
            leave_list(&entry, step);
        }
    }

    /// A client's close: what waits is flushed and what runs is cancelled and given time to settle.
    pub(super) fn close(&mut self, farewell: News, step: &mut Step) {
        if let Err(not_open) = self.open() {
            return step.reply(Reply::NotOpen(not_open));
        }
        step.reply(Reply::Done);
        let settle_until = step.at.steady.after(self.timeouts.settle_ms);
        self.phase = Phase::Closing { settle_until, farewell };
        self.refuse_permissions(|_| true, Reason::Flushed(FlushOrigin::SessionClosed), step);
        self.conclude_settling(step);
        self.flush_queue(FlushOrigin::SessionClosed, step);
        match &mut self.turn {
            Some(turn) if !turn.over => {
                if turn.cancelled.is_none() {
                    turn.stopped_by = Some(FlushOrigin::SessionClosed);
                }
                self.write_cancel(step);
            }
            Some(_) | None => self.tell_to_end(step),
        }
    }

    /// The turn did not settle in time.
    pub(super) fn stop_waiting_for_settle(&mut self, step: &mut Step) {
        match self.phase {
            Phase::Closing { .. } => {
                self.flush(FlushOrigin::SessionClosed, None, step);
                self.tell_to_end(step);
            }
            Phase::Draining { .. } => self.die_with_daemon(step),
            Phase::Open | Phase::Ending { .. } | Phase::Over => {}
        }
    }

    /// The last message to the agent of a closing session.
    pub(super) fn tell_to_end(&mut self, step: &mut Step) {
        if let Phase::Closing { farewell, .. } = &self.phase {
            let farewell = Some(farewell.clone());
            step.tell(Tell::Close(FlushOrigin::SessionClosed));
            self.phase = self.ending(farewell, step);
        }
    }

    pub(super) fn kill(&mut self, step: &mut Step) {
        match self.phase {
            Phase::Over => step.reply(Reply::NotOpen(NotOpen::Gone)),
            Phase::Ending { .. } => step.reply(Reply::Done),
            Phase::Open | Phase::Closing { .. } | Phase::Draining { .. } => {
                step.reply(Reply::Done);
                self.die(FlushOrigin::SessionKilled, "killed", step);
            }
        }
    }

    /// Ends all prompts and streams at once; only the agent has yet to go.
    pub(super) fn die(&mut self, origin: FlushOrigin, reason: &'static str, step: &mut Step) {
        self.refuse_permissions(|_| true, Reason::Flushed(origin), step);
        self.flush(origin, None, step);
        step.publish(None, None, News::SessionDied { reason, exit: None });
        step.push(Effect::EndStreams);
        step.tell(Tell::Close(origin));
        self.phase = self.ending(None, step);
    }

    /// The host says that it ends: nothing more is handed to it, and what waits is over now, as no word of it ever left. The
    /// end of the stream is still waited for, since it comes with the news of how the agent ended, but not without end.
    pub(super) fn await_loss(&mut self, step: &mut Step) {
        self.refuse_permissions(|_| true, Reason::Flushed(FlushOrigin::ChannelClosed), step);
        self.conclude_settling(step);
        self.flush_queue(FlushOrigin::ChannelClosed, step);
        self.phase = self.ending(Some(died(None)), step);
    }

    fn ending(&self, farewell: Option<News>, step: &Step) -> Phase {
        Phase::Ending { until: step.at.steady.after(self.timeouts.end_ms), farewell }
    }

    /// The agent's stream has ended, whoever wanted it.
    pub(super) fn lose_channel(&mut self, exit: Option<Exit>, step: &mut Step) {
        let origin = if self.is_draining() { FlushOrigin::DaemonShutdown } else { FlushOrigin::ChannelClosed };
        let farewell = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => return,
            Phase::Draining { .. } => Some(News::SessionDied { reason: "daemon_shutdown", exit: None }),
            Phase::Open | Phase::Ending { farewell: Some(News::SessionDied { .. }), .. } => Some(died(exit)),
            Phase::Closing { farewell, .. } => Some(farewell),
            Phase::Ending { farewell, .. } => farewell,
        };
        self.refuse_permissions(|_| true, Reason::Flushed(origin), step);
        self.flush(origin, exit, step);
        // No agent holds it any more: who waits for the session to be idle would wait for ever.
        self.turn = None;
        if let Some(farewell) = farewell {
            let by = match &farewell {
                News::SessionClosed { closed_by, .. } => closed_by.as_deref().map(Into::into),
                _ => None,
            };
            step.publish(None, by, farewell);
            step.push(Effect::EndStreams);
        }
        step.push(Effect::Forget);
    }
}

/// What readers hear of a session whose agent went away by itself.
fn died(exit: Option<Exit>) -> News {
    News::SessionDied { reason: "channel_closed", exit: exit.or(Some(Exit::UNKNOWN)) }
}

/// The list of waiting prompts hears of the end of those that it showed.
pub(super) fn leave_list(entry: &Entry, step: &mut Step) {
    if entry.waited {
        let news = News::PendingCompleted { removed: false };
        step.publish(Some(entry.prompt_id.clone()), entry.originator.clone(), news);
    }
}

fn ended(entry: &Entry, turn: Option<&Turn>, terminal: &Terminal, written: InputWritten, at_ms: u64) -> Ended {
    let completed = matches!(terminal, Terminal::Completed { .. });
    Ended {
        prompt_id: entry.prompt_id.to_string(),
        prompt_text: Some(entry.text.clone()),
        result_text: turn.filter(|_| completed).and_then(Turn::result_text),
        partial_text: turn.filter(|_| !completed).and_then(Turn::partial_text),
        queued_at_ms: Some(entry.queued.at_ms),
        started_at_ms: turn.map(|turn| turn.started.at_ms),
        ended_at_ms: at_ms,
        originator: entry.originator.as_deref().map(str::to_owned),
        terminal: terminal.clone(),
        input_written: Some(written),
        expiry: None,
    }
}
