//! The document says neither more nor less than the code does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::DOCUMENT;
use crate::router;

fn document() -> Value {
    serde_json::from_slice(DOCUMENT).unwrap()
}

#[test]
fn every_route_stands_in_the_document_and_no_other_does() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let written = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    let written: BTreeSet<String> = written.collect();
    assert_eq!(written, router::routes().collect());
}

#[test]
fn every_parameter_of_a_path_is_described_under_its_name() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        let named: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let parameters = item["parameters"].as_array().cloned().unwrap_or_default();
        let described: Vec<&Value> = parameters.iter().map(|parameter| target(&document, parameter)).collect();
        let described: BTreeSet<&str> =
            described.iter().filter(|one| one["in"] == "path").filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(described, named, "{path}");
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    each(&document, &mut |value| {
        if value.get("$ref").is_some_and(Value::is_string) {
            assert!(!target(&document, value).is_null(), "{value}");
        }
    });
}

/// The refusals of one answer are told apart by their codes; a client branches on them.
#[test]
fn every_error_code_of_the_code_stands_in_the_document_and_no_other_does() {
    let document = document();
    let mut written = BTreeSet::new();
    each(&document["paths"], &mut |value| collect_codes(value, &mut written));
    each(&document["components"]["responses"], &mut |value| collect_codes(value, &mut written));
    assert_eq!(written, codes_of_the_sources());
}

