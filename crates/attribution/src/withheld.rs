//! Why no terminal is given.

use std::fmt;

/// The check that failed first: the reason why a prompt stays unknown (evidence rules, section 4). The names are part of
/// the format: they stand in the log and in what `turnd explain` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Withheld {
    /// The ledger is there and cannot be read.
    LedgerUnreadable,
    /// No prompt is open.
    NoDangling,
    /// Two or more prompts are open, and the tail has no sure owner.
    SeveralDangling,
    /// The last admission that was never settled is not the open prompt's, or what was written may be of another one:
    /// ids that read alike, a turn result that the clock puts before it.
    AttributionGuard,
    /// No transcript loads.
    NoTranscript,
    /// The dispatch marker is not on the active branch.
    MarkerAbsent,
    /// The dispatch marker is on the branch, and nothing visible was written behind it.
    MarkerNothingAfter,
    /// Another prompt ran into its deadline: its agent may have gone on writing.
    DeadlineFence,
    /// The history was compressed after the admission, and the turn may be gone from it.
    CompressionFence,
    /// Nothing visible was written, or nobody knows when.
    NoVisibleWrite,
    /// The last visible write has the millisecond of the admission, so that their order is not known.
    SameMsAsAdmission,
    /// The last visible write is older than the admission.
    TailBeforeAdmission,
    /// The last visible write has the millisecond of another prompt's terminal.
    SameMsAsOtherTerminal,
    /// The last visible write is older than another prompt's terminal, and so is that prompt's or an older one's.
    TailBeforeOtherTerminal,
    /// The model's history cannot be built, two readers of a damaged line build two that end otherwise, or the prompt's own
    /// result is there and cannot be read.
    HistoryUnreadable,
    /// Nothing is open in the history, and yet its end is no answer.
    TailIsNoAnswer,
    /// The turn at the end of the transcript is stamped with another prompt, was followed by one, or lost what would say whose
    /// it is.
    ForeignPrompt,
    /// A client wished it cancelled, and the history ends with an answer: that may have come before the agent heard of the wish,
    /// or be what it had said when it was cut.
    AnsweredOrCancelled,
    /// The ledger changed while the evidence was weighed.
    LedgerChanged,
}

impl Withheld {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Self; 19] = [
        Self::LedgerUnreadable,
        Self::NoDangling,
        Self::SeveralDangling,
        Self::AttributionGuard,
        Self::NoTranscript,
        Self::MarkerAbsent,
        Self::MarkerNothingAfter,
        Self::DeadlineFence,
        Self::CompressionFence,
        Self::NoVisibleWrite,
        Self::SameMsAsAdmission,
        Self::TailBeforeAdmission,
        Self::SameMsAsOtherTerminal,
        Self::TailBeforeOtherTerminal,
        Self::HistoryUnreadable,
        Self::TailIsNoAnswer,
        Self::ForeignPrompt,
        Self::AnsweredOrCancelled,
        Self::LedgerChanged,
    ];

    /// The name of the reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LedgerUnreadable => "ledger_unreadable",
            Self::NoDangling => "no_dangling",
            Self::SeveralDangling => "several_dangling",
            Self::AttributionGuard => "attribution_guard",
            Self::NoTranscript => "no_transcript",
            Self::MarkerAbsent => "marker_absent",
            Self::MarkerNothingAfter => "marker_nothing_after",
            Self::DeadlineFence => "deadline_fence",
            Self::CompressionFence => "compression_fence",
            Self::NoVisibleWrite => "no_visible_write",
            Self::SameMsAsAdmission => "same_ms_as_admission",
            Self::TailBeforeAdmission => "tail_before_admission",
            Self::SameMsAsOtherTerminal => "same_ms_as_other_terminal",
            Self::TailBeforeOtherTerminal => "tail_before_other_terminal",
            Self::HistoryUnreadable => "history_unreadable",
            Self::TailIsNoAnswer => "tail_is_no_answer",
            Self::ForeignPrompt => "foreign_prompt",
            Self::AnsweredOrCancelled => "answered_or_cancelled",
            Self::LedgerChanged => "ledger_changed",
        }
    }

    /// The same for a person, as the end of a sentence that begins with the prompt.
    #[must_use]
    pub fn explanation(self) -> &'static str {
        match self {
            Self::LedgerUnreadable => "the ledger cannot be read",
            Self::NoDangling => "no prompt is open",
            Self::SeveralDangling => "several prompts are open, and nothing says whose the end of the transcript is",
            Self::AttributionGuard => "what was written may belong to another admission",
            Self::NoTranscript => "there is no transcript of this session in this workspace",
            Self::MarkerAbsent => "the record that was last at its admission is not on the active branch",
            Self::MarkerNothingAfter => "nothing was said after the record that was last at its admission",
            Self::DeadlineFence => "another prompt ran into its deadline, and its agent may have gone on writing",
            Self::CompressionFence => "the history was compressed after its admission",
            Self::NoVisibleWrite => "nothing was said, or nobody knows when",
            Self::SameMsAsAdmission => "the last thing said has the very millisecond of its admission",
            Self::TailBeforeAdmission => "the last thing was said before its admission",
            Self::SameMsAsOtherTerminal => "the last thing said has the very millisecond of another prompt's end",
            Self::TailBeforeOtherTerminal => "the last thing was said before another prompt ended",
            Self::HistoryUnreadable => "what the transcript says of it cannot be read for sure",
            Self::TailIsNoAnswer => "nothing is left open, but the last thing said is no answer",
            Self::ForeignPrompt => "the last turn of the transcript is, or may be, another prompt's",
            Self::AnsweredOrCancelled => {
                "a client cancelled it, and the last thing said may be its whole answer or what a cut left of it"
            }
            Self::LedgerChanged => "the ledger changed while the evidence was weighed",
        }
    }
}

