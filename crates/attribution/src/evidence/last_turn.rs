//! Whose the turn at the end of the branch is, as far as stamps tell (evidence rules, section 5; design page of 2026-11-30).

use transcript::{Kind, Message, Record};

use super::{Moment, Place};

/// What makes the last turn another's than an admission's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Foreign<'a> {
    /// The last prompt: it is stamped with another id, or stands unstamped behind the admission's own.
    Prompt,
    /// The branch is cut in the middle of the turn, and what stands before the cut does not say whose it was.
    LostBeginning,
    /// A user record with this stamp, which a note hides or which is no prompt by its shape.
    Stamp(&'a str),
    /// The turn result of another prompt, behind the admission and the last question: that prompt went on with the turn without a question of
    /// its own.
    GoneOnWith(&'a str),
    /// What the session asked by itself behind the admission's own prompt.
    Session,
    /// A rewind behind the admission: its turn, if it had one, was taken back.
    TakenBack,
}

/// The end of the branch, from its last question on.
#[derive(Debug, Default)]
pub(super) struct LastTurn {
    /// The stamp of the newest real user record; the outer option is whether there is such a record, wherever it stands: what
    /// a turn wrote late is not the next one's, even when that one's admission came between.
    prompt: Option<Option<String>>,
    /// Where the same stands, when a note on background work that carries no stamp is passed over: it looks like a prompt, and
    /// the session may have written it into the turn of the prompt before it.
    question: Option<Place>,
    /// The newest stamp on a user record at or behind the question, whatever else that record is. So no note hides one.
    stamp: Option<String>,
    /// The newest turn result at or behind the question: whose it is, and when it was met.
    ended_by: Option<(String, Moment)>,
    /// Whether the session asked something by itself behind the question: its own turns carry no stamp.
    has_session_question: bool,
    /// Whether the branch is cut before any question was met, and the prompt before the cut is stamped, so that the stamp
    /// which is missing may be another one, or only looks like a prompt.
    has_lost_beginning: bool,
}

impl LastTurn {
    /// Whether nothing further back belongs to the turn.
    pub(super) fn has_question(&self) -> bool {
        self.question.is_some()
    }

    /// Whether what stands at this place was written behind the question.
    pub(super) fn holds(&self, place: Place) -> bool {
        self.question.is_none_or(|question| place < question)
    }

    /// Takes the next record towards the beginning.
    pub(super) fn take(&mut self, record: &Record, place: Place) {
        if record.kind == Kind::User && self.question.is_none() {
            self.take_oddity(record);
        }
        if record.is_real_prompt() {
            self.take_prompt(record, place);
        }
    }

    /// Takes the turn result of a prompt.
    pub(super) fn take_result(&mut self, prompt_id: &str, moment: Moment) {
        if self.question.is_none() && self.ended_by.is_none() {
            self.ended_by = Some((prompt_id.to_owned(), moment));
        }
    }

    /// Whose result ends the turn, if it is another's than this prompt's, and when it was met.
    pub(super) fn ended_by_other(&self, prompt_id: &str) -> Option<(&str, Moment)> {
        let (by, moment) = self.ended_by.as_ref()?;
        (by != prompt_id).then_some((by, *moment))
    }

    /// Takes the cut at the beginning of the branch, with the prompt that stands before it in the file. When no question was
    /// met the branch begins in the middle of a turn, and the record that is missing may have been its stamp.
    pub(super) fn take_cut(&mut self, before_cut: Option<&Record>, place: Place) {
        let Some(prompt) = before_cut else { return };
        self.has_lost_beginning = self.question.is_none() && (prompt.prompt_id.is_some() || is_note(prompt));
        self.take_prompt(prompt, place);
    }

    /// Whether the last prompt is stamped with this id.
    pub(super) fn is_stamped_with(&self, prompt_id: &str) -> bool {
        self.prompt.as_ref().is_some_and(|stamp| stamp.as_deref() == Some(prompt_id))
    }

    /// What makes the turn another's than that of this prompt; `is_own_shown` is whether the branch holds the prompt's own
    /// question behind its admission.
    pub(super) fn foreign(&self, prompt_id: &str, is_own_shown: bool) -> Option<Foreign<'_>> {
        if self.prompt.as_ref().is_some_and(|stamp| is_foreign(stamp.as_deref(), prompt_id, is_own_shown)) {
            return Some(Foreign::Prompt);
        }
        if self.has_lost_beginning {
            return Some(Foreign::LostBeginning);
        }
        match self.stamp.as_deref() {
            Some(stamp) if stamp != prompt_id => Some(Foreign::Stamp(stamp)),
            _ => (self.has_session_question && is_own_shown).then_some(Foreign::Session),
        }
    }

    /// Takes a user record at or behind the question. It may be none itself.
    fn take_oddity(&mut self, record: &Record) {
        if self.stamp.is_none() {
            self.stamp.clone_from(&record.prompt_id);
        }
        let is_reminder = record.message.as_ref().is_some_and(Message::is_reminder);
        self.has_session_question |= record.is_from_session && record.is_material() && !is_reminder;
    }

    fn take_prompt(&mut self, record: &Record, place: Place) {
        self.prompt.get_or_insert_with(|| record.prompt_id.clone());
        if self.question.is_none() && (!is_note(record) || record.prompt_id.is_some()) {
            self.question = Some(place);
        }
    }
}

/// Whether a last prompt with this stamp is another than this one. Without a stamp it is, where it stands behind this one's.
pub(super) fn is_foreign(stamp: Option<&str>, prompt_id: &str, is_own_shown: bool) -> bool {
    stamp.map_or(is_own_shown, |stamp| stamp != prompt_id)
}

/// Whether it is nothing but a note on background work.
fn is_note(record: &Record) -> bool {
    record.message.as_ref().is_some_and(Message::is_notification)
}
