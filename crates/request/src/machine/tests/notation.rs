//! Scripts: what happens to a request, a word each, and what has become of it.
//!
//! `registered > admitted > dispatched > written > bound > end_turn "hi" = completed yes "hi"`

use crate::recovery::Loss;
use crate::{
    ArmedCursor, Baseline, Cause, Effect, Evidence, FinalText, Hash, Input, InputWritten, Late, Mismatch, Options,
    Outcome, Recovered, Refusal, Registration, Request, RequestId, Stage, State, step,
};

/// Plays the script before ` = ` and holds what has become of the request against what stands behind it.
pub(crate) fn check(case: &str) {
    let (script, expected) = case.split_once(" = ").unwrap_or_else(|| panic!("no ' = ' in {case}"));
    assert_eq!(play(script).shown(), expected.trim(), "{script}");
}

/// The same of many, a line each.
pub(crate) fn check_all(cases: &str) {
    let cases = cases.lines().map(str::trim).filter(|line| !line.is_empty());
    cases.for_each(check);
}

/// A request and all that came of it.
pub(crate) struct Played {
    pub(crate) request: Request,
    pub(crate) is_removed: bool,
    pub(crate) ends: usize,
    pub(crate) late: Vec<Late>,
}

/// The request that scripts begin with.
pub(crate) fn registered() -> Request {
    Request::new(Registration {
        request_id: RequestId::parse("r1").unwrap(),
        owner: "me".to_owned(),
        input_hash: Hash([1; 32]),
        hash_version: 1,
        session_id: "s1".to_owned(),
        incarnation_id: Some("i1".to_owned()),
        prompt_id: "p1".to_owned(),
        options: Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([2; 32]),
        prompt_bytes: 5,
        baseline: Baseline { prompt_id: Some("p0".to_owned()), turn: 3 },
        created_at: 1,
    })
}

/// Plays the words of a script, a millisecond each.
pub(crate) fn play(script: &str) -> Played {
    let mut words = script.split(" > ").map(str::trim);
    let mut request = registered();
    match words.next() {
        Some("registered") => (),
        Some("queued") => request.registration.options.queue = true,
        Some("registered without a process") => request.registration.incarnation_id = None,
        other => panic!("a script begins with 'registered', not with {other:?}"),
    }
    let mut played = Played { request, is_removed: false, ends: 0, late: Vec::new() };
    for (place, word) in words.enumerate() {
        played.take(&input(word), 10 + place as u64);
    }
    played
}

impl Played {
    /// One step, as a store performs it, and what must hold of every one.
    pub(crate) fn take(&mut self, input: &Input, at_ms: u64) {
        let before = self.request.clone();
        let effects = step(&before, input, at_ms);
        self.request.apply(&effects, at_ms);
        for effect in &effects {
            match effect {
                Effect::End(end) => {
                    self.ends += 1;
                    assert!(end.state.is_terminal());
                    assert_eq!(end.final_text.is_some(), end.state == State::Completed);
                    assert_eq!(end.code.is_none(), end.state == State::Completed);
                }
                Effect::Late(late) => self.late.push(late.clone()),
                Effect::Remove => self.is_removed = true,
                Effect::Advance(_) => (),
            }
        }
        let is_changed = self.request != before;
        assert_eq!(self.request.rev, before.rev + u64::from(is_changed), "{input:?}");
        assert!(!(is_changed && before.state.is_terminal()), "{input:?} changed an ended request");
        assert!(
            self.request.input_written == InputWritten::Yes || before.input_written != InputWritten::Yes,
            "{input:?}"
        );
        assert_eq!(self.request.final_message.is_some(), self.request.state == State::Completed);
        assert_eq!(self.request.ended_at.is_some(), self.request.state.is_terminal());
        assert!(self.request.evidence.is_some_and(Evidence::is_strong) || self.request.state != State::Completed);
    }

    /// State, code, whether it was written, the detail in brackets, the text; and what came after.
    pub(crate) fn shown(&self) -> String {
        let request = &self.request;
        if self.is_removed {
            return "removed".to_owned();
        }
        let mut words = vec![request.state.as_str().to_owned()];
        if request.state == State::Registered {
            words[0] = request.phase.as_str().to_owned();
        }
        words.extend(request.code.as_ref().map(|code| code.as_str().to_owned()));
        words.push(request.input_written.as_str().to_owned());
        words.extend(request.detail.as_ref().map(|detail| format!("({detail})")));
        words.extend(request.final_message.as_ref().map(|text| format!("{text:?}")));
        words.extend(self.late.iter().map(|late| {
            let said: serde_json::Value = serde_json::from_str(&late.payload).unwrap();
            let what = ["state", "input_written", "fact"].into_iter().find_map(|name| said[name].as_str());
            format!("+ late {} {}", late.kind.as_str(), what.unwrap_or("-"))
        }));
        words.join(" ")
    }
}

