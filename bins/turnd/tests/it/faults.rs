//! Bad input and broken files: a clear error with a code, a daemon that stays up, and nothing lost.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use serde_json::json;

use crate::stream::follow;
use crate::world::{World, chats, until};

#[test]
fn an_agent_that_does_not_exist_is_named_and_the_daemon_stays_up() {
    let mut world = World::with(&["--agent", "no-such-agent-anywhere --acp"]);
    let (status, body) = world.call("POST", "/session", "{}");
    assert_eq!((status, &body["code"]), (502, &json!("agent_unavailable")), "{body}");
    assert!(body.to_string().contains("no-such-agent-anywhere"), "the cause is told: {body}");
    assert_eq!(world.get("/health")["status"], "ok");
}

#[test]
fn an_agent_that_dies_at_once_is_shown_with_its_last_words() {
    let mut world = World::with(&["--agent", "sh -c 'echo no licence found >&2; exit 3'"]);
    let (status, body) = world.call("POST", "/session", "{}");
    assert_eq!((status, &body["code"]), (502, &json!("agent_unavailable")), "{body}");
    assert!(body.to_string().contains("no licence found"), "{body}");
}

#[test]
fn unknown_sessions_bad_bodies_and_bad_client_ids_are_refused_by_code() {
    let mut world = World::new();
    let session = world.session();
    let prompt = format!("/session/{session}/prompt");
    for (method, path, body, status, code) in [
        (
            "POST",
            "/session/nobody/prompt",
            r#"{"prompt":[{"type":"text","text":"x"}]}"#,
            404,
            json!("session_not_found"),
        ),
        ("GET", "/session/nobody/status", "", 404, json!("session_not_found")),
        ("POST", prompt.as_str(), "{", 400, json!("invalid_json")),
        ("POST", "/session/..%2F..%2Fetc/load", "{}", 404, json!("session_not_found")),
        ("GET", "/no/such/route", "", 404, json!("route_not_found")),
    ] {
        let (got, answer) = world.call(method, path, body);
        assert_eq!((got, &answer["code"]), (status, &code), "{method} {path}: {answer}");
    }
    assert_eq!(world.call("POST", &prompt, r#"{"prompt":[]}"#).0, 400);
}

#[test]
fn a_body_of_eleven_megabytes_is_refused_and_the_next_prompt_is_not() {
    let mut world = World::new();
    let session = world.session();
    let body = format!(r#"{{"prompt":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(11 * 1024 * 1024));
    let status = world.call_once("POST", &format!("/session/{session}/prompt"), &body);
    assert_eq!(status, Some(413));
    let prompt = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &prompt)["state"], "completed");
}

#[test]
fn a_closed_session_takes_no_prompt() {
    let mut world = World::new();
    let session = world.session();
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let (status, body) =
        world.call("POST", &format!("/session/{session}/prompt"), r#"{"prompt":[{"type":"text","text":"x"}]}"#);
    assert_eq!((status, &body["code"]), (404, &json!("session_not_found")));
}

#[test]
fn a_ledger_that_cannot_be_read_costs_its_terminals_and_not_the_session() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "hello");
    world.settle(&session, &prompt);
    world.kill_everything();
    let ledger = chats(&world).join(format!("{session}.ledger.jsonl"));
    fs::remove_file(&ledger).unwrap();
    fs::create_dir(&ledger).unwrap();
    let loaded = world.load(&session);
    assert_eq!(loaded.get("promptTerminals"), None);
    let turn = world.get(&format!("/session/{session}/turns/{prompt}"));
    assert_eq!(turn["resultText"], "echo: hello");
}