impl Withheld {
    /// What would resolve it, as a sentence for whoever has to go on. Of most reasons it says that nothing can, or only
    /// what may still be on its way.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::LedgerUnreadable => "make what is in the ledger's place a file that can be read, and ask again",
            Self::NoDangling => "there is nothing to resolve",
            Self::SeveralDangling => {
                "only a turn result with the prompt's own id tells them apart: if the session's host still runs it may \
                 yet write one, so ask again; otherwise nothing can"
            }
            Self::AttributionGuard => {
                "only a turn result from after this admission could tell: what else is written may belong to an earlier use \
                 of the id, or to another prompt; without one, nothing can"
            }
            Self::NoTranscript => {
                "bring the transcript back, or name the workspace in which it was begun; without it, nothing can"
            }
            Self::MarkerAbsent => {
                "bring back the transcript as it was at the admission; if it was rewound or cut since then, nothing can"
            }
            Self::MarkerNothingAfter => {
                "if the session's host still runs, what the agent says next may tell, so ask again; otherwise nothing can: \
                 whether the agent ever had the prompt left no trace"
            }
            Self::DeadlineFence => {
                "only a turn result with the prompt's own id could tell: in this session nothing is concluded from the end \
                 of the transcript any more; without one, nothing can"
            }
            Self::CompressionFence => {
                "only a turn result with the prompt's own id could tell: what the turn wrote may be in the summary alone; \
                 without one, nothing can"
            }
            Self::NoVisibleWrite => {
                "if the session's host still runs, what the agent says next may tell, so ask again; otherwise nothing can: \
                 there is nothing to judge by"
            }
            Self::SameMsAsAdmission => {
                "nothing can, unless the agent still writes: of two things in one millisecond nobody knows which was \
                 first"
            }
            Self::TailBeforeAdmission => {
                "if the session's host still runs, what the agent says next may tell, so ask again; otherwise nothing can: \
                 the end of the transcript was written before the prompt came"
            }
            Self::SameMsAsOtherTerminal => {
                "nothing can, unless the agent still writes: of two things in one millisecond nobody knows which was \
                 first, and what was said last may be the other prompt's"
            }
            Self::TailBeforeOtherTerminal => {
                "only a turn result with the prompt's own id could tell: what was said last may be the other prompt's; \
                 without one, nothing can"
            }
            Self::HistoryUnreadable => "mend the damaged record from a copy and ask again; without a copy, nothing can",
            Self::TailIsNoAnswer => {
                "if the session's host still runs, what the agent says next may tell, so ask again; otherwise nothing can: \
                 what stands last is neither a question nor an answer"
            }
            Self::ForeignPrompt => {
                "only a turn result with the prompt's own id could tell: what stands last may not have been written for this prompt; \
                 without one, nothing can"
            }
            Self::AnsweredOrCancelled => {
                "only a turn result with the prompt's own id could tell: the agent may have answered before it heard of the \
                 cancel; without one, nothing can, but nobody waits for it either"
            }
            Self::LedgerChanged => "ask again: what was appended meanwhile may say more",
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
