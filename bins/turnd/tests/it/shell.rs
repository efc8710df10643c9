//! Commands of a user in a session's workspace, with the whole program.

use std::fs;

use serde_json::{Value, json};

use crate::asides::{open, read};
use crate::stream::follow;
use crate::world::{World, until};

/// A session of a daemon that allows commands, and a client that is registered there.
fn world() -> (World, String, String) {
    with(&[])
}

fn with(flags: &[&str]) -> (World, String, String) {
    let flags: Vec<&str> = ["--enable-session-shell"].iter().chain(flags).copied().collect();
    let mut world = World::with(&flags);
    let (status, body) = world.call("POST", "/session", r#"{"sessionScope":"thread"}"#);
    assert_eq!(status, 200, "{body}");
    let text = |key: &str| body[key].as_str().unwrap().to_owned();
    let (session, client) = (text("sessionId"), text("clientId"));
    (world, session, client)
}

fn run(world: &World, session: &str, client: Option<&str>, body: &Value) -> (u16, Value) {
    let (status, text) = read(open(world.address(), "POST", &format!("/session/{session}/shell"), client, body));
    (status, serde_json::from_str(&text).unwrap())
}

fn command(world: &World, session: &str, client: &str, text: &str) -> Value {
    let (status, body) = run(world, session, Some(client), &json!({ "command": text }));
    assert_eq!(status, 200, "{body}");
    body
}

/// What a load shows of commands.
fn shown(load: &Value) -> Vec<Value> {
    let frames = load["compactedReplay"].as_array().unwrap();
    let updates = frames.iter().map(|frame| frame["data"]["update"].clone());
    updates.filter(|update| update["sessionUpdate"] == "shell_output").collect()
}

/// The subtypes of the notes about commands, in order.
fn notes(world: &World, session: &str) -> Vec<String> {
    let transcript = world.transcript(session);
    let records = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let subtypes = records.filter_map(|record| record["subtype"].as_str().map(str::to_owned));
    subtypes.filter(|subtype| subtype.starts_with("user_shell")).collect()
}

#[test]
fn a_command_gives_its_output_and_its_exit_code_and_readers_hear_of_it() {
    let (world, session, client) = world();
    let (told, heard) = std::sync::mpsc::channel::<Value>();
    let _reader = follow(world.address(), &session, move |data| {
        let _ = told.send(serde_json::from_str(data).unwrap());
    });
    let body = command(&world, &session, &client, "pwd; echo err >&2; exit 3");
    let workspace = world.base().join("workspace").display().to_string();
    assert_eq!(body, json!({"exitCode": 3, "output": format!("{workspace}\nerr\n"), "aborted": false}));
    let wanted = |event: &Value| {
        event["type"] == "user_shell_command"
            || event["type"] == "user_shell_result"
            || event["data"]["update"]["sessionUpdate"] == "shell_output"
    };
    let events: Vec<Value> = heard.iter().filter(wanted).take(3).collect();
    assert_eq!(events[0]["data"]["command"], "pwd; echo err >&2; exit 3");
    assert_eq!(events[1]["data"]["update"]["output"], body["output"]);
    let result = json!({"sessionId": session, "exitCode": 3, "signal": null, "aborted": false});
    assert_eq!((&events[2]["type"], &events[2]["data"]), (&json!("user_shell_result"), &result));
    assert!(events.iter().all(|event| event["originatorClientId"] == json!(client) && event.get("promptId").is_none()));
}

#[test]
fn commands_need_a_flag_a_registered_client_and_words() {
    let mut closed = World::new();
    let session = closed.session();
    let (status, body) = run(&closed, &session, None, &json!({"command": "true"}));
    assert_eq!((status, &body["code"]), (403, &json!("session_shell_disabled")));
    let tags = closed.get("/capabilities")["features"].to_string();
    assert!(!tags.contains("session_shell_command"));
    let (mut world, session, client) = world();
    assert!(world.get("/capabilities")["features"].to_string().contains("session_shell_command"));
    for (who, body, status, code) in [
        (None, json!({"command": "true"}), 403, "client_id_required"),
        (Some("client_other"), json!({"command": "true"}), 400, "invalid_client_id"),
        (Some(client.as_str()), json!({}), 400, "invalid_command"),
        (Some(client.as_str()), json!({"command": " "}), 400, "invalid_command"),
    ] {
        let answer = run(&world, &session, who, &body);
        assert_eq!((answer.0, &answer.1["code"]), (status, &json!(code)), "{body}");
    }
    assert_eq!(notes(&world, &session), Vec::<String>::new());
}

#[test]
fn a_command_has_no_input_and_not_the_daemons_token() {
    let (world, session, client) = world();
    // The world's daemon has no token; the hosts drop the variable whatever it says.
    let body = command(&world, &session, &client, "cat; env | grep -c '^TURND_TOKEN=\\|^QWEN_SERVER_TOKEN='");
    assert_eq!(body["output"], "0\n");
}

#[test]
fn much_output_is_cut_between_characters_and_that_is_said() {
    let (world, session, client) = world();
    let body = command(&world, &session, &client, "yes ü | tr -d '\\n' | head -c 400001");
    let output = body["output"].as_str().unwrap();
    assert_eq!((output.len(), &body["outputTruncated"]), (256 * 1024, &json!(true)));
    assert!(output.chars().all(|letter| letter == 'ü'));
    assert_eq!(body["exitCode"], 0);
}

#[test]
fn a_second_command_waits_for_its_caller_to_try_again() {
    let (world, session, client) = world();
    let path = format!("/session/{session}/shell");
    let first = open(
        world.address(),
        "POST",
        &path,
        Some(&client),
        &json!({"command": "touch begun; while :; do sleep 1; done"}),
    );
    let workspace = world.base().join("workspace");
    until("the first one runs", || workspace.join("begun").exists().then_some(()));
    let (status, body) = run(&world, &session, Some(&client), &json!({"command": "true"}));
    assert_eq!((status, &body["code"]), (409, &json!("shell_in_progress")));
    drop(first);
}

#[test]
fn a_command_leaves_nothing_open_and_a_reload_keeps_it() {
    let (mut world, session, client) = world();
    command(&world, &session, &client, "echo before");
    let prompt = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &prompt)["resultText"], "echo: hello");
    command(&world, &session, &client, "echo after; exit 7");
    let live = world.prompt(&session, "hang");
    world.until_chunk(&session, &live);
    let body = command(&world, &session, &client, "echo meanwhile");
    assert_eq!(body["output"], "meanwhile\n");
    assert_eq!(world.get(&format!("/session/{session}/turns/{live}"))["state"], "running");
    world.call("POST", &format!("/session/{session}/cancel"), "{}");
    assert_eq!(world.settle(&session, &live)["state"], "cancelled");
    command(&world, &session, &client, "echo last");
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let load = world.load(&session);
    let outputs: Vec<Value> = shown(&load).iter().map(|update| update["output"].clone()).collect();
    assert_eq!(outputs, ["", "before\n", "", "after\n", "", "meanwhile\n", "", "last\n"]);
    let after = &shown(&load)[3]["_meta"];
    assert_eq!((&after["source"], &after["exitCode"]), (&json!("user-shell"), &json!(7)));
    assert_eq!(shown(&load)[2]["_meta"]["command"], "echo after; exit 7");
}

