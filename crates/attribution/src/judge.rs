//! The verdict: from the ledger and the evidence to an ending, or to the reason why there is none.
//!
//! Pure. The checks stand in the order of evidence rules, section 4, and the first one that fails names the reason.

use ledger::{Fact, Record, Terminal, Wish};
use transcript::{History, Interruption, Kind, Message, TurnResult, TurnState, classify};

use crate::admission::{Admission, ended_ids, open_admissions};
use crate::evidence::Evidence;
use crate::wished;
use crate::withheld::Withheld;

/// The code of a prompt whose daemon was lost in the middle of its turn.
pub const DAEMON_LOST: &str = "daemon_lost";
/// The stop reason of a turn that is known to have ended by what it left in the transcript.
pub const RECONSTRUCTED: &str = "reconstructed_from_transcript";
/// The code of a prompt that ran into its deadline.
pub(crate) const DEADLINE_EXCEEDED: &str = "prompt_deadline_exceeded";

/// How a prompt ended, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The prompt.
    pub prompt_id: String,
    /// The terminal.
    pub fact: Fact,
    /// How it is known.
    pub basis: Basis,
}

/// What a terminal rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// A turn result with the prompt's own id.
    TurnResult,
    /// The end of the history is an answer.
    Answer,
    /// The end of the history is a prompt that was not answered.
    OpenPrompt,
    /// The end of the history is a call that was not answered.
    OpenCall,
    /// The same, of a call that nobody could have answered, because it has no id.
    CallWithoutId,
    /// One of the last three, of a prompt whose cancel was wished.
    Wish,
}

/// What is to be said of the open prompts of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The prompts whose ending is known, in the order in which they first appear in the ledger.
    pub settled: Vec<Settled>,
    /// Why the rest stays unknown; none when there is no rest.
    pub withheld: Option<Withheld>,
}

/// Judges the open prompts of a ledger. `wishes` are those that count ([`ledger::Reading::open_wishes`]), `evidence` is none when
/// no transcript loads.
#[must_use]
pub fn judge(records: &[Record], wishes: &[&Wish], evidence: Option<&Evidence>) -> Verdict {
    let admissions = open_admissions(records);
    if admissions.is_empty() {
        return Verdict { settled: Vec::new(), withheld: Some(Withheld::NoDangling) };
    }
    let mut settled = Vec::new();
    let mut open = Vec::new();
    for admission in &admissions {
        match evidence.and_then(|evidence| evidence.exact_result(admission)) {
            Some(result) => settled.push(exactly(result)),
            None => open.push(admission),
        }
    }
    if open.len() > 1
        && let Some((place, cancelled)) = wished::among_several(records, wishes, &open, evidence, &settled)
    {
        settled.push(cancelled);
        open.remove(place);
    }
    let inferred = match open[..] {
        [] => return Verdict { settled, withheld: None },
        [target] => infer(records, target, evidence, &settled).and_then(|inferred| wished::heeded(inferred, wishes)),
        _ => Err(Withheld::SeveralDangling),
    };
    match inferred {
        Ok(inferred) => {
            settled.push(inferred);
            Verdict { settled, withheld: None }
        }
        Err(withheld) => Verdict { settled, withheld: Some(withheld) },
    }
}

/// A prompt's own outcome, as it stands (evidence rules, section 5).
fn exactly(result: &TurnResult) -> Settled {
    let (terminal, code, stop_reason) = match result.state {
        TurnState::Completed => (Terminal::Completed, None, result.stop_reason.clone()),
        TurnState::Cancelled => (Terminal::Cancelled, None, None),
        TurnState::Error => (Terminal::Error, result.error.as_ref().and_then(|error| error.code.clone()), None),
    };
    let fact = Fact::Terminal { terminal, code, stop_reason };
    Settled { prompt_id: result.prompt_id.clone(), fact, basis: Basis::TurnResult }
}

/// Judges the only open prompt by what the end of the transcript looks like.
fn infer(
    records: &[Record],
    target: &Admission,
    evidence: Option<&Evidence>,
    settled: &[Settled],
) -> Result<Settled, Withheld> {
    if last_open_admission(records).is_none_or(|last| last.prompt_id != target.prompt_id) {
        return Err(Withheld::AttributionGuard);
    }
    infer_turn(records, target, evidence, settled)
}

/// Judges a prompt as if the end of the transcript were its turn's, unless something speaks against that.
pub(crate) fn infer_turn(
    records: &[Record],
    target: &Admission,
    evidence: Option<&Evidence>,
    settled: &[Settled],
) -> Result<Settled, Withheld> {
    let evidence = evidence.ok_or(Withheld::NoTranscript)?;
    check_position(records, target, evidence)?;
    check_time(records, target, evidence, settled)?;
    let history = evidence.history.as_ref().map_err(|_| Withheld::HistoryUnreadable)?;
    if evidence.has_unread_result(target) {
        return Err(Withheld::HistoryUnreadable);
    }
    let basis = weigh(history, evidence, target)?;
    if evidence.shows_foreign_prompt(target) {
        return Err(Withheld::ForeignPrompt);
    }
    // An id that may have been another one when it was written must not be answered for, nor one whose result is there and
    // may be of another admission: the end of the history might say something else than the result.
    if !target.has_exact_id || evidence.has_doubtful_result(target) {
        return Err(Withheld::AttributionGuard);
    }
    Ok(Settled { prompt_id: target.prompt_id.clone(), fact: basis.fact(), basis })
}

