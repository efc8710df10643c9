//! `turnd explain` on files and folders: what is said of many sessions, and what is left alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::commands::{stdout, turnd};
use crate::world::{World, chats};

const START_MS: u64 = 1_795_977_220_000;

/// A store with a session of each kind.
pub(crate) struct Store {
    base: TempDir,
}

impl Store {
    /// Two sessions with nothing open, an archived one that is resolvable, one that stays unknown.
    pub(crate) fn new() -> Self {
        let store = Self { base: tempfile::tempdir().unwrap() };
        let chats = store.chats();
        session(&chats, "done", "/ws", &[admitted("p", 0), ended("p", 9)], &[]);
        session(&chats, "empty", "/ws", &[], &[]);
        session(&chats.join("archive"), "old", "/ws", &[admitted("p", 0)], &["user", "assistant"]);
        session(&chats, "two", "/ws", &[admitted("p", 0), admitted("q", 1)], &["user"]);
        store
    }

    pub(crate) fn path(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn chats(&self) -> PathBuf {
        self.path().join("projects/-ws/chats")
    }

    pub(crate) fn explain(&self, flags: &[&str]) -> Output {
        explain(self.path(), flags)
    }

    /// The report with a name in the place of the store.
    pub(crate) fn told(&self, flags: &[&str]) -> (String, Option<i32>) {
        let output = self.explain(flags);
        (stdout(&output).replace(self.path().to_str().unwrap(), "STORE"), output.status.code())
    }
}

pub(crate) fn explain(target: &Path, flags: &[&str]) -> Output {
    turnd(&[&["explain", target.to_str().unwrap()], flags].concat())
}

pub(crate) fn admitted(prompt: &str, after_ms: u64) -> String {
    format!("{{\"v\":1,\"promptId\":\"{prompt}\",\"state\":\"in_flight\",\"at\":{}}}\n", START_MS + after_ms)
}

fn ended(prompt: &str, after_ms: u64) -> String {
    format!("{{\"v\":1,\"promptId\":\"{prompt}\",\"terminal\":\"cancelled\",\"at\":{}}}\n", START_MS + after_ms)
}

/// Writes a session: its ledger, and a transcript of one record of each kind, a second apart, if there are any.
pub(crate) fn session(folder: &Path, id: &str, cwd: &str, ledger: &[String], kinds: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(format!("{id}.ledger.jsonl")), ledger.concat()).unwrap();
    let mut parent = "null".to_owned();
    let mut lines = String::new();
    for (number, kind) in kinds.iter().enumerate() {
        let role = if *kind == "user" { "user" } else { "model" };
        lines += &format!(
            r#"{{"uuid":"r{number}","parentUuid":{parent},"sessionId":"{id}","type":"{kind}","cwd":"{cwd}","timestamp":"2026-11-29T18:33:4{}.000Z","message":{{"role":"{role}","parts":[{{"text":"x"}}]}}}}"#,
            number + 1
        );
        lines.push('\n');
        parent = format!("\"r{number}\"");
    }
    if !kinds.is_empty() {
        fs::write(folder.join(format!("{id}.jsonl")), lines).unwrap();
    }
}

pub(crate) fn objects(output: &Output) -> Vec<Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every file below a folder, with its bytes.
pub(crate) fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(content(&path)) } else { found.push((path.clone(), fs::read(&path).unwrap())) }
    }
    found.sort();
    found
}

const UNKNOWN: &str = "\
STORE/projects/-ws/chats/two.ledger.jsonl
session two: 2 open prompts, unknown
  ledger      2 records
  transcript  1 record on the active branch (the conversation as it stands)
              asked last: record r0, by the user at 2026-11-29T18:33:41.000Z, stamped with no prompt
              said last: the same record
              ends with: 1 message that nobody answered

prompt p: unknown
  admitted    2026-11-29T18:33:40.000Z, nothing queued in front of it
              without a marker, so that only times tell what came after it
  because     several prompts are open, and nothing says whose the end of the transcript is
              (several_dangling)
              open beside it: q
  help        only a turn result with the prompt's own id tells them apart: if the session's host
              still runs it may yet write one, so ask again; otherwise nothing can
  meanwhile   ask whoever sent it, and treat it as unknown: do not send it again without checking
              what it did

prompt q: unknown
  admitted    2026-11-29T18:33:40.001Z, queued behind p
              without a marker, so that only times tell what came after it
  because     the same as of prompt p (several_dangling)

";

const ARCHIVED: &str = "\
STORE/projects/-ws/chats/archive/old.ledger.jsonl (archived)
session old: 1 open prompt, resolvable
  ledger      1 record
  transcript  2 records on the active branch (the conversation as it stands)
              asked last: record r0, by the user at 2026-11-29T18:33:41.000Z, stamped with no prompt
              said last: record r1, by the agent at 2026-11-29T18:33:42.000Z
              ends with: an answer, and nothing is left open