#[test]
fn torn_tails_of_both_files_are_sealed_by_the_next_prompt() {
    let mut world = World::new();
    let session = world.session();
    let first = world.prompt(&session, "hello");
    world.settle(&session, &first);
    world.kill_everything();
    for name in [format!("{session}.ledger.jsonl"), format!("{session}.jsonl")] {
        let path = chats(&world).join(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(br#"{"v":1,"promptId":"tor"#);
        fs::write(&path, bytes).unwrap();
    }
    world.load(&session);
    let second = world.prompt(&session, "again");
    world.settle(&session, &second);
    world.kill_everything();
    let loaded = world.load(&session);
    let ids: Vec<_> = loaded["promptTerminals"].as_array().unwrap().iter().map(|record| &record["promptId"]).collect();
    assert_eq!(ids, [&first, &second]);
    for (prompt, text) in [(&first, "echo: hello"), (&second, "echo: again")] {
        assert_eq!(world.get(&format!("/session/{session}/turns/{prompt}"))["resultText"], text);
    }
}

#[test]
fn a_second_daemon_on_one_store_is_refused_with_the_owners_pid() {
    let world = World::new();
    let base = world.base();
    let second = Command::new(env!("CARGO_BIN_EXE_turnd"))
        .args(["serve", "--port", "0", "--store"])
        .arg(base.join("store"))
        .arg("--workspace")
        .arg(base.join("workspace"))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(words.contains(&world.pid().to_string()), "{words}");
}

#[test]
fn a_session_whose_host_still_writes_is_refused_with_the_owners_pid_and_loads_when_it_has_ended() {
    let mut world = World::with(&["--session-restore-timeout-ms", "300"]);
    let session = world.session();
    let prompt = world.prompt(&session, "slow 1500");
    world.until_chunk(&session, &prompt);
    // It holds still until somebody has asked.
    let host = world.cast(&session).host;
    world.signal(&[host], "STOP");
    world.until_stopped(host);
    world.kill_daemon();
    let path = format!("/session/{session}/load");
    // Before the store of return requests is open nobody can say whose the session is.
    until("the owner is named", || {
        let (status, body) = world.call("POST", &path, "{}");
        assert_eq!((status, &body["code"]), (409, &json!("session_writer_conflict")), "{body}");
        body["pid"].as_u64()
    });
    world.signal(&[host], "CONT");
    let loaded = until("the host has ended", || {
        let (status, body) = world.call("POST", &path, "{}");
        (status == 200).then_some(body)
    });
    assert_eq!(loaded["promptTerminals"][0]["terminal"], "completed");
}

#[test]
fn a_session_of_an_empty_or_missing_transcript_is_not_found() {
    let mut world = World::new();
    fs::create_dir_all(chats(&world)).unwrap();
    fs::write(chats(&world).join("11111111-2222-4333-8444-555555555555.jsonl"), "").unwrap();
    for session in ["11111111-2222-4333-8444-555555555555", "21111111-2222-4333-8444-555555555555"] {
        let (status, body) = world.call("POST", &format!("/session/{session}/load"), "{}");
        assert_eq!((status, &body["code"]), (404, &json!("session_not_found")), "{body}");
    }
}

/// Lets a process write files up to so many bytes and no further.
#[cfg(target_os = "linux")]
fn limit(pid: u32, soft: &str) {
    let args = ["--pid", &pid.to_string(), &format!("--fsize={soft}:")];
    assert!(Command::new("prlimit").args(args).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_transcript_that_waits_for_the_disk_is_told_to_readers_and_to_whoever_asks_after_the_daemons_health() {
    let mut world = World::new();
    let session = world.session();
    let (told, heard) = std::sync::mpsc::channel();
    let reader = follow(world.address(), &session, move |data| {
        let envelope: serde_json::Value = serde_json::from_str(data).unwrap();
        if envelope["type"].as_str().unwrap().starts_with("session_recording_") {
            told.send(envelope).unwrap();
        }
    });
    let event = || heard.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    let prompt = world.prompt(&session, "slow 600000");
    world.until_chunk(&session, &prompt);
    let hosts: Vec<u32> = world.family().into_iter().filter(|pid| *pid != world.pid()).collect();
    hosts.iter().for_each(|pid| limit(*pid, "1"));
    assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "{}").0, 204);
    let held = event();
    assert_eq!(held["type"], "session_recording_degraded");
    assert_eq!((&held["data"]["reason"], &held["data"]["givenUp"]), (&json!("write_failed"), &json!(false)));
    let records = held["data"]["heldRecords"].as_u64().unwrap();
    // The turn ends as it did, only its records wait.
    assert_eq!(world.settle(&session, &prompt)["state"], "cancelled");
    let (status, health) = world.call("GET", "/health", "");
    assert_eq!((status, &health["reason"]), (503, &json!("transcript_unwritable")), "{health}");
    assert_eq!((&health["degradedSessions"], &health["heldRecords"]), (&json!(1), &json!(records)));
    hosts.iter().for_each(|pid| limit(*pid, "unlimited"));
    let well = event();
    assert_eq!(
        (&well["type"], &well["data"]),
        (&json!("session_recording_recovered"), &json!({ "sessionId": session }))
    );
    assert_eq!(world.get("/health")["status"], "ok");
    assert!(fs::read_to_string(chats(&world).join(format!("{session}.jsonl"))).unwrap().contains("turn_result"));
    world.kill_everything();
    drop(reader.join().unwrap());
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_files_is_met_like_a_full_disk_also_by_the_log() {
    // The log is beyond the limit from the start: nothing that is to be told there can be.
    let mut log = tempfile::tempfile().unwrap();
    log.write_all(&[b'\n'; 9000]).unwrap();
    let mut world = World::logging_to(log);
    limit(world.pid(), "8000");
    let session = world.session();
    let mut refused = None;
    for number in 0..60 {
        let body =
            json!({ "prompt": [{ "type": "text", "text": format!("{number} {}", "x".repeat(200)) }] }).to_string();
        let (status, answer) = world.call("POST", &format!("/session/{session}/prompt"), &body);
        if status != 202 {
            refused = Some((status, answer["code"].clone()));
            break;
        }
        let turn = world.settle(&session, answer["promptId"].as_str().unwrap());
        if turn["state"] != "completed" {
            assert_eq!(turn["inputWritten"], "no", "{turn}");
            break;
        }
        assert!(number < 59, "the limit was never met");
    }
    // Both processes live on, and admit again as soon as they may write.
    assert_eq!(world.get(&format!("/session/{session}/status"))["hasActivePrompt"], false, "{refused:?}");
    for pid in world.family() {
        limit(pid, "unlimited");
    }
    until("an admission", || {
        (world.call("POST", &format!("/session/{session}/prompt"), r#"{"prompt":[{"type":"text","text":"again"}]}"#).0
            == 202)
            .then_some(())
    });
}
