//! Branching, with a real agent and a real host.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::world::{World, chats, until};

/// A session with these prompts, all of them answered; their ids.
fn talked(world: &mut World, prompts: &[&str]) -> (String, Vec<String>) {
    let session = world.session();
    let asked = prompts.iter().map(|text| ask(world, &session, text).0).collect();
    (session, asked)
}

/// A prompt's id, and what was answered.
fn ask(world: &mut World, session: &str, text: &str) -> (String, String) {
    let prompt = world.prompt(session, text);
    let turn = world.settle(session, &prompt);
    assert_eq!(turn["state"], "completed");
    (prompt, turn["resultText"].as_str().unwrap_or_default().to_owned())
}

fn branch(world: &mut World, session: &str, body: &Value) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/branch"), &body.to_string())
}

fn transcript(world: &World, session: &str) -> PathBuf {
    chats(world).join(format!("{session}.jsonl"))
}

/// The names of the files in the folder of sessions that have this end.
fn files(world: &World, end: &str) -> Vec<String> {
    let names = fs::read_dir(chats(world)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(end)).collect()
}

fn shown(loaded: &Value) -> Vec<&str> {
    let frames = loaded["compactedReplay"].as_array().into_iter().chain(loaded["liveJournal"].as_array()).flatten();
    frames.filter_map(|frame| frame["data"]["update"]["content"]["text"].as_str()).collect()
}