#[test]
fn a_session_that_ran_nothing_but_a_command_can_be_loaded() {
    let (mut world, session, client) = world();
    command(&world, &session, &client, "echo alone");
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    assert_eq!(shown(&world.load(&session)).len(), 2);
    let prompt = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &prompt)["resultText"], "echo: hello");
}

#[test]
fn a_close_ends_the_command_and_its_caller_hears_what_there_was() {
    let (mut world, session, client) = world();
    let path = format!("/session/{session}/shell");
    let text = "echo half; sh -c 'trap \"\" TERM; touch begun; while :; do sleep 1; done'";
    let running = open(world.address(), "POST", &path, Some(&client), &json!({ "command": text }));
    let workspace = world.base().join("workspace");
    until("the command runs", || workspace.join("begun").exists().then_some(()));
    let family = world.family();
    assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
    let (status, body) = read(running);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, body), (200, json!({"exitCode": null, "output": "half\n", "aborted": true})));
    assert_eq!(notes(&world, &session), ["user_shell_command", "user_shell_result"]);
    let daemon = world.pid();
    world.until_dead(&family.into_iter().filter(|pid| *pid != daemon).collect());
}

#[test]
fn a_kill_under_a_command_ends_it_and_fakes_no_open_prompt() {
    for everything in [false, true] {
        let (mut world, session, client) = world();
        let prompt = world.prompt(&session, "hello");
        world.settle(&session, &prompt);
        let path = format!("/session/{session}/shell");
        let text = "touch begun; while :; do sleep 1; done";
        let running = open(world.address(), "POST", &path, Some(&client), &json!({ "command": text }));
        let workspace = world.base().join("workspace");
        until("the command runs", || workspace.join("begun").exists().then_some(()));
        let family = world.family();
        if everything {
            world.kill_everything()
        } else {
            world.kill_daemon()
        }
        drop(running);
        let load = world.load(&session);
        world.until_dead(&family);
        let ended =
            if everything { vec!["user_shell_command"] } else { vec!["user_shell_command", "user_shell_result"] };
        assert_eq!(notes(&world, &session), ended);
        assert_eq!(load["promptTerminals"][0]["terminal"], "completed", "{load}");
        assert_eq!(load["promptTerminals"].as_array().unwrap().len(), 1);
        let explained = crate::explain::explain(&world, &session).0;
        assert_eq!(explained["classify"]["kind"], "none", "{explained}");
        fs::remove_file(workspace.join("begun")).unwrap();
        let next = world.prompt(&session, "again");
        assert_eq!(world.settle(&session, &next)["resultText"], "echo: again");
    }
}
