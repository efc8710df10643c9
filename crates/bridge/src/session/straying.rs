//! Words that the agent says outside of its turns (*stray words*).
//!
//! Updates carry no turn. What is said while a turn runs is taken for that turn's, unless this agent is known to speak at other times:
//! while it holds no prompt, while it cannot have read any of the one that it is handed, or with a piece of a message that began in
//! another turn. Then every answer of it may have lost its last words to the next one, and nobody can tell. What one process of the agent
//! has shown is not forgotten as long as it lives; another one in its place begins with a clean name.
//!
//! What a subagent says, thoughts, plans and state are no words of an answer, whenever they come.

use acp::Messages;

use super::Session;
use crate::incoming::Update;

/// What one process of the agent has said outside of its turns.
#[derive(Debug, Default)]
pub(super) struct Straying {
    /// It has said something there.
    heard: bool,
    /// Turns that it was given.
    turns: u64,
    messages: Messages,
}

impl Straying {
    /// The agent is handed a prompt. Whether what it says in that turn may be another turn's from the beginning.
    pub(super) fn begin_turn(&mut self) -> bool {
        self.turns += 1;
        self.heard
    }
}

impl Session {
    /// Listens to what the agent says, before anything is taken for a turn's.
    pub(super) fn hear_stray(&mut self, update: &Update) {
        if !update.speech.is_words() {
            return;
        }
        let is_in_turn = self.turn.as_ref().is_some_and(|turn| turn.may_be_answered());
        // Outside of a turn a message has the number that no turn has.
        let turn = if is_in_turn { self.straying.turns } else { 0 };
        let id = update.message_id.as_deref();
        let is_of_another = id.is_some_and(|id| self.straying.messages.is_of_another_turn(id, turn));
        if !is_in_turn || is_of_another {
            self.has_strayed();
        }
    }

    /// The agent wrote something that cannot be read and may have been words, or that was not just what it wrote. In a turn that is a mark of
    /// this turn alone; outside of one it is a stray word.
    pub(super) fn hear_unreadable(&mut self) {
        match self.turn.as_mut().filter(|turn| turn.may_be_answered()) {
            Some(turn) => turn.unreadable = true,
            None => {
                self.note_unreadable();
                self.has_strayed();
            }
        }
    }

    /// The agent has said something outside of its turns.
    pub(super) fn has_strayed(&mut self) {
        self.straying.heard = true;
        self.note_strayed();
    }
}