/// The last admission of a never-settled id. Of one open prompt it is that one's, unless the prompt had ended before.
pub(crate) fn last_open_admission(records: &[Record]) -> Option<&Record> {
    let ended = ended_ids(records);
    let mut never_settled =
        records.iter().filter(|record| record.is_in_flight() && !ended.contains(record.prompt_id.as_str()));
    never_settled.next_back()
}

fn check_position(records: &[Record], target: &Admission, evidence: &Evidence) -> Result<(), Withheld> {
    if evidence.lacks_marker(target) {
        return Err(Withheld::MarkerAbsent);
    }
    if evidence.nothing_follows_marker(target) {
        return Err(Withheld::MarkerNothingAfter);
    }
    if other_terminals(records, target).any(|(_, code)| code == Some(DEADLINE_EXCEEDED)) {
        return Err(Withheld::DeadlineFence);
    }
    if evidence.is_compressed_since(target) {
        return Err(Withheld::CompressionFence);
    }
    Ok(())
}

fn check_time(
    records: &[Record],
    target: &Admission,
    evidence: &Evidence,
    settled: &[Settled],
) -> Result<(), Withheld> {
    let tail_ms = evidence.last_write.and_then(|write| write.at_ms).ok_or(Withheld::NoVisibleWrite)? as f64;
    if tail_ms == target.at_ms.floor() {
        return Err(Withheld::SameMsAsAdmission);
    }
    if tail_ms <= target.at_ms {
        return Err(Withheld::TailBeforeAdmission);
    }
    // What is settled in this very judgement ends now, and everything written was written before now.
    if !settled.is_empty() {
        return Err(Withheld::TailBeforeOtherTerminal);
    }
    // A tail at the very beginning of time was written by a clock that had not been set.
    let latest_ms = other_terminals(records, target).map(|(at_ms, _)| at_ms).fold(0.0, f64::max);
    if tail_ms > latest_ms {
        return Ok(());
    }
    let is_same_ms = tail_ms == latest_ms.floor() && tail_ms > 0.0;
    Err(if is_same_ms { Withheld::SameMsAsOtherTerminal } else { Withheld::TailBeforeOtherTerminal })
}

/// Every terminal of another prompt: its time and its code.
fn other_terminals<'a>(records: &'a [Record], target: &'a Admission) -> impl Iterator<Item = (f64, Option<&'a str>)> {
    let others = records.iter().filter(|record| record.prompt_id != target.prompt_id);
    others.filter_map(|record| match &record.fact {
        Fact::Terminal { code, .. } => Some((record.at_ms, code.as_deref())),
        Fact::InFlight { .. } => None,
    })
}

/// What the end of the history says, or that it says nothing sure.
fn weigh(history: &History, evidence: &Evidence, target: &Admission) -> Result<Basis, Withheld> {
    // Two readings of a note about background work part: left in place it is an open prompt, taken out it is nothing.
    // Where they name the same ending, that is given (evidence rules, section 9).
    let notes = history.entries.iter().rev().take_while(|entry| entry.is_notification()).count();
    let said = &history.entries[..history.entries.len() - notes];
    // Of the end of a turn for a goal too: one reading knows it, and looks at what stands behind it; one does not.
    let behind_goal = &said[history.closed_by_goal.min(said.len())..];
    match (interruption(said), interruption(behind_goal)) {
        (Some(_), Some(basis)) => Ok(basis),
        (None, None) if notes == 0 && last_is_answer(history, evidence, target) => Ok(Basis::Answer),
        _ => Err(Withheld::TailIsNoAnswer),
    }
}

fn interruption(entries: &[Message]) -> Option<Basis> {
    match classify(entries) {
        Interruption::Prompt { .. } => Some(Basis::OpenPrompt),
        Interruption::Turn { .. } => Some(Basis::OpenCall),
        Interruption::None => {
            let last = entries.last()?;
            (last.role == transcript::Role::Model && last.has_call()).then_some(Basis::CallWithoutId)
        }
    }
}

/// Whether the last thing that anybody said is the agent's, a tool's, or a command that the session answered after the
/// admission. Without a marker that is a matter of time, and an answer that nobody can date is none.
fn last_is_answer(history: &History, evidence: &Evidence, target: &Admission) -> bool {
    let is_since =
        |at_ms: Option<i64>| target.marker.is_some() || at_ms.is_some_and(|at_ms| at_ms as f64 >= target.at_ms);
    match &evidence.last_visible {
        Some((Kind::Assistant | Kind::ToolResult, _)) => true,
        Some((Kind::User, uuid)) => {
            history.answered.iter().any(|command| command.uuid == *uuid && is_since(command.answered_at_ms))
        }
        Some((Kind::System, _)) | None => false,
    }
}

impl Basis {
    /// The terminal of a prompt that is judged by what the end of the transcript looks like.
    pub(crate) fn fact(self) -> Fact {
        match self {
            Self::TurnResult | Self::Answer => Fact::Terminal {
                terminal: Terminal::Completed,
                code: None,
                stop_reason: Some(RECONSTRUCTED.to_owned()),
            },
            Self::Wish => Fact::Terminal { terminal: Terminal::Cancelled, code: None, stop_reason: None },
            Self::OpenPrompt | Self::OpenCall | Self::CallWithoutId => Fact::Terminal {
                terminal: Terminal::Interrupted,
                code: Some(DAEMON_LOST.to_owned()),
                stop_reason: None,
            },
        }
    }

    /// The word for it: where the terminal is from.
    #[must_use]
    pub fn evidence(self) -> &'static str {
        match self {
            Self::TurnResult => "turn_result",
            Self::Answer | Self::OpenPrompt | Self::OpenCall | Self::CallWithoutId | Self::Wish => "inferred",
        }
    }
}
