//! Archive, delete and the single writer with real hosts: who lingers is ended, who is not provably a host is left alone.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use transcript::{Owner, SessionLock};

use crate::world::{World, alive, chats, until};

impl World {
    fn shelve(&mut self, what: &str, session: &str) -> Value {
        let body = json!({ "sessionIds": [session] }).to_string();
        let (status, told) = self.call("POST", &format!("/sessions/{what}"), &body);
        assert_eq!(status, 200, "{told}");
        told
    }

    fn close(&mut self, session: &str) -> (u16, Value) {
        self.call("DELETE", &format!("/session/{session}"), "")
    }

    /// A session whose host lingers over a turn that hangs, as its daemon was killed.
    fn lingering(&mut self) -> (String, String) {
        let session = self.session();
        let prompt = self.prompt(&session, "hang");
        self.until_chunk(&session, &prompt);
        self.kill_daemon();
        (session, prompt)
    }
}

fn lock_of(world: &World, session: &str) -> PathBuf {
    chats(world).join(format!("{session}.lock"))
}

fn owner(world: &World, session: &str) -> Owner {
    serde_json::from_str(&fs::read_to_string(lock_of(world, session)).unwrap()).unwrap()
}

/// Every file of a session, wherever it lies.
fn files(world: &World, session: &str) -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["", "archive"] {
        let entries = fs::read_dir(chats(world).join(folder)).into_iter().flatten().flatten();
        let named =
            entries.map(|entry| entry.file_name().into_string().unwrap()).filter(|name| name.starts_with(session));
        names.extend(named.map(|name| format!("{folder}/{}", name.trim_start_matches(session))));
    }
    names.sort_unstable();
    names
}

#[test]
fn a_close_of_a_session_whose_daemon_was_killed_ends_the_host_that_lingers() {
    let mut world = World::new();
    let (session, prompt) = world.lingering();
    let host = owner(&world, &session).pid;
    assert!(alive(host));
    assert_eq!(world.close(&session).0, 204);
    assert!(!alive(host));
    assert_eq!(world.close(&session).0, 404, "there is nobody to close any more");
    let loaded = world.load(&session);
    let terminal = &loaded["promptTerminals"][0];
    assert_eq!((&terminal["promptId"], &terminal["code"]), (&json!(prompt), &json!("host_terminated")));
}

#[test]
fn a_session_whose_host_lingers_is_put_away_and_removed_with_every_file() {
    let mut world = World::new();
    let (session, _) = world.lingering();
    let host = owner(&world, &session).pid;
    assert_eq!(world.shelve("archive", &session)["archived"], json!([session]));
    assert!(!alive(host));
    assert_eq!(files(&world, &session), ["archive/.host.json", "archive/.jsonl", "archive/.ledger.jsonl"]);
    assert_eq!(world.shelve("unarchive", &session)["unarchived"], json!([session]));
    assert_eq!(files(&world, &session), ["/.host.json", "/.jsonl", "/.ledger.jsonl"]);
    assert_eq!(world.shelve("delete", &session)["removed"], json!([session]));
    assert_eq!(files(&world, &session), Vec::<String>::new());
}

#[test]
fn a_live_session_is_put_away_once_its_host_is_gone_and_comes_back_with_all_that_was_known() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    let host = owner(&world, &session).pid;
    let before = world.load(&session);
    assert_eq!(world.shelve("archive", &session)["archived"], json!([session]));
    assert!(!alive(host));
    world.shelve("unarchive", &session);
    let loaded = world.load(&session);
    assert_eq!(loaded["promptTerminals"], before["promptTerminals"]);
    assert_eq!(loaded["compactedReplay"].as_array().unwrap().len(), 2, "{loaded}");
    assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["resultText"], "echo: hello");
    let next = world.prompt(&session, "again");
    assert_eq!(world.settle(&session, &next)["state"], "completed");
}

