//! What is said after a crash, as sentences: what the row is, what was found, and what is said.
//!
//! A transcript is a line of records behind the armed tail: `U(p1)` our question, `U(p2)`, `U(-)` others', `U(p1 other)` and `U(p1 untold)`
//! one with our id and another or an unknown text; `T(p1 end_turn "hi")` a turn record, `T(p1 strayed …)` or `T(p1 unreadable …)`
//! one of an agent that spoke outside of its turns; `replaced`; `new writer`.

mod properties;
mod scenarios;

use super::{
    Found, LedgerFound, Loss, PromptSeen, Seen, TextSeen, TranscriptFound, TurnSeen, TurnState, Verdict, recover,
};
use crate::machine::tests::notation::{Played, outcome, play};
use crate::{Cause, Evidence, FinalText, Input, Request, Stage};

/// When turns of the notation ended, in epoch milliseconds.
pub(super) const ENDED_AT: u64 = 1_000;
/// When recovery looks, in epoch milliseconds.
pub(super) const NOW: u64 = 5_000;

/// A request that got as far as the script says, with a deadline where there is one.
pub(super) fn crashed(script: &str, deadline_at: Option<u64>) -> Request {
    let mut request = play(script).request;
    request.registration.deadline_at = deadline_at;
    request
}

pub(super) fn submitted() -> Request {
    crashed("registered > admitted > dispatched > written", None)
}

/// What is found when there is a transcript and nothing else.
pub(super) fn shown(records: &str) -> Found {
    Found { stage: None, ledger: LedgerFound::Open, transcript: TranscriptFound::Behind(transcript(records)) }
}

pub(super) fn lost(loss: Loss) -> Found {
    Found { stage: None, ledger: LedgerFound::Open, transcript: TranscriptFound::Lost(loss) }
}

pub(super) fn staged(word: &str, found: Found) -> Found {
    Found { stage: Some(Stage::new(outcome(word, Evidence::RpcResponse), ENDED_AT)), ..found }
}

/// What becomes of the request, in the notation of the machine; `wait` where that is the verdict.
pub(super) fn said(request: &Request, found: &Found) -> String {
    match recover(request, found, NOW) {
        Verdict::Wait => "wait".to_owned(),
        Verdict::Nothing => "nothing".to_owned(),
        Verdict::Decided(recovered) => {
            let mut played = Played { request: request.clone(), is_removed: false, ends: 0, late: Vec::new() };
            played.take(&Input::Recovered(recovered), NOW);
            assert_eq!(played.ends, 1, "a decision is an end");
            played.shown()
        }
    }
}

/// A submitted request, the transcript, and what is said.
pub(super) fn check(records: &str, expected: &str) {
    assert_eq!(said(&submitted(), &shown(records)), expected, "{records}");
}

pub(super) fn transcript(records: &str) -> Vec<Seen> {
    records.split(", ").filter(|word| !word.is_empty()).map(record).collect()
}

fn record(word: &str) -> Seen {
    let inner = |kind: &str| word.strip_prefix(kind).and_then(|rest| rest.strip_suffix(')'));
    if let Some(inner) = inner("U(") {
        let (id, prompt) = inner.split_once(' ').unwrap_or((inner, "same"));
        let prompt = match prompt {
            "same" => PromptSeen::Same,
            "other" => PromptSeen::Other,
            _ => PromptSeen::Untold,
        };
        return Seen::User { record_id: "u".to_owned(), prompt_id: stamp(id), prompt };
    }
    if let Some(inner) = inner("T(") {
        let (id, how) = inner.split_once(' ').unwrap_or_else(|| panic!("{word}"));
        return Seen::Turn { prompt_id: stamp(id), turn: turn(how) };
    }
    match word {
        "replaced" => Seen::Replaced,
        "new writer" => Seen::NewWriter,
        _ => panic!("{word:?} is no record"),
    }
}

fn stamp(id: &str) -> Option<String> {
    (id != "-").then(|| id.to_owned())
}

