//! Rewinding, with a real agent, a real host, and signal 9.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::world::{World, chats, until};

/// A session with these prompts, all of them answered; their ids.
fn talked(world: &mut World, prompts: &[&str]) -> (String, Vec<String>) {
    let session = world.session();
    let asked: Vec<String> = prompts.iter().map(|text| ask(world, &session, text)).collect();
    (session, asked)
}

fn ask(world: &mut World, session: &str, text: &str) -> String {
    let prompt = world.prompt(session, text);
    assert_eq!(world.settle(session, &prompt)["state"], "completed");
    prompt
}

/// What the agent says that it was asked before.
fn recalled(world: &mut World, session: &str) -> String {
    let prompt = world.prompt(session, "recall");
    world.settle(session, &prompt)["resultText"].as_str().unwrap().to_owned()
}

fn rewind(world: &mut World, session: &str, to: &str) -> (u16, Value) {
    world.call("POST", &format!("/session/{session}/rewind"), &json!({ "promptId": to }).to_string())
}

fn polled(world: &mut World, session: &str, prompt: &str) -> u16 {
    world.call("GET", &format!("/session/{session}/turns/{prompt}"), "").0
}

#[test]
fn a_rewind_to_our_own_prompt_id_takes_the_turns_from_the_poll_and_from_the_agent() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one", "two", "three"]);
    let (status, done) = rewind(&mut world, &session, &prompts[1]);
    assert_eq!(status, 200, "{done}");
    let warning = "files are not tracked in this session, so none was put back";
    let expected = json!({"rewound": true, "targetTurnIndex": 1, "filesChanged": [], "filesFailed": [],
        "warnings": [warning], "memory": "cut"});
    assert_eq!(done, expected);
    let statuses: Vec<_> = prompts.iter().map(|prompt| polled(&mut world, &session, prompt)).collect();
    assert_eq!(statuses, [200, 404, 404]);
    assert_eq!(world.get(&format!("/session/{session}/turns/current"))["promptId"], prompts[0]);
    for rest in ["", "/result"] {
        assert_eq!(polled(&mut world, &session, &format!("{}{rest}", prompts[2])), 404, "{rest}");
    }
    assert_eq!(recalled(&mut world, &session), "asked: one");
    let told = world.load(&session);
    let told = told["liveJournal"].as_array().into_iter().chain(told["compactedReplay"].as_array()).flatten();
    let event = told.clone().find(|event| event["type"] == "session_rewound").unwrap();
    assert_eq!(event["data"]["targetTurnIndex"], 1);
    assert_eq!((&event["data"]["promptId"], &event["data"]["memory"]), (&json!(prompts[1]), &json!("cut")));
}

#[test]
fn what_was_rewound_stays_so_when_everything_was_killed_and_an_id_of_it_stays_taken() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one"]);
    let chosen = |text: &str| json!({"promptId": "chosen-1", "prompt": [{"type": "text", "text": text}]}).to_string();
    let path = format!("/session/{session}/prompt");
    assert_eq!(world.call("POST", &path, &chosen("two")).0, 202);
    world.settle(&session, "chosen-1");
    assert_eq!(rewind(&mut world, &session, "chosen-1").0, 200);
    for life in 0..2 {
        assert_eq!(polled(&mut world, &session, &prompts[0]), 200);
        assert_eq!(polled(&mut world, &session, "chosen-1"), 404);
        let (status, receipt) = world.call("POST", &path, &chosen("two"));
        assert_eq!((status, &receipt["replayed"]), (202, &json!(true)), "it ran once, and runs no more");
        assert_eq!(world.call("POST", &path, &chosen("other")).1["code"], "prompt_id_conflict");
        assert_eq!(polled(&mut world, &session, "chosen-1"), 404);
        if life == 0 {
            world.kill_everything();
            let loaded = world.load(&session);
            let known = loaded["promptTerminals"].as_array().unwrap();
            assert_eq!(known.len(), 2, "the ledger keeps what it knows: {loaded}");
        }
    }
}

#[test]
fn an_agent_that_begins_anew_behind_a_restart_is_rewound_too() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one", "two"]);
    world.kill_everything();
    assert_eq!(world.load(&session)["memory"], "fresh");
    let later = ask(&mut world, &session, "three");
    let (status, done) = rewind(&mut world, &session, &prompts[1]);
    assert_eq!((status, &done["memory"], &done["targetTurnIndex"]), (200, &json!("fresh"), &json!(1)), "{done}");
    assert!(done["warnings"].as_array().unwrap().iter().any(|it| it.as_str().unwrap().contains("begins anew")));
    assert_eq!(recalled(&mut world, &session), "asked: ");
    let statuses: Vec<_> = [&prompts[0], &prompts[1], &later].map(|prompt| polled(&mut world, &session, prompt)).into();
    assert_eq!(statuses, [200, 404, 404]);
}

#[test]
fn a_busy_session_is_not_rewound_and_nothing_is_lost() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one"]);
    let running = world.prompt(&session, "hang");
    let path = format!("/session/{session}/turns/{running}");
    until("the turn runs", || (world.get(&path)["state"] == "running").then_some(()));
    let waiting = world.prompt(&session, "two");
    let (status, refused) = rewind(&mut world, &session, &prompts[0]);
    assert_eq!((status, &refused["code"], &refused["retryable"]), (409, &json!("session_busy"), &json!(true)));
    assert_eq!(world.call("POST", &format!("/session/{session}/cancel"), "{}").0, 204);
    assert_eq!(world.settle(&session, &running)["state"], "cancelled");
    assert_eq!(world.settle(&session, &waiting)["resultText"], "echo: two");
    assert_eq!(polled(&mut world, &session, &prompts[0]), 200);
}