#[test]
fn every_type_of_an_event_stands_in_the_document_and_no_other_does() {
    let document = document();
    let kinds = document["components"]["schemas"]["Event"]["oneOf"].as_array().unwrap();
    let written: Vec<_> = kinds.iter().map(|kind| kind["properties"]["type"]["const"].as_str().unwrap()).collect();
    let types: BTreeSet<_> = written.iter().map(ToString::to_string).collect();
    assert_eq!(types.len(), written.len(), "each once");
    let bridge = shipped("bridge/src/wire.rs");
    let elsewhere = [shipped("bridge/src/announcement.rs"), shipped("bridge/src/recording.rs")];
    let kinds = |text: &str| text.split("fn kind(").nth(1).unwrap().split("}\n\n").next().unwrap().to_owned();
    let mut told: BTreeSet<String> = words(&kinds(&bridge)).collect();
    told.extend(elsewhere.iter().flat_map(|text| words(&kinds(text)).collect::<Vec<_>>()));
    for text in
        [bridge, shipped("serve/src/wire.rs"), shipped("serve/src/routes/events.rs"), shipped("serve/src/sse.rs")]
    {
        for call in ["synthetic(\"", "synthetic_frame(\""] {
            told.extend(text.split(call).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    assert_eq!(types, told);
}

/// The core types of the wire rules, section 11, that something here can be the cause of. `session_branched` is sent by no peer.
const CORE_EVENTS: &[&str] = &[
    "session_update",
    "turn_complete",
    "turn_error",
    "prompt_cancelled",
    "pending_prompt_added",
    "pending_prompt_started",
    "pending_prompt_completed",
    "permission_request",
    "permission_resolved",
    "permission_already_resolved",
    "permission_partial_vote",
    "permission_forbidden",
    "session_closed",
    "session_died",
    "session_metadata_updated",
    "session_rewound",
    "user_shell_command",
    "user_shell_result",
    "mid_turn_message_injected",
    "approval_mode_changed",
    "model_switched",
    "model_switch_failed",
    "session_recording_degraded",
    "state_resync_required",
    "replay_complete",
    "session_snapshot",
    "slow_client_warning",
    "client_evicted",
    "stream_error",
    "history_truncated",
];

/// That a type which stands in the document is one that the sources send is what the test before this one holds.
#[test]
fn every_core_type_of_the_wire_that_has_a_cause_here_is_published() {
    let document = document();
    let kinds = document["components"]["schemas"]["Event"]["oneOf"].as_array().unwrap();
    let types: Vec<_> = kinds.iter().filter_map(|kind| kind["properties"]["type"]["const"].as_str()).collect();
    let missing: Vec<_> = CORE_EVENTS.iter().filter(|kind| !types.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// What an event may say stands under its name somewhere among the events.
#[test]
fn every_field_of_an_event_stands_in_the_document() {
    let document = document();
    let mut written = BTreeSet::new();
    for schema in ["Event", "Outcome"] {
        each(&document["components"]["schemas"][schema], &mut |value| {
            written.extend(value["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()));
        });
    }
    // Inside of an update, which has the agent's own form.
    written.extend(["sessionUpdate", "content", "source", "output", "outputTruncated"].map(str::to_owned));
    let bridge = ["wire", "announcement", "recording"].map(|file| shipped(&format!("bridge/src/{file}.rs"))).concat();
    let calls = ["text(", "raw(", "flag(", "number(", "number_or_null("]
        .into_iter()
        .flat_map(|call| bridge.split(call).skip(1));
    let said: BTreeSet<String> = calls.filter_map(|rest| words(rest.strip_prefix('"').map(|_| rest)?).next()).collect();
    assert!(said.len() > 40 && said.contains("expiredWhile"), "{said:?}");
    assert_eq!(said.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new());
    // What two frames of this crate say, and how a process ended.
    let elsewhere =
        ["wire.rs", "routes/events.rs", "sse.rs"].map(|file| shipped(&format!("serve/src/{file}"))).concat();
    let unsaid = written.difference(&said).filter(|field| !elsewhere.contains(&format!("\"{field}\"")));
    assert_eq!(unsaid.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn every_capability_tag_stands_in_the_document_and_no_other_does() {
    let document = document();
    let items = &document["components"]["schemas"]["Capabilities"]["properties"]["features"]["items"]["enum"];
    let written: BTreeSet<String> =
        items.as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned()).collect();
    let source = shipped("serve/src/routes/capabilities.rs");
    let tags = source.split("const TAGS").nth(1).unwrap().split("let workspace").next().unwrap();
    assert_eq!(written, words(tags).collect());
}

/// The text of a file of the crates, without its tests if they stand in it.
fn shipped(file: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)).unwrap();
    text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned()
}

/// What stands in quotes.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned)
}

/// What a reference leads to, or the value itself.
fn target<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).unwrap_or(&Value::Null),
        None => value,
    }
}

/// Shows `look` a value and everything in it.
fn each<'d>(value: &'d Value, look: &mut dyn FnMut(&'d Value)) {
    look(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| each(item, look)),
        Value::Object(fields) => fields.values().for_each(|field| each(field, look)),
        _ => {}
    }
}

fn collect_codes(value: &Value, codes: &mut BTreeSet<String>) {
    for listed in [&value["properties"]["code"]["enum"], &value["x-codes"]] {
        let words = listed.as_array().into_iter().flatten();
        codes.extend(words.map(|word| word.as_str().unwrap().to_owned()));
    }
}

/// The first word in quotes behind each of these is an error code.
const CODE_COMES_NEXT: &[&str] = &[
    "Refusal::new(",
    "Refusal::bad_request(",
    "Refusal::conflict(",
    "Self::new(",
    "Self::bad_request(",
    "Self::conflict(",
    "self.not_found(",
    "is_summary(fields, \"liveReplayMode\",",
    "is_summary(fields, \"compactedReplayMode\",",
    "Aside::new(",
    "flag(fields, \"queue\",",
    "flag(fields, \"cancelOnTimeout\",",
    "flag(&call.fields, \"interrupt\",",
    "whole(call, \"page\",",
    "flag_of(call, \"once\",",
    "forbidden(",
    "deadline(fields, \"runDeadlineMs\",",
    "deadline(fields, \"deadlineMs\",",
];

/// Codes that a crate below gives, and the file where they stand.
const CODES_FROM_BELOW: &[(&str, &[&str])] = &[
    (
        "transcript/src/snapshot.rs",
        &[
            "invalid_transcript_cursor",
            "transcript_page_too_large",
            "transcript_snapshot_unavailable",
            "transcript_too_large",
            "transcript_unreadable",
        ],
    ),
    ("bridge/src/shell/open.rs", &["agent_protocol_unsupported", "init_timeout", "session_restore_timeout"]),
];

fn codes_of_the_sources() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut codes = BTreeSet::new();
    for path in sources(&crates.join("serve/src")) {
        let text = fs::read_to_string(path).unwrap();
        let shipped = text.split("#[cfg(test)]").next().unwrap();
        codes.extend(CODE_COMES_NEXT.iter().flat_map(|before| shipped.split(before).skip(1)).filter_map(code_at));
    }
    for (file, below) in CODES_FROM_BELOW {
        let text = fs::read_to_string(crates.join(file)).unwrap();
        for code in *below {
            assert!(text.contains(&format!("\"{code}\"")), "{file} gives {code} no more");
            codes.insert((*code).to_owned());
        }
    }
    codes
}

/// The code among the first arguments: a word in quotes, before which at most a status stands.
fn code_at(arguments: &str) -> Option<String> {
    let (before, rest) = arguments.split_once('"')?;
    let only_a_status =
        before.trim().trim_end_matches(',').rsplit("::").next()?.bytes().all(|byte| !byte.is_ascii_lowercase());
    let (word, _) = rest.split_once('"')?;
    let is_code = word.contains('_') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        || ["busy", "draining", "unauthorized"].contains(&word);
    (only_a_status && is_code).then(|| word.to_owned())
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs"))
        .collect()
}