#[test]
fn a_branch_goes_on_where_its_source_stands_and_each_goes_its_own_way() {
    let mut world = World::new();
    let (source, prompts) = talked(&mut world, &["one", "two"]);
    let (status, made) = branch(&mut world, &source, &json!({"name": "mine"}));
    assert_eq!(status, 201, "{made}");
    let copy = made["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, source);
    assert_eq!((&made["displayName"], &made["attached"]), (&json!("mine(1)"), &json!(false)));
    assert_eq!(made["forkedFrom"], json!({"sessionId": source, "displayName": source[..8]}));
    assert_eq!((&made["memory"], &made["hasActivePrompt"]), (&json!("fresh"), &json!(false)));
    assert!(made["clientId"].is_string() && made["eventEpoch"].is_string() && made["lastEventId"].is_u64(), "{made}");
    assert_eq!(shown(&made), ["one", "echo: one", "two", "echo: two"]);
    for prompt in &prompts {
        for rest in ["", "/result"] {
            let path = format!("/session/{copy}/turns/{prompt}{rest}");
            assert_eq!(world.call("GET", &path, "").1["code"], "prompt_not_found", "it inherits no identity");
        }
    }
    assert_eq!(world.get(&format!("/session/{copy}/turns/current"))["state"], "idle");
    assert!(made.get("promptTerminals").is_none() && files(&world, ".ledger.jsonl").len() == 1, "{made}");
    let there = ask(&mut world, &copy, "three").0;
    let here = ask(&mut world, &source, "four").0;
    assert_eq!(world.call("GET", &format!("/session/{source}/turns/{there}"), "").0, 404);
    assert_eq!(world.call("GET", &format!("/session/{copy}/turns/{here}"), "").0, 404);
    world.kill_everything();
    let loaded = world.load(&copy);
    assert_eq!(shown(&loaded), ["one", "echo: one", "two", "echo: two", "three", "echo: three"]);
    assert_eq!(loaded["promptTerminals"].as_array().unwrap().len(), 1);
    let loaded = world.load(&source);
    assert_eq!(shown(&loaded), ["one", "echo: one", "two", "echo: two", "four", "echo: four"]);
}

#[test]
fn a_branch_at_a_prompt_of_ours_ends_with_its_turn_and_is_on_disk_only() {
    let mut world = World::new();
    let (source, prompts) = talked(&mut world, &["one", "two", "three"]);
    let (status, made) = branch(&mut world, &source, &json!({"atRecordId": prompts[1]}));
    assert_eq!(status, 201, "{made}");
    let copy = made["sessionId"].as_str().unwrap().to_owned();
    let name = format!("{}(1)", &source[..8]);
    let forked = json!({"sessionId": source, "displayName": source[..8]});
    assert_eq!(made, json!({"sessionId": copy, "displayName": name, "forkedFrom": forked}));
    assert_eq!(world.call("GET", &format!("/session/{copy}/status"), "").0, 404, "nobody has loaded it");
    assert_eq!(shown(&world.load(&copy)), ["one", "echo: one", "two", "echo: two"]);
    let (_, again) = branch(&mut world, &source, &json!({"atRecordId": prompts[0], "name": 7}));
    assert_eq!(again["displayName"], format!("{}(2)", &source[..8]), "a name that is no text is none");
}

#[test]
fn a_point_that_is_none_a_session_without_a_word_and_a_busy_one_are_refused() {
    let mut world = World::new();
    let (source, prompts) = talked(&mut world, &["one"]);
    let record = transcript::rewind_points(&transcript(&world, &source), None).unwrap().points.remove(0).record;
    for at in [json!("nope"), json!(""), json!(record), json!(7)] {
        let (status, refused) = branch(&mut world, &source, &json!({"atRecordId": at}));
        assert_eq!((status, &refused["code"]), (409, &json!("branch_point_invalid")), "{at}: {refused}");
        assert_eq!(refused["errorKind"], "branch_point_invalid");
    }
    let empty = world.session();
    assert_eq!(branch(&mut world, &empty, &json!({})).1["code"], "branch_point_invalid");
    let running = world.prompt(&source, "hang");
    let path = format!("/session/{source}/turns/{running}");
    until("the turn runs", || (world.get(&path)["state"] == "running").then_some(()));
    let (status, refused) = branch(&mut world, &source, &json!({"atRecordId": prompts[0]}));
    assert_eq!((status, &refused["code"]), (409, &json!("branch_while_prompt_active")));
    assert_eq!(branch(&mut world, "nobody", &json!({})).1["code"], "session_not_found");
    // A host would wait for it long after its daemon is gone.
    assert_eq!(world.call("POST", &format!("/session/{source}/cancel"), "{}").0, 204);
    world.settle(&source, &running);
    assert_eq!(files(&world, ".jsonl").iter().filter(|name| !name.ends_with(".ledger.jsonl")).count(), 1);
    assert!(files(&world, ".branching").is_empty());
}

#[test]
fn a_branch_of_a_rewound_session_has_what_is_left_of_it() {
    let mut world = World::new();
    let (source, prompts) = talked(&mut world, &["one", "two"]);
    let body = json!({"promptId": prompts[1]}).to_string();
    assert_eq!(world.call("POST", &format!("/session/{source}/rewind"), &body).0, 200);
    assert_eq!(branch(&mut world, &source, &json!({"atRecordId": prompts[1]})).1["code"], "branch_point_invalid");
    let (_, made) = branch(&mut world, &source, &json!({}));
    assert_eq!(shown(&made), ["one", "echo: one"]);
    let copy = made["sessionId"].as_str().unwrap().to_owned();
    let places = world.get(&format!("/session/{copy}/rewind/snapshots"));
    let place = places["snapshots"][0]["promptId"].as_str().unwrap().to_owned();
    let body = json!({ "promptId": place }).to_string();
    let (status, done) = world.call("POST", &format!("/session/{copy}/rewind"), &body);
    assert_eq!(
        (status, &done["targetTurnIndex"]),
        (200, &json!(0)),
        "the uuid of its record is a name of a place: {done}"
    );
}

#[test]
fn what_a_killed_daemon_left_of_a_copy_is_no_session_and_goes_with_the_next_copy() {
    let mut world = World::new();
    let (source, _) = talked(&mut world, &["one"]);
    let half = chats(&world).join("11111111-1111-4111-8111-111111111111.branching");
    fs::write(&half, fs::read(transcript(&world, &source)).unwrap()).unwrap();
    world.kill_everything();
    assert_eq!(world.call("POST", "/session/11111111-1111-4111-8111-111111111111/load", "{}").0, 404);
    world.load(&source);
    assert_eq!(branch(&mut world, &source, &json!({})).0, 201);
    assert!(!half.exists());
}

/// An agent that does not start where the file `refuse` lies in its folder.
const UNWILLING: &str =
    concat!(r#"sh -c 'test -e refuse && exit 3; exec ""#, env!("CARGO_BIN_EXE_turnd"), r#"" agent'"#);

#[test]
fn a_copy_that_no_agent_takes_up_is_gone_with_all_that_its_host_left() {
    let mut world = World::with(&["--agent", UNWILLING]);
    let (source, _) = talked(&mut world, &["one"]);
    let refuse = world.base().join("workspace/refuse");
    fs::write(&refuse, "").unwrap();
    let (status, refused) = branch(&mut world, &source, &json!({}));
    assert_eq!((status, &refused["code"]), (502, &json!("agent_unavailable")), "{refused}");
    let left: Vec<String> = files(&world, "").into_iter().filter(|name| !name.starts_with(&source)).collect();
    assert_eq!(left, Vec::<String>::new());
    fs::remove_file(&refuse).unwrap();
    assert_eq!(branch(&mut world, &source, &json!({})).0, 201);
}

#[test]
fn a_daemon_killed_while_it_branches_leaves_a_whole_session_or_none() {
    let mut world = World::new();
    let (source, _) = talked(&mut world, &["one", "long 3000000"]);
    for round in 0..6_u32 {
        let mut connection = world.connect();
        let path = format!("/session/{source}/branch");
        let asking = std::thread::spawn(move || connection.try_call("POST", &path, r#"{"name":"x"}"#));
        // Each round waits for one look more at what is there.
        for _ in 0..round {
            files(&world, "");
        }
        if round % 2 == 0 {
            until("a copy was begun or is there", || {
                let begun = !files(&world, ".branching").is_empty() || files(&world, ".jsonl").len() > 2;
                (begun || asking.is_finished()).then_some(())
            });
        }
        world.kill_everything();
        drop(asking.join().unwrap());
        let sessions =
            files(&world, ".jsonl").into_iter().filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned));
        for session in sessions.filter(|id| !id.ends_with(".ledger") && *id != source) {
            let loaded = world.load(&session);
            assert_eq!(shown(&loaded)[..3], ["one", "echo: one", "long 3000000"], "{session}");
            world.call("DELETE", &format!("/session/{session}"), "");
            fs::remove_file(transcript(&world, &session)).unwrap();
        }
        world.load(&source);
    }
}