/// The input that a word is: a name, and in brackets what is known beside it.
pub(crate) fn input(word: &str) -> Input {
    let (name, known) = match word.strip_suffix(')').and_then(|word| word.split_once('(')) {
        Some((name, known)) => (name, known),
        None => (word, ""),
    };
    match name {
        "admitted" => Input::Admitted,
        "refused" => Input::Refused,
        "dropped" => Input::Dropped(refusal(known)),
        "dispatched" => dispatched(known),
        "written" => Input::Written,
        "write failed" => Input::WriteFailed { is_complete: known == "whole" },
        "bound" => Input::Bound { evidence: Evidence::UserRecord, user_record_id: some(known) },
        "accepted" => Input::Bound { evidence: Evidence::V2Accepted, user_record_id: some(known) },
        "first update" => Input::Bound { evidence: Evidence::FirstUpdate, user_record_id: None },
        "mismatch" => Input::Mismatch { fact: Mismatch::PromptMismatch, written: written(known) },
        "another process" => Input::Mismatch { fact: Mismatch::IncarnationChanged, written: written(known) },
        "session closed" => Input::SessionEnded { cause: Cause::SessionClosed, written: written(known) },
        "session rewound" => Input::SessionEnded { cause: Cause::SessionRewound, written: written(known) },
        "daemon stops" => Input::SessionEnded { cause: Cause::DaemonShutdown, written: written(known) },
        "agent exits" => Input::AgentExited { written: written(known) },
        "cancel" => Input::Cancel,
        "deadline" => Input::Deadline,
        "crash" => Input::Recovered(Recovered::Unsubmitted),
        "lost" => Input::Recovered(Recovered::DaemonLost(Loss::Interrupted)),
        "agent gone" => Input::Recovered(Recovered::DaemonLost(Loss::AgentGone)),
        "store made anew" => Input::Recovered(Recovered::StoreRecovered),
        "deadline passed" => Input::Recovered(Recovered::DeadlinePassed { late: None }),
        "unattributable" => Input::Recovered(Recovered::Unattributable),
        "text lost" => Input::Recovered(Recovered::FinalTextUnavailable),
        _ => told(word),
    }
}

/// An outcome, with a word before it that says who tells it.
fn told(word: &str) -> Input {
    if let Some(word) = word.strip_prefix("staged ") {
        return Input::Recovered(Recovered::Staged(Stage::new(outcome(word, Evidence::RpcResponse), 5)));
    }
    if let Some(word) = word.strip_prefix("on record ") {
        return Input::Recovered(Recovered::Exact(Stage::new(outcome(word, Evidence::TranscriptExact), 5)));
    }
    match word.strip_prefix("perhaps ") {
        Some(word) => Input::Settled(outcome(word, Evidence::FirstUpdate)),
        None => Input::Settled(outcome(word, Evidence::RpcResponse)),
    }
}

/// `rejected`, `failed`, `stopped`, or a stop reason with the text in quotation marks, of an agent that has `strayed` or not, or of a turn of which something
/// was `unreadable`; or `unread`.
pub(crate) fn outcome(word: &str, evidence: Evidence) -> Outcome {
    match word {
        "rejected" => Outcome::Rejected { category: None },
        "failed" => Outcome::Failed { category: None, evidence },
        "unread" => Outcome::Unread { evidence },
        "stopped" => Outcome::Stopped { cause: Cause::TurnCancelled, stop_reason: None, evidence: None },
        _ => {
            let (is_strayed, word) = word.strip_prefix("strayed ").map_or((false, word), |word| (true, word));
            let (is_unreadable, word) = word.strip_prefix("unreadable ").map_or((false, word), |word| (true, word));
            let (stop_reason, text) = word.split_once(" \"").unwrap_or((word, "\""));
            assert!(!stop_reason.contains(' '), "{word:?} is no word of the notation");
            let final_text = FinalText::new(text.trim_end_matches('"'));
            Outcome::Ended { stop_reason: stop_reason.to_owned(), final_text, evidence, is_strayed, is_unreadable }
        }
    }
}

fn dispatched(known: &str) -> Input {
    let mut baseline = registered().registration.baseline;
    let mut incarnation_id = Some("i1".to_owned());
    match known {
        "" => (),
        "behind another turn" => baseline.turn += 1,
        "to another process" => incarnation_id = Some("i2".to_owned()),
        _ => panic!("{known}"),
    }
    Input::Dispatched { armed: ArmedCursor { event_id: 7, tail: Some("t".to_owned()) }, baseline, incarnation_id }
}

fn refusal(known: &str) -> Refusal {
    match known {
        "" => Refusal::Removed(Cause::TurnCancelled),
        "rewound" => Refusal::Removed(Cause::SessionRewound),
        "tainted" => Refusal::SessionTainted,
        _ => panic!("{known}"),
    }
}

fn written(known: &str) -> InputWritten {
    InputWritten::parse(known).unwrap_or_else(|| panic!("'{known}' says nothing of the write"))
}

fn some(known: &str) -> Option<String> {
    (!known.is_empty()).then(|| known.to_owned())
}