#[test]
fn a_process_that_a_lock_names_by_a_pid_that_was_used_anew_is_left_alone() {
    let mut world = World::new();
    let (session, _) = world.lingering();
    let lock = lock_of(&world, &session);
    let line = fs::read_to_string(&lock).unwrap();
    let real = owner(&world, &session);
    let other = Owner { start_ticks: real.start_ticks.map(|ticks| ticks + 1), ..real.clone() };
    let nameless = Owner { start_ticks: None, ..real.clone() };
    for wrong in [other, nameless] {
        fs::write(&lock, serde_json::to_string(&wrong).unwrap()).unwrap();
        let (status, body) = world.close(&session);
        assert_eq!((status, &body["code"]), (409, &json!("session_writer_conflict")));
        assert_eq!((&body["pid"], &body["startedAt"]), (&json!(real.pid), &json!(real.started_at)));
        assert!(alive(real.pid));
    }
    fs::write(&lock, line).unwrap();
    assert_eq!(world.close(&session).0, 204);
    assert!(!alive(real.pid));
}

#[test]
fn an_order_to_end_a_host_that_is_gone_spares_the_one_that_has_its_session_since() {
    let mut world = World::new();
    let (session, _) = world.lingering();
    let gone = fs::read_to_string(lock_of(&world, &session)).unwrap();
    assert_eq!(world.close(&session).0, 204);
    world.load(&session);
    let host = owner(&world, &session);
    let transcript = chats(&world).join(format!("{session}.jsonl"));
    let mut order = Command::new(env!("CARGO_BIN_EXE_turnd"));
    order.args(["host", "--dismiss", &gone, "--transcript"]).arg(transcript);
    assert!(order.status().unwrap().success());
    assert!(alive(host.pid));
    let next = world.prompt(&session, "again");
    assert_eq!(world.settle(&session, &next)["state"], "completed");
}

#[test]
fn a_host_of_another_session_and_a_process_that_is_no_host_are_left_alone() {
    let mut world = World::new();
    let (live, other) = (world.session(), world.session());
    let prompt = world.prompt(&other, "hello");
    world.settle(&other, &prompt);
    assert_eq!(world.close(&other).0, 204);
    let host = owner(&world, &live);
    let mut sleeper = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
    let named = Owner { pid: sleeper.id(), started_at: 1, start_ticks: start_ticks(sleeper.id()) };
    for claimed in [&host, &named] {
        let held = SessionLock::acquire(&lock_of(&world, &other), claimed).unwrap();
        assert_eq!(world.close(&other).1["code"], "session_writer_conflict");
        let told = world.shelve("delete", &other);
        assert_eq!(
            (&told["errors"][0]["code"], &told["errors"][0]["pid"]),
            (&json!("session_writer_conflict"), &json!(claimed.pid))
        );
        drop(held);
    }
    assert!(alive(host.pid) && alive(sleeper.id()));
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(chats(&world).join(format!("{other}.jsonl")).exists());
}

/// The start of a process in ticks: the 22nd field of its line.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[test]
fn a_load_of_a_session_that_another_process_writes_names_it_and_a_name_of_the_dead_keeps_nobody_out() {
    let mut world = World::with(&["--session-restore-timeout-ms", "4000"]);
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    assert_eq!(world.close(&session).0, 204);
    let lock = lock_of(&world, &session);
    until("the host is gone", || SessionLock::probe(&lock).is_ok().then_some(()));
    let me = Owner { pid: std::process::id(), started_at: 1_795_977_220_000, start_ticks: Some(1) };
    let held = SessionLock::acquire(&lock, &me).unwrap();
    for action in ["load", "resume"] {
        let (status, body) = world.call("POST", &format!("/session/{session}/{action}"), "{}");
        assert_eq!((status, &body["code"]), (409, &json!("session_writer_conflict")), "{body}");
        assert_eq!((&body["pid"], &body["startedAt"]), (&json!(me.pid), &json!(me.started_at)));
    }
    drop(held);
    // A pid that runs, as another process than the one that was meant.
    fs::write(&lock, serde_json::to_string(&me).unwrap()).unwrap();
    world.load(&session);
    assert_ne!(owner(&world, &session).pid, me.pid, "it is the host's now");
}

