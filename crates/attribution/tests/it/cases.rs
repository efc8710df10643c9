//! The cases of the evidence rules, from the file that holds them. Cases about the turn status are the business of the
//! crate that has one.

use std::io::Write;

use attribution::{Basis, Plan};
use ledger::Record;
use serde_json::{Map, Value, json};

use crate::files::{Files, NOW_MS};

pub(crate) const CASES: &str = include_str!("../../../../fixtures/evidence/cases.jsonl");

struct Case {
    id: String,
    given: Map<String, Value>,
    expect: Map<String, Value>,
}

fn cases() -> Vec<Case> {
    let parse = |line: &str| {
        let case: Value = serde_json::from_str(line).unwrap();
        Case {
            id: case["id"].as_str().unwrap().to_owned(),
            given: case["given"].as_object().unwrap().clone(),
            expect: case["expect"].as_object().unwrap().clone(),
        }
    };
    CASES.lines().map(parse).filter(|case| !case.expect.contains_key("status")).collect()
}

#[test]
fn every_case_is_judged_as_it_is_written_down() {
    let cases = cases();
    assert_eq!(cases.len(), 128);
    let failures: Vec<_> = cases.iter().flat_map(failures).collect();
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}

/// What differs from what the case expects.
fn failures(case: &Case) -> Vec<String> {
    let files = files(case);
    let explanation: Value = serde_json::from_str(&files.explain().to_json()).unwrap();
    let plan = files.plan();
    let before = files.ledger_bytes();
    race(case, &files);
    let raced = files.ledger_bytes();
    let basis = plan.verdict.settled.first().map(|settled| settled.basis);
    let outcome = Plan::apply(&plan, files.ledger(), NOW_MS);
    let reason = match (outcome.withheld, basis) {
        (Some(withheld), _) => withheld.as_str(),
        (None, Some(basis)) => basis_name(basis),
        (None, None) => "",
    };
    let after = files.ledger_bytes();
    let terminals = ledger::recent_terminals(files.ledger()).unwrap_or_default();
    let found = json!({
        "records": explanation["records"],
        "dangling": explanation["dangling"],
        "tail_uuid": explanation["tailUuid"],
        "projection": explanation["projection"],
        "classify": explanation["classify"],
        "appended": outcome.appended.first().map(untimed),
        "reason": reason,
        "terminals": Some(terminals.iter().map(untimed).collect::<Vec<_>>()).filter(|found| !found.is_empty()),
        "sealed": after.len() > raced.len() && after[raced.len()] == b'\n',
    });
    assert!(after.starts_with(&before), "{}: a ledger only grows", case.id);
    assert!(outcome.appended.len() < 2, "{}: no case settles more than one prompt", case.id);
    let differs = |(key, expected): (&String, &Value)| {
        let found = &found[key.as_str()];
        (!is_same(found, expected)).then(|| format!("{} {key}: expected {expected}, found {found}", case.id))
    };
    case.expect.iter().filter_map(differs).collect()
}

fn basis_name(basis: Basis) -> &'static str {
    match basis {
        Basis::TurnResult => "turn_result",
        Basis::Answer => "completed",
        Basis::OpenPrompt => "interrupted_prompt",
        Basis::OpenCall => "interrupted_turn",
        Basis::CallWithoutId => "call_without_id",
        Basis::Wish => "wish",
    }
}

fn untimed(record: &Record) -> Value {
    let mut value: Value = serde_json::from_str(&record.to_line()).unwrap();
    value.as_object_mut().unwrap().remove("at");
    value
}

/// Equal as JavaScript sees it; a long list may be given by its length and its ends.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        (Value::Object(found), Value::Object(expected)) => {
            let same = |(key, expected)| found.get(key).is_some_and(|found| is_same(found, expected));
            found.len() == expected.len() && expected.iter().all(same)
        }
        (Value::Array(found), Value::Object(ends)) => {
            json!(found.len()) == ends["count"]
                && shortened(found.first()) == ends["first"]
                && shortened(found.last()) == ends["last"]
        }
        (found, expected) => found == expected,
    }
}

fn shortened(item: Option<&Value>) -> Value {
    let id = item.map_or(Value::Null, |item| item.get("promptId").unwrap_or(item).clone());
    match id.as_str() {
        Some(long) if long.len() > 1_000 => json!(format!("{}…({})", &long[..20], long.len())),
        _ => id,
    }
}

fn files(case: &Case) -> Files {
    let files = Files::with(bytes(case, "ledger").as_deref(), bytes(case, "transcript").as_deref());
    if case.given.contains_key("ledger_dir") {
        files.make_ledger_a_folder();
    }
    files
}

fn race(case: &Case, files: &Files) {
    let Some(race) = case.given.get("race").and_then(Value::as_str) else { return };
    let mut ledger = std::fs::OpenOptions::new().append(true).open(files.ledger().path()).unwrap();
    ledger.write_all(race.as_bytes()).unwrap();
}

/// The bytes of one of the two files; none is no file.
fn bytes(case: &Case, file: &str) -> Option<Vec<u8>> {
    let given = |what: &str| case.given.get(&format!("{file}_{what}"));
    if let Some(encoded) = given("b64").and_then(Value::as_str) {
        return Some(from_base64(encoded));
    }
    let lines: Vec<_> = given("lines")?.as_array()?.iter().flat_map(expanded).collect();
    let separator = given("sep").and_then(Value::as_str).unwrap_or("\n");
    let end = given("end").and_then(Value::as_str).unwrap_or(if lines.is_empty() { "" } else { "\n" });
    Some([lines.join(separator).as_str(), end].concat().into_bytes())
}

/// A line, or what one that is given in short stands for.
fn expanded(line: &Value) -> Vec<String> {
    let Some(short) = line.as_object() else { return vec![line.as_str().unwrap().to_owned()] };
    let text = short["line"].as_str().unwrap();
    if let Some(fill) = short.get("fill") {
        let count = usize::try_from(fill[1].as_u64().unwrap()).unwrap();
        return vec![text.replace('¤', &fill[0].as_str().unwrap().repeat(count))];
    }
    let repeated = |index: i64| text.replace("%d", &format!("{index:06}")).replace("%p", &format!("{:06}", index - 1));
    (0..short["repeat"].as_i64().unwrap()).map(repeated).collect()
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0, |bits, byte| bits << 6 | digit(*byte)) << (6 * (4 - group.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    bytes
}