#[test]
fn what_names_no_prompt_of_the_branch_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one", "two"]);
    let path = format!("/session/{session}/rewind");
    for (body, code) in [
        (json!({"promptId": "nobody"}), "invalid_rewind_target"),
        (json!({"promptId": format!("{session}########1")}), "invalid_rewind_target"),
        (json!({}), "missing_prompt_id"),
        (json!({"promptId": 7}), "missing_prompt_id"),
        (json!({"promptId": prompts[1], "rewindFiles": "yes"}), "invalid_rewind_files_flag"),
        (json!({"promptId": prompts[1], "memory": "some"}), "invalid_rewind_memory"),
    ] {
        let (status, refused) = world.call("POST", &path, &body.to_string());
        assert_eq!((status, refused["code"].as_str()), (400, Some(code)), "{body}: {refused}");
    }
    assert_eq!(recalled(&mut world, &session), "asked: one | two");
    let body = json!({"promptId": prompts[1], "rewindFiles": false}).to_string();
    let (status, done) = world.call("POST", &path, &body);
    assert_eq!((status, done.get("warnings")), (200, None), "{done}");
    assert_eq!(rewind(&mut world, &session, &prompts[1]).1["code"], "invalid_rewind_target", "it is gone already");
}

#[test]
fn the_places_are_listed_by_the_ids_of_their_prompts() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one", "two"]);
    let path = format!("/session/{session}/rewind/snapshots");
    let listed = world.get(&path);
    let listed = listed["snapshots"].as_array().unwrap();
    for (number, prompt) in (0..).zip(&prompts) {
        let place = &listed[number];
        assert_eq!((&place["promptId"], &place["daemonPromptId"]), (&json!(prompt), &json!(prompt)));
        assert_eq!(place["turnIndex"], number);
        assert_eq!(place["diffStats"], json!({"filesChanged": 0, "insertions": 0, "deletions": 0}));
        assert!(place["timestamp"].as_str().unwrap().ends_with('Z'), "{place}");
    }
    assert_eq!(listed.len(), 2);
    assert_eq!(rewind(&mut world, &session, &prompts[0]).0, 200);
    assert_eq!(world.get(&path), json!({ "snapshots": [] }));
}

/// What the files of a session say: the prompts on the active branch, and whether an agent's session is noted.
fn branch(world: &World, session: &str) -> Vec<String> {
    let path = chats(world).join(format!("{session}.jsonl"));
    let points = transcript::rewind_points(&path, None).unwrap().points;
    points.into_iter().filter_map(|point| point.prompt_id).collect()
}

#[test]
fn a_host_killed_around_a_rewind_leaves_the_old_branch_or_the_new_one_and_an_agent_that_knows_no_more() {
    let mut world = World::new();
    for round in 0..12_u32 {
        let (session, prompts) = talked(&mut world, &["one", "two", "three"]);
        let mut connection = world.connect();
        let body = json!({ "promptId": prompts[1] }).to_string();
        let path = format!("/session/{session}/rewind");
        let asking = thread::spawn(move || connection.try_call("POST", &path, &body));
        // Each round looks at the file a few times more before it kills: whatever has happened by then must be sound.
        for _ in 0..round * 3 {
            branch(&world, &session);
        }
        world.kill_host(&session);
        drop(asking.join().unwrap());
        world.until_gone(&session);
        let left = branch(&world, &session);
        let is_rewound = left == prompts[..1];
        assert!(is_rewound || left == prompts, "{left:?}");
        world.load(&session);
        assert_eq!(branch(&world, &session), left);
        assert_eq!(recalled(&mut world, &session), "asked: ", "the agent went with its host");
        let statuses: Vec<_> = prompts.iter().map(|prompt| polled(&mut world, &session, prompt)).collect();
        assert_eq!(statuses, if is_rewound { [200, 404, 404] } else { [200; 3] });
    }
}

#[test]
fn a_crash_right_behind_the_record_is_read_as_a_rewind_by_an_agent_that_begins_anew() {
    let mut world = World::new();
    let (session, prompts) = talked(&mut world, &["one", "two"]);
    world.call("DELETE", &format!("/session/{session}"), "");
    world.until_gone(&session);
    // What a host has done up to there: the agent's session is forgotten, the record written.
    let note = chats(&world).join(format!("{session}.host.json"));
    let mut noted: Value = serde_json::from_str(&fs::read_to_string(&note).unwrap()).unwrap();
    noted["agentSessionId"] = "".into();
    fs::write(&note, noted.to_string()).unwrap();
    let path = chats(&world).join(format!("{session}.jsonl"));
    let found = transcript::rewind_points(&path, Some(&prompts[1])).unwrap();
    let identity = transcript::Identity {
        session_id: session.clone(),
        cwd: world.base().join("workspace").display().to_string(),
        version: "0".into(),
    };
    let mut writer = transcript::Writer::open(&path, identity, transcript::Durability::Process).unwrap();
    let rewind = transcript::Rewind { leaf: found.leaf, before: found.points[0].before.clone(), truncated_count: 2 };
    writer.rewind(u64::try_from(found.points[0].at_ms.unwrap()).unwrap() + 60_000, &rewind).unwrap();
    assert_eq!(world.load(&session)["memory"], "fresh");
    let statuses: Vec<_> = prompts.iter().map(|prompt| polled(&mut world, &session, prompt)).collect();
    assert_eq!(statuses, [200, 404]);
    assert_eq!(recalled(&mut world, &session), "asked: ");
}
