//! How turns end, and the host with them.

use acp::{Message, Outcome};
use bytes::Bytes;

use super::written::{Failed, note_echo};
use super::{Awaited, Effect, Machine, Phase, Running, line_of};
use crate::exit::Exit;
use crate::turn::Ending;
use crate::wire::{self, Stamp, code};

impl Machine {
    /// The agent has answered the running prompt. The result is on disk before the daemon hears of it.
    pub(super) fn settle(&mut self, at_ms: u64, outcome: &Outcome<'_>, message: &Message) {
        let Some(mut running) = self.running.take() else { return };
        note_echo(&mut running);
        self.begin_pause(at_ms, &running);
        let line = if running.turn.is_none() {
            // A native agent has recorded its turn itself, and its word is not to be contradicted.
            line_of(message)
        } else {
            let (ending, line) = judge(&running, outcome, message);
            self.end_turn(at_ms, running, ending);
            line
        };
        self.tell_daemon(line);
        if self.phase == Phase::Lingering {
            self.leave(at_ms);
        }
    }

    pub(super) fn end_turn(&mut self, at_ms: u64, running: Running, ending: Ending) {
        if let Some(turn) = running.turn {
            self.late.turn_ended(turn.prompt_id(), running.witnessed.is_some());
            self.append(turn.end(at_ms, ending));
            self.record_idea();
        }
    }

    /// Ends the running turn with an error that is not the agent's. Gives the request to be answered.
    pub(super) fn fail_turn(&mut self, at_ms: u64, message: &str, stable_code: &str) -> Option<Failed> {
        let reach = self.reach();
        let running = self.running.take()?;
        let request = running.request.clone();
        // A prompt whose record was never confirmed was never handed on, and there is no turn to end.
        if running.undispatched.is_none() {
            self.end_turn(at_ms, running, Ending::Failed { message: message.into(), code: stable_code.into() });
        }
        Some(Failed { request, reach })
    }

    /// An answer could not be read to its end, and its id may have stood there. Whatever waits for an answer may wait for
    /// this one, so all of it fails: a request that nobody will answer is worse than one that is asked again.
    pub(super) fn answer_lost(&mut self, at_ms: u64, limit_bytes: usize) {
        let message = format!("the agent's answer is longer than the limit of {limit_bytes} bytes");
        let lost = wire::refusal(code::FRAME_TOO_LONG, &message, &message);
        if let Some(failed) = self.fail_turn(at_ms, &message, code::FRAME_TOO_LONG) {
            self.refuse_turn(&failed, lost.clone());
        }
        for request in [self.take_restore_request(), self.take_rewind_request()].into_iter().flatten() {
            self.refuse(&request, &lost);
        }
        // Nobody knows what the agent is set to, and the daemon not which session it has.
        let setting = self.take_setting_request();
        if let Some(request) = &setting {
            self.refuse(request, &lost);
        }
        for request in std::mem::take(&mut self.awaited).into_keys() {
            self.refuse(&request, &lost);
        }
        let replacing = self.take_greeting_request();
        if let Some(request) = &replacing {
            self.refuse(request, &lost);
        }
        if self.phase == Phase::Lingering || replacing.is_some() || setting.is_some() {
            self.over();
        }
    }

    /// The daemon ends the session.
    pub(super) fn close(&mut self, at_ms: u64, closing: &wire::Closing) {
        let wire::Closing { reason, message } = closing;
        if let Some(failed) = self.fail_turn(at_ms, message, reason) {
            self.refuse_turn(&failed, wire::refusal(reason, message, message));
        }
        self.over();
    }

    /// Somebody ends the host.
    pub(super) fn terminated(&mut self, at_ms: u64) {
        let message = "the host was told to end before the turn settled";
        if let Some(failed) = self.fail_turn(at_ms, message, code::HOST_TERMINATED) {
            self.refuse_turn(&failed, wire::refusal(code::HOST_TERMINATED, message, message));
        }
        self.over();
    }

    /// Somebody wants the turn to stop that the host stays for without its daemon: the agent is told to cancel it, once, and has the rest of the
    /// linger to obey. Where a daemon is there, only that says what stops.
    pub(super) fn interrupted(&mut self, at_ms: u64) {
        if self.phase != Phase::Lingering {
            return;
        }
        let (Some(running), Some(session)) = (&mut self.running, &self.agent_session) else { return };
        if running.cancelled_at.is_none() {
            running.cancelled_at = Some(at_ms);
            let line = wire::cancel(session);
            self.tell_agent(line);
        }
    }

