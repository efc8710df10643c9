//! Words that the agent says outside of its turns, as the transcript has to know of them.
//!
//! The daemon judges by what it hears; see the bridge. What it has heard is gone with it, and what is then read in the transcript must not
//! pass for an answer that is certain. So the result of a turn whose outcome is promised to somebody (a *witnessed* one) says that the
//! agent had spoken outside of its turns before, and what is said behind such a turn is noted at once. A native agent keeps its own
//! record, where every word stands in the turn that it was meant for.

use acp::{Message, Messages};

use super::{Effect, Machine, Running};
use crate::limits::LATE_WORDS_MS;
use crate::outgoing::Reach;
use crate::turn::json::Update;
use crate::wire;

/// What one process of the agent has said outside of its turns.
#[derive(Debug, Default)]
pub(super) struct Straying {
    /// It has said something there.
    pub(super) heard: bool,
    /// Turns that it was given.
    turns: u64,
    messages: Messages,
}

impl Machine {
    /// The agent is handed a prompt.
    pub(super) fn begin_listening(&mut self) {
        self.straying.turns += 1;
        if self.straying.heard {
            self.note_strayed();
        }
    }

    /// Listens to what nobody is shown: behind the answer that gave the session it need not be a replay. The daemon is told that something
    /// was said.
    pub(super) fn hear_behind_opening(&mut self, update: &Update, message: &Message) {
        let named = message.session_id();
        let is_unshown = self.replaying && self.restore.is_none() && (named.is_none() || named == self.agent_session);
        let is_of_made = named.is_some() && named.as_deref() == self.made_session();
        if update.is_words() && (is_unshown || is_of_made) {
            self.note_strayed();
            if !std::mem::replace(&mut self.straying.heard, true) {
                self.tell_daemon(wire::strayed());
            }
        }
    }

    /// The daemon has heard of the agent's session, and begins with a clean name where another process is in the agent's place. What that
    /// one has said before is told behind it.
    pub(super) fn tell_strayed(&mut self) {
        if self.straying.heard {
            self.tell_daemon(wire::strayed());
        }
    }

    /// Listens to what the agent says of its own session. Whether it is said in the running turn.
    pub(super) fn is_in_turn(&mut self, update: &Update, message: &Message) -> bool {
        let is_in_turn = self.may_be_in_turn();
        if !update.is_words() {
            return is_in_turn;
        }
        // Outside of a turn a message has the number that no turn has.
        let turn = if is_in_turn { self.straying.turns } else { 0 };
        let id = message.params().and_then(wire::message_id).filter(|_| !update.is_call());
        let is_of_another = id.is_some_and(|id| self.straying.messages.is_of_another_turn(&id, turn));
        if !is_in_turn || is_of_another {
            self.straying.heard = true;
            self.note_strayed();
        }
        is_in_turn
    }

    /// Hears words of which it is not certain that they are of the agent's session. They are on no record, and the daemon takes them for the
    /// running turn's; so nobody is certain of that one's answer.
    pub(super) fn hear_unclear(&mut self, update: &Update, message: &Message) {
        let is_in_turn = self.is_in_turn(update, message);
        self.hear_echo(update);
        if !is_in_turn {
            self.keep_late(update);
        } else if update.is_words() {
            self.note_strayed();
        }
    }

    /// Whether a turn runs of whose prompt the agent may have read anything.
    pub(super) fn may_be_in_turn(&self) -> bool {
        let is_unread = self.reach().is_some_and(|reach| reach != Reach::Whole);
        self.running.is_some() && !is_unread
    }

    /// What is promised to nobody is recorded as it always was.
    pub(super) fn note_strayed(&mut self) {
        let running = self.running.as_mut().filter(|running| running.witnessed.is_some());
        if let Some(turn) = running.and_then(|running| running.turn.as_mut()) {
            turn.note_strayed();
        }
    }

    /// Keeps what was said outside of a turn.
    pub(super) fn keep_late(&mut self, update: &Update) {
        if let Update::Text(chunk) = update {
            self.late.push(chunk);
        }
        if update.is_words() && self.running.is_none() {
            let first = self.late.take_first();
            self.append(first.into_iter().collect());
        }
    }

    /// The agent has answered.
    pub(super) fn begin_pause(&mut self, at_ms: u64, running: &Running) {
        let is_promised = running.witnessed.is_some() && running.turn.is_some();
        self.pause_until_ms = if is_promised { at_ms.saturating_add(LATE_WORDS_MS) } else { 0 };
    }

    /// There is nothing to stay for without a daemon, but for what may come late.
    pub(super) fn leave(&mut self, at_ms: u64) {
        if at_ms < self.pause_until_ms {
            self.effects.push(Effect::Pause);
        } else {
            self.over();
        }
    }

    /// Another process is in the agent's place.
    pub(super) fn forget_strayed(&mut self) {
        self.straying = Straying::default();
        // What is said from now on is said by another one than the last turn's.
        self.late.expect_no_more();
    }
}