prompt p: completed (reconstructed_from_transcript)
  admitted    2026-11-29T18:33:40.000Z, nothing queued in front of it
              without a marker, so that only times tell what came after it
  because     inferred, with no check against it: the conversation ends with an answer, and nothing
              is left open
  next        the next load of the session writes this to the ledger

";

#[test]
fn a_folder_tells_of_every_session_in_which_something_is_open_and_counts_the_rest() {
    let store = Store::new();
    let before = content(store.path());
    let summary = "4 sessions: 2 nothing open, 1 resolvable, 1 unknown\n";
    assert_eq!(store.told(&[]), ([UNKNOWN, ARCHIVED, summary].concat(), Some(3)));
    assert_eq!(content(store.path()), before, "nothing is written");
}

#[test]
fn a_folder_that_is_all_resolvable_or_empty_ends_well() {
    let store = Store::new();
    let archive = explain(&store.chats().join("archive"), &[]);
    assert!(
        stdout(&archive).ends_with("\n1 session: 0 nothing open, 1 resolvable, 0 unknown\n"),
        "{}",
        stdout(&archive)
    );
    assert_eq!(archive.status.code(), Some(0));
    let empty = explain(tempfile::tempdir().unwrap().path(), &[]);
    assert_eq!(stdout(&empty), "0 sessions: 0 nothing open, 0 resolvable, 0 unknown\n");
    assert_eq!(empty.status.code(), Some(0));
}

#[test]
fn json_is_one_object_a_line_for_every_session_with_its_files_first() {
    let store = Store::new();
    let output = store.explain(&["--json"]);
    assert_eq!(output.status.code(), Some(3));
    let told = objects(&output);
    let each = |key: &str| told.iter().map(|object| object[key].clone()).collect::<Vec<_>>();
    assert_eq!(each("session"), ["done", "empty", "two", "old"]);
    assert_eq!(each("archived"), [false, false, false, true]);
    let workspaces = each("workspace");
    assert!(workspaces[..2].iter().all(Value::is_null), "without a transcript nobody knows it: {workspaces:?}");
    assert_eq!(workspaces[2..], ["/ws", "/ws"]);
    let withheld: Vec<_> = told.iter().map(|object| object["verdict"]["withheld"].as_str()).collect();
    assert_eq!(withheld, [Some("no_dangling"), Some("no_dangling"), Some("several_dangling"), None]);
    assert_eq!(told[3]["projection"], serde_json::json!(["r0", "r1"]));
    let files = ["ledger", "transcript"].map(|key| PathBuf::from(told[3][key].as_str().unwrap()));
    assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    let first = stdout(&output);
    assert!(first.starts_with(r#"{"session":"done","ledger":"#) && first.contains(r#","records":["#), "{first}");
}

#[test]
fn apply_appends_to_each_session_what_was_said_and_to_no_other() {
    let store = Store::new();
    let ledger = store.chats().join("archive/old.ledger.jsonl");
    let two = fs::read(store.chats().join("two.ledger.jsonl")).unwrap();
    let (told, code) = store.told(&["--apply"]);
    assert!(told.ends_with("\n4 sessions: 2 nothing open, 1 resolved, 1 unknown\n"), "{told}");
    assert_eq!(code, Some(3));
    let appended = fs::read_to_string(&ledger).unwrap();
    let line: Value = serde_json::from_str(appended.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&line["promptId"], &line["terminal"]), (&"p".into(), &"completed".into()));
    assert_eq!(fs::read(store.chats().join("two.ledger.jsonl")).unwrap(), two);
    let locks: Vec<_> = content(store.path())
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.ends_with("old.lock") || path.ends_with("two.lock"))
        .collect();
    assert_eq!(locks, [store.chats().join("old.lock")], "locked where it was live, and only what is written");
    let (again, _) = store.told(&["--apply"]);
    assert!(again.ends_with("\n4 sessions: 3 nothing open, 0 resolved, 1 unknown\n"), "{again}");
    assert_eq!(fs::read_to_string(&ledger).unwrap(), appended);
}

#[test]
fn a_session_that_a_daemon_has_live_is_skipped_and_said_to_be() {
    let mut world = World::new();
    let (idle, live) = (world.session(), world.session());
    let done = world.prompt(&idle, "hello");
    world.settle(&idle, &done);
    let running = world.prompt(&live, "slow 60000");
    world.until_chunk(&live, &running);
    session(&chats(&world), "dead", world.base().join("workspace").to_str().unwrap(), &[admitted("p", 0)], &["user"]);
    let ledger = chats(&world).join(format!("{live}.ledger.jsonl"));
    let before = fs::read(&ledger).unwrap();

    let output = explain(&world.base().join("store"), &["--apply"]);
    let words = stdout(&output);
    assert!(words.contains(&format!("\nsession {live}: live and skipped, process ")), "{words}");
    assert!(words.contains("prompt p: interrupted (daemon_lost)"), "{words}");
    assert!(words.ends_with("3 sessions: 0 nothing open, 1 resolved, 0 unknown, 2 live and skipped\n"), "{words}");
    assert_eq!(output.status.code(), Some(3), "what is open in a live session is not known here");
    assert_eq!(fs::read(&ledger).unwrap(), before);

    let told = objects(&explain(&world.base().join("store"), &["--apply", "--json"]));
    let skipped: Vec<_> = told.iter().filter(|object| object["skipped"] == "live").collect();
    assert_eq!(skipped.iter().map(|object| &object["session"]).collect::<Vec<_>>(), [&live]);
    assert_eq!(fs::read(&ledger).unwrap(), before);
}

