use ledger::Durability;
use request::recovery::{Found, Verdict, recover};
use request::{ArmedCursor, Baseline, Input, Options, Registration, State};
use serde_json::{Value, json};
use transcript::{Body, Identity, TurnResult, Writer};

use super::*;
use crate::returns::fixture::registration;

const ASKED: &str = "what is it?";

/// A request whose prompt is with the agent.
fn submitted(texts: &[&str], tail: Option<&str>) -> Request {
    let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
    let mut options = Options::default();
    options.others.insert(RECORD_HASH.to_owned(), record_hash(&texts).to_string().into());
    let mut request = Request::new(Registration { prompt_id: "p".into(), options, ..registration("r") });
    let armed = ArmedCursor { event_id: 0, tail: tail.map(str::to_owned) };
    let dispatched = Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None };
    for input in [Input::Admitted, dispatched, Input::Written] {
        let effects = request::step(&request, &input, 2);
        request.apply(&effects, 2);
    }
    assert_eq!(request.state, State::Submitted);
    request
}

fn asked(prompt: Option<&str>, text: &str) -> Body {
    Body::User { prompt_id: prompt.map(str::to_owned), parts: vec![json!({ "text": text })] }
}

fn said(text: &str) -> Body {
    Body::Assistant { model: None, parts: vec![json!({ "text": text })] }
}

fn done(text: &str) -> Body {
    let mut result = TurnResult::new("p", transcript::TurnState::Completed, 9).with_result_text(text);
    result.stop_reason = Some("end_turn".into());
    result.into()
}

/// What is decided of the request when the transcript has these records.
fn decided(records: Vec<Body>, ledger: LedgerFound) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let identity = Identity { session_id: "s".into(), cwd: "/ws".into(), version: "0".into() };
    let mut writer = Writer::open(&path, identity, transcript::Durability::Process).unwrap();
    let records: Vec<_> = records.into_iter().map(|body| (5, body)).collect();
    writer.append_all(&records).unwrap();
    let request = submitted(&[ASKED], None);
    let found = Found { stage: None, ledger, transcript: in_transcript(&path, &request) };
    let Verdict::Decided(recovered) = recover(&request, &found, 10) else { panic!("nothing is decided") };
    let mut ended = request.clone();
    ended.apply(&request::step(&request, &Input::Recovered(recovered), 10), 10);
    let code = ended.code.as_ref().map_or("-", request::Code::as_str);
    let (detail, text) = (ended.detail.as_deref(), ended.final_message.as_deref());
    format!("{} {code} {} {}", ended.state.as_str(), detail.unwrap_or("-"), text.unwrap_or("-"))
}

#[test]
fn scenarios_30_31_32_a_turn_counts_only_when_it_is_exactly_ours() {
    let open = LedgerFound::Open;
    let exact = || vec![asked(Some("p"), ASKED), said("so"), done("so")];
    assert_eq!(decided(exact(), open), "completed - - so");
    assert_eq!(decided(exact(), LedgerFound::Ended), "completed - - so");
    let unstamped = || vec![asked(None, ASKED), said("so")];
    assert_eq!(decided(unstamped(), open), "indeterminate unattributable - -");
    assert_eq!(decided(unstamped(), LedgerFound::Reconstructed), "indeterminate unattributable - -");
    assert_eq!(decided(unstamped(), LedgerFound::Ended), "indeterminate final_text_unavailable - -");
    let extra = vec![asked(Some("p"), ASKED), asked(None, "and?"), said("so"), done("so")];
    assert_eq!(decided(extra, open), "indeterminate extra_user_message - -");
    let other = vec![asked(Some("p"), "what was it?"), said("so"), done("so")];
    assert_eq!(decided(other, open), "indeterminate prompt_mismatch - -");
    let silent = vec![asked(Some("p"), ASKED), done("")];
    assert_eq!(decided(silent, open), "indeterminate no_final_message - -");
}

#[test]
fn scenario_35_an_end_on_the_ledger_without_a_text_is_no_completion() {
    let open = || vec![asked(Some("p"), ASKED), said("so")];
    assert_eq!(decided(open(), LedgerFound::Ended), "indeterminate final_text_unavailable - -");
    assert_eq!(decided(open(), LedgerFound::Open), "indeterminate daemon_lost turn_interrupted -");
    let unrepeated = vec![asked(Some("p"), ASKED), said("no"), done("so")];
    assert_eq!(decided(unrepeated, LedgerFound::Open), "indeterminate final_text_unavailable - -");
}

#[test]
fn the_length_of_each_text_is_part_of_what_a_record_hashes_to() {
    let hash = |texts: &[&str]| record_hash(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    assert_ne!(hash(&["ab"]), hash(&["a", "b"]));
    assert_ne!(hash(&["", "ab"]), hash(&["ab", ""]));
    assert_eq!(hash(&["a", "b"]), hash(&["a", "b"]));
}

#[test]
fn a_request_whose_record_was_never_hashed_has_no_turn_of_its_own() {
    let mut request = submitted(&[ASKED], None);
    request.registration.options.others.insert(RECORD_HASH.to_owned(), Value::Null);
    let mut compared = Compared { record: RecordHash::default(), wanted: None };
    assert!(!compared.agrees(), "{request:?}");
}

#[test]
fn the_ledger_says_whether_an_end_was_seen_or_concluded() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(folder.path().join("l"), Durability::Process);
    assert_eq!(in_ledger(&ledger, "p"), LedgerFound::Open, "there is none");
    for (record, expected) in [
        (ledger::Record::in_flight("p", None, 1), LedgerFound::Open),
        (ledger::Record::completed("q", "end_turn", 2), LedgerFound::Open),
        (ledger::Record::completed("p", attribution::RECONSTRUCTED, 3), LedgerFound::Reconstructed),
        (ledger::Record::interrupted("p", attribution::DAEMON_LOST, 4), LedgerFound::Reconstructed),
        (ledger::Record::completed("p", "end_turn", 5), LedgerFound::Ended),
    ] {
        ledger.append(&record).unwrap();
        assert_eq!(in_ledger(&ledger, "p"), expected, "{record:?}");
    }
}

#[test]
fn scenarios_46_and_47_a_turn_whose_host_heard_of_another_prompt_is_no_answer_to_this_one() {
    for (contradiction, expected) in [
        (Contradiction::PromptMismatch, "indeterminate prompt_mismatch - -"),
        (Contradiction::ExtraUserMessage, "indeterminate extra_user_message - -"),
    ] {
        let mut result = TurnResult::new("p", transcript::TurnState::Completed, 7).with_result_text("so");
        (result.stop_reason, result.contradiction) = (Some("end_turn".into()), Some(contradiction));
        let records = vec![asked(Some("p"), ASKED), said("so"), result.into()];
        assert_eq!(decided(records, LedgerFound::Open), expected);
    }
}
