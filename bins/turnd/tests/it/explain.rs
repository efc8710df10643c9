//! `turnd explain` on one session, in front of a real daemon.

use std::process::Output;

use serde_json::Value;

use crate::commands::{stdout, turnd};
use crate::world::World;

#[test]
fn explain_exits_with_zero_when_nothing_is_open_and_with_three_when_something_stays_unknown() {
    let mut world = World::new();
    let session = world.session();
    let first = world.prompt(&session, "hello");
    world.settle(&session, &first);
    let (settled, code) = explain(&world, &session);
    assert_eq!((settled["verdict"]["withheld"].as_str(), code), (Some("no_dangling"), Some(0)), "{settled}");

    let running = world.prompt(&session, "slow 60000");
    world.prompt(&session, "hello");
    world.until_chunk(&session, &running);
    world.kill_everything();
    let (open, code) = explain(&world, &session);
    assert_eq!((open["verdict"]["withheld"].as_str(), code), (Some("several_dangling"), Some(3)), "{open}");
    assert_eq!(open["dangling"].as_array().unwrap().len(), 2);
}

#[test]
fn explain_says_what_it_would_append_and_appends_it_only_when_told() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 60000");
    world.until_chunk(&session, &prompt);
    world.kill_everything();
    for _ in 0..2 {
        let (plan, code) = explain(&world, &session);
        assert_eq!(code, Some(0));
        assert_eq!(plan["verdict"]["append"][0]["terminal"], "interrupted", "{plan}");
    }
    let applied = explain_with(&world, &session, "--apply");
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    assert_eq!(explain(&world, &session).0["dangling"], Value::Array(Vec::new()));
}

#[test]
fn of_a_session_without_files_it_is_said_where_they_were_looked_for() {
    let store = tempfile::tempdir().unwrap();
    let place = ["--store", store.path().to_str().unwrap(), "--workspace", "/ws"];
    for flags in [&["--json"][..], &["--json", "--apply"]] {
        let output = turnd(&[&["explain", "nobody"], flags, &place].concat());
        assert_eq!(output.status.code(), Some(0), "nothing is open");
        assert!(stdout(&output).contains(r#""verdict":{"withheld":"no_dangling"}"#), "{}", stdout(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains("projects/-ws/chats"));
        assert_eq!(std::fs::read_dir(store.path()).unwrap().count(), 0, "nothing is made for nobody");
    }
}

#[test]
fn a_session_that_was_asked_nothing_yet_is_there() {
    let mut world = World::new();
    let session = world.session();
    let (told, code) = explain(&world, &session);
    assert_eq!((&told["live"], &told["verdict"]["withheld"], code), (&true.into(), &"no_dangling".into(), Some(0)));
}

#[test]
fn nothing_is_appended_to_a_session_that_a_daemon_has_live() {
    let mut world = World::new();
    let session = world.session();
    let prompt = world.prompt(&session, "slow 60000");
    world.until_chunk(&session, &prompt);
    let refused = explain_with(&world, &session, "--apply");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{words}");
    assert!(words.contains("is held by process"), "{words}");
    assert_eq!(explain(&world, &session).0["dangling"].as_array().unwrap().len(), 1);
}

/// `turnd explain` on the world's session, with one more flag.
fn explain_with(world: &World, session: &str, flag: &str) -> Output {
    let base = world.base();
    let (store, workspace) = (base.join("store"), base.join("workspace"));
    let places = ["--store", store.to_str().unwrap(), "--workspace", workspace.to_str().unwrap()];
    turnd(&[&["explain", session, flag], &places[..]].concat())
}

/// `turnd explain --json` on the world's session: the object and the exit code.
pub(crate) fn explain(world: &World, session: &str) -> (Value, Option<i32>) {
    let output = explain_with(world, session, "--json");
    let value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), String::from_utf8_lossy(&output.stderr)));
    (value, output.status.code())
}

/// A crash may outlive the folder that the agent worked in.
#[test]
fn explain_needs_the_name_of_the_workspace_and_not_the_folder() {
    let store = tempfile::tempdir().unwrap();
    let chats = store.path().join("projects/-no-such-workspace/chats");
    std::fs::create_dir_all(&chats).unwrap();
    std::fs::write(chats.join("s.ledger.jsonl"), "{\"v\":1,\"promptId\":\"p\",\"state\":\"in_flight\",\"at\":5}\n")
        .unwrap();
    let output = turnd(&[
        "explain",
        "s",
        "--json",
        "--store",
        store.path().to_str().unwrap(),
        "--workspace",
        "/no/such/workspace",
    ]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout(&output).contains(r#""withheld":"no_transcript""#), "{}", stdout(&output));
}