#[test]
fn a_ledger_that_cannot_be_read_is_said_and_stops_nothing() {
    let store = Store::new();
    fs::create_dir(store.chats().join("bad.ledger.jsonl")).unwrap();
    let (told, code) = store.told(&[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(
        told.contains("session bad: the ledger cannot be read\n  because     a folder is in the ledger's place\n"),
        "{told}"
    );
    assert!(told.ends_with("\n5 sessions: 2 nothing open, 1 resolvable, 1 unknown, 1 failed\n"), "{told}");
}

#[test]
fn what_could_not_be_appended_is_not_counted_as_resolved() {
    let store = Store::new();
    fs::create_dir(store.chats().join("old.lock")).unwrap();
    let output = store.explain(&["--apply"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).ends_with("\n4 sessions: 2 nothing open, 0 resolved, 1 unknown, 1 failed\n"),
        "{}",
        stdout(&output)
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("old.lock: "));
}

#[test]
fn a_file_stands_for_its_session_wherever_it_lies() {
    let store = Store::new();
    for name in ["old.jsonl", "old.ledger.jsonl"] {
        let output = explain(&store.chats().join("archive").join(name), &[]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let block = ARCHIVED.split_once('\n').unwrap().1;
        assert_eq!(stdout(&output), format!("{}\n", block.trim_end()));
    }
    let json = explain(&store.chats().join("two.jsonl"), &["--json"]);
    assert_eq!(json.status.code(), Some(3));
    assert!(stdout(&json).starts_with("{\"records\":["), "{}", stdout(&json));
}

#[test]
fn a_workspace_that_is_given_counts_for_every_session() {
    let store = Store::new();
    let (told, code) = store.told(&["--workspace", "/no/such/place"]);
    assert_eq!(code, Some(3));
    assert!(
        told.contains("the workspace is /no/such/place, and the transcript's first record was written in /ws"),
        "{told}"
    );
    assert!(told.ends_with("\n4 sessions: 2 nothing open, 0 resolvable, 2 unknown\n"), "{told}");
}

#[test]
fn a_transcript_in_the_folder_of_another_workspace_resolves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let chats = base.path().join("projects/-ws/chats");
    session(&chats, "s", "/other", &[admitted("p", 0)], &["user", "assistant"]);
    let output = explain(base.path(), &["--json"]);
    assert_eq!(objects(&output)[0]["verdict"]["withheld"], "no_transcript");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn links_that_lead_in_circles_are_followed_once() {
    let store = Store::new();
    symlink(store.path(), store.chats().join("up")).unwrap();
    symlink(store.chats().join("two.ledger.jsonl"), store.path().join("two.ledger.jsonl")).unwrap();
    let summary = "4 sessions: 2 nothing open, 1 resolvable, 1 unknown, 1 link left out\n";
    assert_eq!(store.told(&[]).0, [UNKNOWN, ARCHIVED, summary].concat());
    let link = store.path().join("elsewhere.ledger.jsonl");
    symlink(store.chats().join("archive/old.ledger.jsonl"), &link).unwrap();
    let linked = stdout(&explain(&link, &[]));
    assert!(linked.starts_with("session old: 1 open prompt, resolvable\n"), "{linked}");
}

#[test]
fn what_is_neither_a_session_nor_there_is_a_wrong_use() {
    let store = Store::new();
    fs::write(store.path().join("notes.txt"), "").unwrap();
    for target in ["no/such/file.jsonl", "notes.txt", "projects/-ws/chats/.jsonl"] {
        let output = explain(&store.path().join(target), &[]);
        assert_eq!(output.status.code(), Some(2), "{target}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("neither a session's id nor"), "{target}");
    }
    assert_eq!(turnd(&["explain"]).status.code(), Some(2));
}

#[test]
fn a_name_that_is_made_to_mislead_is_not_shown_raw() {
    let base = tempfile::tempdir().unwrap();
    let chats = base.path().join("projects/-ws/chats");
    session(&chats, "\u{1b}[2J\u{202e}s", "/ws", &[admitted("\\u001b[2J", 0)], &[]);
    let words = stdout(&explain(base.path(), &[]));
    let raw: Vec<_> = words.chars().filter(|letter| *letter != '\n' && !matches!(letter, ' '..='~')).collect();
    assert_eq!(raw, [], "{words}");
    assert!(words.contains(r#"session "\u{1b}[2J\u{202e}s": 1 open prompt, unknown"#), "{words}");
}