    /// Nobody can answer the agent any more, or take an answer of it. A running turn may still settle, so that its
    /// outcome is known to whoever comes next; there is nothing else to stay for.
    pub(super) fn daemon_gone(&mut self, at_ms: u64) {
        if self.phase == Phase::Lingering {
            return;
        }
        self.phase = Phase::Lingering;
        if self.running.is_none() {
            return self.leave(at_ms);
        }
        for (id, about) in std::mem::take(&mut self.asked) {
            self.answer_for_nobody(&id, about);
        }
        self.effects.push(Effect::Linger);
    }

    pub(super) fn linger_expired(&mut self, at_ms: u64) {
        if self.phase == Phase::Lingering {
            self.abandon_turn(at_ms);
            self.over();
        }
    }

    /// Nobody waits any longer for the turn of a daemon that died. Where the agent had been told to cancel it, that is what its end
    /// is called: the cancel was asked for, and the agent, which did not answer it, is ended by us.
    fn abandon_turn(&mut self, at_ms: u64) {
        let is_cancelled = |running: &mut Running| running.undispatched.is_none() && running.cancelled_at.is_some();
        if let Some(running) = self.running.take_if(is_cancelled) {
            let ending = Ending::Cancelled { cancelled_at: running.cancelled_at, agent_stop_reason: None };
            return self.end_turn(at_ms, running, ending);
        }
        self.fail_turn(at_ms, "the turn did not settle after the daemon had died", code::LINGER_EXPIRED);
    }

    /// The agent has ended by itself: what it still owed is answered, what it had said is kept.
    pub(super) fn agent_gone(&mut self, at_ms: u64, exit: &Exit) {
        let never_began = wire::agent_gone(code::AGENT_UNAVAILABLE, "the agent ended before it answered", exit);
        let was_asked = self.initialized
            || !self.awaited.is_empty()
            || self.is_changing_session()
            || self.replacement.is_some()
            || self.running.is_some();
        if !was_asked && self.phase == Phase::Serving {
            // The daemon has not asked for anything yet. It will, and then it is told.
            self.unavailable = Some(never_began);
            return;
        }
        if let Some(failed) = self.fail_turn(at_ms, &exit.details(), code::CHANNEL_CLOSED) {
            let error = wire::agent_gone(code::CHANNEL_CLOSED, "the agent ended during the turn", exit);
            self.refuse_turn(&failed, error);
        }
        let ended = wire::agent_gone(code::CHANNEL_CLOSED, "the agent ended", exit);
        let changing = [self.take_restore_request(), self.take_rewind_request(), self.take_setting_request()];
        for request in changing.into_iter().flatten() {
            self.refuse(&request, &ended);
        }
        if let Some(request) = self.take_replacement_request() {
            self.refuse(&request, &never_began);
        }
        for (request, awaited) in std::mem::take(&mut self.awaited) {
            match awaited {
                Awaited::Initialize => self.refuse(&request, &never_began),
                _ => self.refuse(&request, &ended),
            }
        }
        self.tell_daemon(wire::agent_exited(exit));
        self.over();
    }
}

/// What the agent's answer means, and the line that tells the daemon.
fn judge(running: &Running, outcome: &Outcome<'_>, message: &Message) -> (Ending, Bytes) {
    let id = &running.request;
    // Once a cancel was handed to the agent, no word of it makes the turn anything else: several say `end_turn` for an
    // answer that was cut.
    if let Some(cancelled_at) = running.cancelled_at {
        let agent_stop_reason = match outcome {
            Outcome::Result(result) => wire::stop_reason(result),
            Outcome::Error(_) => None,
        };
        let stamp = Stamp::Cancelled { agent_stop_reason: agent_stop_reason.clone() };
        let ending = Ending::Cancelled { cancelled_at: Some(cancelled_at), agent_stop_reason };
        return (ending, wire::cancelled(id, &stamp));
    }
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => {
            let (code, message_text) = wire::code_and_message(error);
            return (Ending::Failed { message: message_text, code }, line_of(message));
        }
    };
    match wire::stop_reason(result) {
        // Nobody here cancelled, yet the agent did not finish. To call that completed would be a wrong word.
        Some(reason) if reason == "cancelled" => {
            let stamp = Stamp::Cancelled { agent_stop_reason: Some(reason.clone()) };
            let ending = Ending::Cancelled { cancelled_at: None, agent_stop_reason: Some(reason) };
            (ending, wire::stamped(id, result, &stamp))
        }
        Some(reason) => (Ending::Completed { stop_reason: reason }, wire::stamped(id, result, &Stamp::Completed)),
        None => {
            let text = "the agent answered the prompt without a stop reason";
            let error = wire::refusal(code::INVALID_ANSWER, text, text);
            let ending = Ending::Failed { message: text.to_owned(), code: code::INVALID_ANSWER.to_owned() };
            (ending, acp::compose::error_response(id, &error))
        }
    }
}