fn turn(how: &str) -> TurnSeen {
    let (is_strayed, how) = how.strip_prefix("strayed ").map_or((false, how), |how| (true, how));
    let (is_unreadable, how) = how.strip_prefix("unreadable ").map_or((false, how), |how| (true, how));
    let (state, stop_reason, text) = match how {
        "cancelled" => (TurnState::Cancelled, Some("cancelled"), TextSeen::None),
        "error" => (TurnState::Error, None, TextSeen::None),
        "closed" => (TurnState::Closed(Cause::SessionClosed), None, TextSeen::None),
        "unread" => (TurnState::Unread, None, TextSeen::None),
        "gone" => (TurnState::AgentGone, None, TextSeen::None),
        "untold \"hi\"" => (TurnState::Completed, None, TextSeen::Whole(FinalText::new("hi").unwrap())),
        "end_turn lost" => (TurnState::Completed, Some("end_turn"), TextSeen::Lost),
        "max_tokens lost" => (TurnState::Completed, Some("max_tokens"), TextSeen::Lost),
        _ => match how.split_once(" \"") {
            Some((reason, text)) => {
                let text = FinalText::new(text.trim_end_matches('"')).unwrap();
                (TurnState::Completed, Some(reason), TextSeen::Whole(text))
            }
            None => (TurnState::Completed, Some(how), TextSeen::None),
        },
    };
    let (stop_reason, ended_at_ms) = (stop_reason.map(str::to_owned), ENDED_AT);
    TurnSeen { state, stop_reason, text, is_strayed, is_unreadable, ended_at_ms }
}

#[test]
fn a_turn_that_is_exactly_ours_is_taken_as_it_says() {
    check("U(p1), T(p1 end_turn \"hi\")", "completed yes \"hi\"");
    check("U(p1), T(p1 max_tokens \"hi\")", "aborted max_tokens yes");
    check("U(p1), T(p1 cancelled)", "aborted turn_cancelled yes");
    check("U(p1), T(p1 error)", "aborted turn_error yes");
    check("U(p1), T(p1 closed)", "aborted session_closed yes");
    check("U(p1), T(p1 end_turn)", "indeterminate no_final_message yes");
    check("U(p1), T(p1 end_turn lost)", "indeterminate final_text_unavailable yes");
    check("U(p1), T(p1 max_tokens lost)", "aborted max_tokens yes");
    check("U(p1), T(p1 untold \"hi\")", "aborted unspecified yes");
    check("U(p1), T(p1 end_turn \"hi\"), U(p2), T(p2 end_turn \"ho\")", "completed yes \"hi\"");
    check("T(p0 end_turn \"late\"), U(p1), T(p1 end_turn \"hi\")", "completed yes \"hi\"");
}

#[test]
fn a_record_that_is_not_ours_within_our_turn_is_a_mismatch() {
    check("U(p1), U(-), T(p1 end_turn \"hi\")", "indeterminate extra_user_message yes");
    check("U(p1), U(p1), T(p1 end_turn \"hi\")", "indeterminate extra_user_message yes");
    check("U(-), U(p1), T(p1 end_turn \"hi\")", "indeterminate extra_user_message yes");
    check("U(p2), T(p2 end_turn \"ho\"), U(p1), T(p1 end_turn \"hi\")", "indeterminate extra_user_message yes");
    check("U(p2), T(p2 end_turn \"ho\")", "indeterminate prompt_id_mismatch yes");
    check("U(p1), T(p2 end_turn \"ho\")", "indeterminate prompt_id_mismatch yes");
    check("U(p1 other), T(p1 end_turn \"hi\")", "indeterminate prompt_mismatch yes");
    check("T(p9 end_turn \"hi\"), U(p1), T(p1 end_turn \"hi\")", "indeterminate baseline_moved yes");
}

#[test]
fn order_is_not_ownership() {
    check("U(-), T(- end_turn \"hi\")", "indeterminate unattributable yes");
    check("U(p1), T(- end_turn \"hi\")", "indeterminate unattributable yes");
    check("T(p1 end_turn \"hi\")", "indeterminate unattributable yes");
    check("U(p1 untold), T(p1 end_turn \"hi\")", "indeterminate unattributable yes");
    let found = Found { ledger: LedgerFound::Reconstructed, ..lost(Loss::Interrupted) };
    assert_eq!(said(&submitted(), &found), "indeterminate unattributable yes");
}

#[test]
fn what_says_nothing_of_our_turn_is_lost() {
    check("", "indeterminate daemon_lost yes (turn_not_shown)");
    check("U(p1)", "indeterminate daemon_lost yes (turn_interrupted)");
    check("U(p1), T(p1 gone)", "indeterminate daemon_lost yes (agent_gone)");
    check("U(p1), replaced, T(p1 end_turn \"hi\")", "indeterminate daemon_lost yes (history_replaced)");
    check("U(p1), new writer, T(p1 end_turn \"hi\")", "indeterminate daemon_lost yes (turn_interrupted)");
    for (loss, word) in [
        (Loss::Missing, "transcript_missing"),
        (Loss::Unreadable, "transcript_unreadable"),
        (Loss::MarkerAbsent, "marker_absent"),
        (Loss::StillWritten, "session_still_written"),
    ] {
        assert_eq!(said(&submitted(), &lost(loss)), format!("indeterminate daemon_lost yes ({word})"));
    }
}
