//! Sessions that other programs wrote, opened and judged. What is expected was read off the files by hand, and where the
//! program that wrote them told what it made of them, off that.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::{Files, NOW_MS};

/// Where the sessions lie that were recorded whole.
const OWN: &str = "../qwen-serve-own";

/// A recorded session: its folder, the workspace it was recorded in, how long its active branch is, and what is to be
/// said of its open prompts.
struct Recorded {
    folder: &'static str,
    session_id: &'static str,
    workspace: &'static str,
    branch: usize,
    verdict: &'static str,
}

const fn peer(folder: &'static str, session_id: &'static str, branch: usize, verdict: &'static str) -> Recorded {
    Recorded { folder, session_id, workspace: "/ws", branch, verdict }
}

const fn own(session_id: &'static str, branch: usize, verdict: &'static str) -> Recorded {
    Recorded { folder: OWN, session_id, workspace: "/tmp/ws-turns", branch, verdict }
}

/// Every recorded session. In the two forged ones the first prompt's own turn result settles it, and the second, which
/// the daemon that wrote the files left open too, stays unknown.
const RECORDED: &[Recorded] = &[
    peer("basic-turn", "6da266f5-5a0c-419d-99ca-b241f2aaaebe", 15, "no_dangling"),
    peer("turn-error", "335f5ca1-3924-42cf-b55f-d71e6cddebbf", 16, "no_dangling"),
    peer("permission", "5f534828-f551-4d9b-8885-58f46fc54724", 33, "no_dangling"),
    peer("tool-without-permission", "aa25a54d-c734-4475-87ab-600d1587e47b", 44, "no_dangling"),
    peer("close-with-queue", "7357df65-48fa-4f03-8acf-dda37ea0386b", 15, "no_dangling"),
    peer("agent-crash", "a073d4ad-1188-4e37-b8f9-c894a5010b12", 9, "no_dangling"),
    peer("daemon-sigkill", "eb5224ef-32dc-4de4-ae36-a30d50f1288e", 9, "30edbd05 interrupted daemon_lost"),
    peer("daemon-sigkill-forged-first", "eb5224ef-32dc-4de4-ae36-a30d50f1288e", 9, "bb841065 completed end_turn"),
    peer(
        "daemon-sigkill-forged-two",
        "eb5224ef-32dc-4de4-ae36-a30d50f1288e",
        9,
        "bb841065 completed end_turn, tail_before_other_terminal",
    ),
    peer("deadline-and-shutdown", "978d54ee-57c4-4b44-adcd-44750c738ff4", 13, "no_dangling"),
    peer("rewind", "213b8f69-39ad-451f-8db7-e74e00733512", 15, "no_dangling"),
    peer("branch-at-tip", "9091f166-976e-4b4c-8fff-5dfbf97d69d4", 19, "no_dangling"),
    peer("history-projection", "eb684cfd-dc5a-4bf5-ac78-f6279bf144a2", 49, "no_dangling"),
    peer("compression", "b2845cb8-8c13-43af-bfd9-d3d4cd79da4c", 34, "no_dangling"),
    peer("refused-slash-command", "9132f622-d537-4d0a-b5ef-9a582a3d42c4", 18, "no_dangling"),
    own("3e3b99a6-5041-4f20-bb9a-efe549a87a6b", 26, "no_dangling"),
    own("877f54c6-138d-4d92-97c5-4f0b8e68bf30", 11, "4a7d0869 interrupted daemon_lost"),
    own("3da02275-9b84-4943-99fb-39f0154e9d2f", 8, "c8ffaf70 interrupted daemon_lost"),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/qwen-serve")
}

fn open(recorded: &Recorded) -> Files {
    let folder = fixtures().join(recorded.folder);
    let files = Files::new(recorded.session_id, recorded.workspace);
    files.write_transcript(&std::fs::read(folder.join(format!("{}.jsonl", recorded.session_id))).unwrap());
    if let Ok(ledger) = std::fs::read(folder.join(format!("{}.ledger.jsonl", recorded.session_id))) {
        files.write_ledger(&ledger);
    }
    files
}

fn name(recorded: &Recorded) -> String {
    format!("{}/{}", recorded.folder, recorded.session_id)
}

#[test]
fn every_recorded_session_is_judged_as_it_was_read_by_hand() {
    for recorded in RECORDED {
        let files = open(recorded);
        let explanation = files.explain();
        assert_eq!(explanation.projection.map(|uuids| uuids.len()), Some(recorded.branch), "{}", name(recorded));
        let reading = explanation.plan.reading.unwrap();
        assert_eq!(reading.dropped_lines, 0, "{}", name(recorded));
        let outcome = files.reconcile();
        let settled = outcome.appended.iter().map(in_short);
        let verdict: Vec<_> = settled.chain(outcome.withheld.map(|withheld| withheld.to_string())).collect();
        assert_eq!(verdict.join(", "), recorded.verdict, "{}", name(recorded));
    }
}

fn in_short(record: &ledger::Record) -> String {
    let value: Value = serde_json::from_str(&record.to_line()).unwrap();
    let word = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let detail = word("code") + &word("stopReason");
    format!("{} {} {detail}", &word("promptId")[..8], word("terminal"))
}

#[test]
fn a_load_tells_the_terminals_that_the_recorded_daemon_told() {
    let mut told_by_peer = 0;
    for recorded in RECORDED {
        let Some(told) = told_terminals(recorded) else { continue };
        let files = open(recorded);
        let appended = files.reconcile().appended.len();
        let terminals = ledger::recent_terminals(files.ledger()).unwrap();
        let mut found: Vec<Value> =
            terminals.iter().map(|record| serde_json::from_str(&record.to_line()).unwrap()).collect();
        // What was appended now has the time of now.
        for (found, told) in found.iter_mut().zip(&told).skip(told.len() - appended) {
            assert_eq!(found["at"], NOW_MS, "{}", name(recorded));
            found["at"] = told["at"].clone();
        }
        assert_eq!(found, told, "{}", name(recorded));
        told_by_peer += 1;
    }
    assert_eq!(told_by_peer, 10);
}

fn told_terminals(recorded: &Recorded) -> Option<Vec<Value>> {
    let folder = fixtures().join(recorded.folder);
    let told = if recorded.folder == OWN {
        let told: Value = read_json(&folder.join("told-by-qwen-serve.json"))?;
        let mut sessions = told.as_object()?.values();
        sessions.find(|session| session["sessionId"] == recorded.session_id)?.clone()
    } else {
        read_json(&folder.join(format!("{}.told.json", recorded.session_id)))?
    };
    told["promptTerminals"].as_array().cloned()
}

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[test]
fn every_recorded_folder_is_held() {
    let folders = std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap());
    let mut found: Vec<_> =
        folders.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name().into_string().unwrap()).collect();
    found.sort();
    let mut held: Vec<_> =
        RECORDED.iter().map(|recorded| recorded.folder).filter(|folder| !folder.contains('/')).collect();
    held.sort_unstable();
    assert_eq!(found, held);
}
