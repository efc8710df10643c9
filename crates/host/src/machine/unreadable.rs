//! What the agent writes and nobody can read.
//!
//! Words may be lost with it, so the answer of the turn in which it was written is not known to be whole: the daemon is told, and the result of a
//! turn whose outcome is promised to somebody says so. Outside of a turn it is as a stray word (`straying.rs`). Where it may have been
//! the answer itself the turn ends with an error, as nobody will answer again.

use acp::{Message, Unreadable, Whose};

use super::{Machine, Phase};
use crate::turn::json::Update;
use crate::wire::{self, code};

impl Machine {
    pub(super) fn hear_unreadable(&mut self, at_ms: u64, lost: &Unreadable) {
        let may_be_answer = self.running.as_ref().is_some_and(|running| lost.may_answer(&running.request));
        if may_be_answer && !self.is_answered_unread() {
            return self.answer_unreadable(at_ms);
        }
        self.lose_words();
    }

    /// Listens to what the agent says of its own session: of a text that is not just what it wrote, that much cannot be read.
    pub(super) fn hear_inexact(&mut self, update: &Update, message: &Message) {
        let is_own = self.whose(message) != Whose::Other;
        if matches!(update, Update::Text(_)) && is_own && !message.is_exact() {
            self.lose_words();
        }
    }

    /// Before there is a session there are no words of it, and what is read of it until its restore is answered is the history.
    fn lose_words(&mut self) {
        if self.agent_session.is_none() || self.restore.is_some() {
            return;
        }
        // The daemon listens for it only for a moment, and a disk may take longer.
        self.tell_daemon(wire::unreadable());
        if self.may_be_in_turn() {
            let running = self.running.as_mut().filter(|running| running.witnessed.is_some());
            if let Some(turn) = running.and_then(|running| running.turn.as_mut()) {
                turn.note_unreadable();
            }
            return;
        }
        self.straying.heard = true;
        self.note_strayed();
        if self.running.is_none() {
            let first = self.late.take_first();
            self.append(first.into_iter().collect());
        }
    }

    fn answer_unreadable(&mut self, at_ms: u64) {
        let message = "the agent's answer cannot be read";
        tracing::warn!("a line that may be the agent's answer cannot be read; its turn ends with that");
        if let Some(failed) = self.fail_turn(at_ms, message, code::UNREADABLE_ANSWER) {
            self.refuse_turn(&failed, wire::refusal(code::UNREADABLE_ANSWER, message, message));
        }
        if self.phase == Phase::Lingering {
            self.over();
        }
    }
}