#[test]
fn a_session_whose_host_was_killed_is_put_away_at_once() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    world.kill_everything();
    assert!(fs::metadata(lock_of(&world, &session)).unwrap().len() > 0, "the dead host's name is there");
    assert_eq!(world.shelve("archive", &session)["archived"], json!([session]));
    assert_eq!(files(&world, &session), ["archive/.host.json", "archive/.jsonl", "archive/.ledger.jsonl"]);
}

/// A real user record as another program writes it, and an answer to it.
fn foreign_turn(world: &World, session: &str, parent: &str, stamp: Option<&str>) -> String {
    let workspace = world.base().join("workspace");
    let line = |uuid: &str, parent: &str, kind: &str, role: &str| {
        let mut record = json!({
            "uuid": uuid, "parentUuid": if parent.is_empty() { Value::Null } else { parent.into() }, "sessionId": session,
            "timestamp": "2099-01-01T00:00:00.000Z", "type": kind, "cwd": workspace, "version": "0",
            "provenance": if kind == "user" { "real_user" } else { "assistant_output" },
            "message": { "role": role, "parts": [{ "text": uuid }] },
        });
        if let (Some(stamp), "user") = (stamp, kind) {
            record["daemonPromptId"] = stamp.into();
        }
        format!("{record}\n")
    };
    let ids = [format!("{parent}-asked"), format!("{parent}-said")];
    line(&ids[0], parent, "user", "user") + &line(&ids[1], &ids[0], "assistant", "model")
}

fn last_uuid(text: &str) -> String {
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    last["uuid"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_foreign_writer_put_behind_a_prompt_is_no_answer_to_it() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 60000");
    world.until_chunk(&session, &prompt);
    let transcript = chats(&world).join(format!("{session}.jsonl"));
    let text = fs::read_to_string(&transcript).unwrap();
    // Somebody who knows no lock of ours, as an interactive agent on the same session.
    let foreign = foreign_turn(&world, &session, &last_uuid(&text), None);
    world.kill_everything();
    fs::write(&transcript, text + &foreign).unwrap();
    let loaded = world.load(&session);
    assert_eq!(loaded["promptTerminals"], Value::Null, "{loaded}");
    let unresolved = &loaded["unresolvedPrompts"][0];
    assert_eq!((&unresolved["promptId"], &unresolved["reason"]), (&json!(prompt), &json!("foreign_prompt")));
}

/// An agent that writes no transcript itself and never answers a prompt.
const NATIVE: &str = r#"while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
    session=$(printf '%s' "$line" | sed -n 's/.*essionId":"\([^"]*\)".*/\1/p')
    case "$line" in
        *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
        *'"session/new"'*|*'"session/load"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"%s"}}\n' "$id" "$session" ;;
    esac
done"#;

/// A session of such an agent, and its prompt that runs when everything is killed.
fn killed_natively() -> (World, String, String) {
    let mut world = World::with(&["--agent", "sh agent.sh", "--transcript", "native"]);
    // Agents are started in the workspace.
    fs::write(world.base().join("workspace/agent.sh"), NATIVE).unwrap();
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.kill_everything();
    (world, session, prompt)
}

#[test]
fn in_a_native_session_too_a_foreign_processs_records_answer_for_nobody() {
    let (mut world, session, prompt) = killed_natively();
    // The agent's own record of the prompt, and behind it a turn of an interactive process.
    let own = foreign_turn(&world, &session, "", Some(&prompt));
    let foreign = foreign_turn(&world, &session, &last_uuid(&own), None);
    fs::write(chats(&world).join(format!("{session}.jsonl")), own + &foreign).unwrap();
    let loaded = world.load(&session);
    assert_eq!(loaded["promptTerminals"], Value::Null, "{loaded}");
    assert_eq!(loaded["unresolvedPrompts"][0]["reason"], "foreign_prompt");
}

#[test]
fn in_a_native_session_the_agents_own_stamped_records_are_evidence() {
    let (mut world, session, prompt) = killed_natively();
    let own = foreign_turn(&world, &session, "", Some(&prompt));
    fs::write(chats(&world).join(format!("{session}.jsonl")), own).unwrap();
    let loaded = world.load(&session);
    assert_eq!(loaded["promptTerminals"][0]["terminal"], "completed", "{loaded}");
}
