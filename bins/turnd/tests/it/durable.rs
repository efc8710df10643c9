//! Durable requests from the command line, with a real daemon and an agent, over kills and lost answers.

use std::os::unix::process::ExitStatusExt as _;

use serde_json::Value;

use crate::commands::{stdout, turnd};
use crate::front::Front;
use crate::requests::stderr;
use crate::scripted::{Lines, Started};
use crate::world::World;

/// Runs a command to its end and demands a status; what it printed.
fn demand(front: &Front, words: &[&str], status: i32) -> String {
    let output = front.command(words).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{words:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Sends a text under an id and waits for its end.
fn complete(front: &Front, session: &str, id: &str, text: &str) {
    demand(front, &["send", session, "--return-final", "--queue", "--request-id", id, text], 0);
    demand(front, &["request", "wait", id], 0);
}

/// The next line of a watch, and what it says.
fn next(lines: &mut Lines) -> (String, Value) {
    let line = lines.next();
    let event = serde_json::from_str(&line).unwrap();
    (line, event)
}

#[test]
fn scenario_67_what_a_watch_prints_when_a_request_ends_is_what_get_shows_byte_for_byte() {
    let mut world = World::new();
    let (front, session) = (Front::of(world.address()), world.session());
    let mut watch = front.start(&["request", "watch"]);
    let mut lines = watch.lines();
    complete(&front, &session, "job-1", "hello");
    let (line, event) = next(&mut lines);
    assert_eq!((&event["request_id"], &event["final_message"]), (&"job-1".into(), &"echo: hello".into()));
    let shown = demand(&front, &["request", "get", "job-1"], 0);
    assert!(shown.contains(&format!("\"terminal\":{}", line.trim_end())), "{shown}");
    assert_eq!(demand(&front, &["request", "watch", "--once"], 0), line);
    let cursor = event["cursor"].as_str().unwrap();
    assert_eq!(demand(&front, &["request", "watch", "--once", "--cursor", cursor], 0), "");
    let listed: Value = serde_json::from_str(&demand(&front, &["request", "list", "--state", "completed"], 0)).unwrap();
    assert_eq!(listed["request_id"], "job-1");
    assert_eq!(demand(&front, &["request", "list", "--state", "bound"], 0), "");
}

#[test]
fn scenario_71_a_watch_goes_on_over_kills_of_the_daemon_and_repeats_and_loses_nothing() {
    let mut world = World::new();
    let (front, session) = (Front::of(world.address()), world.session());
    let mut watch = front.start(&["request", "watch"]);
    let (mut lines, mut printed) = (watch.lines(), String::new());
    for life in 1..=3 {
        let id = format!("job-{life}");
        complete(&front, &session, &id, "hello");
        let (line, event) = next(&mut lines);
        assert_eq!((&event["request_id"], &event["terminal_event_sequence"]), (&id.into(), &life.into()));
        printed.push_str(&line);
        world.kill_everything();
        front.lead_to(world.address());
        world.load(&session);
    }
    assert_eq!(demand(&front, &["request", "watch", "--once"], 0), printed);
}

/// Kills a watch with signal 9.
fn kill(mut watch: Started) {
    watch.0.kill().unwrap();
    let status = watch.0.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "it was there until then: {status}");
}

/// What becomes of a daemon between two watches.
type Ending = fn(&mut World);

#[test]
fn scenario_77_a_watch_that_was_killed_behind_its_line_and_begins_again_at_the_old_number_prints_the_same_bytes() {
    let mut world = World::new();
    let (front, session) = (Front::of(world.address()), world.session());
    complete(&front, &session, "job-1", "hello");
    complete(&front, &session, "job-2", "wide 20000");
    let stored = "1";
    let watched = || front.start(&["request", "watch", "--after", stored]);
    // The lines come at their ends, and one that was there before.
    let mut watch = watched();
    let mut lines = watch.lines();
    let mut printed = vec![lines.next()];
    complete(&front, &session, "job-3", "hello \u{fc}\u{1f600}\n\"quoted\"");
    printed.push(lines.next());
    kill(watch);
    let ids: Vec<Value> =
        printed.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["request_id"].clone()).collect();
    assert_eq!(ids, ["job-2", "job-3"], "what is behind the number, and in order");
    let endings: [(&str, Ending); 4] = [
        ("the same daemon", |_| ()),
        ("the daemon was killed", World::kill_daemon),
        ("everything was killed", World::kill_everything),
        ("the daemon was ended", |world| {
            assert_eq!(world.terminate(), Some(0));
            world.start_again();
        }),
    ];
    for (life, end) in endings {
        end(&mut world);
        front.lead_to(world.address());
        let mut again = watched();
        let mut lines = again.lines();
        assert_eq!([lines.next(), lines.next()], printed[..], "{life}");
        kill(again);
        let once = demand(&front, &["request", "watch", "--once", "--after", stored], 0);
        assert_eq!(once, printed.concat(), "{life}");
        let shown = demand(&front, &["request", "get", "job-3"], 0);
        assert!(shown.contains(&format!("\"terminal\":{}", printed[1].trim_end())), "{life}: {shown}");
    }
}

#[test]
fn a_request_whose_answers_were_lost_runs_once_and_its_copy_gets_the_receipt() {
    let mut world = World::journaled(&[]);
    let (front, session) = (Front::of(world.address()), world.session());
    front.lose(2);
    let receipt = demand(&front, &["send", &session, "--return-final", "only once"], 0);
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!((&receipt["replayed"], front.left_to_lose()), (&true.into(), 0), "{receipt}");
    demand(&front, &["request", "wait", receipt["request_id"].as_str().unwrap()], 0);
    let prompts = world.journal().iter().filter(|line| line["heard"]["method"] == "session/prompt").count();
    assert_eq!(prompts, 1, "{:?}", world.journal());
}

#[test]
fn the_daemon_and_the_command_line_mean_the_same_by_a_refusal() {
    let mut world = World::new();
    let (front, session) = (Front::of(world.address()), world.session());
    complete(&front, &session, "job-1", "hello");
    let send =
        |id, text, status| demand(&front, &["send", &session, "--return-final", "--request-id", id, text], status);
    send("job-1", "another text", 4);
    assert!(send("job-1", "hello", 4).is_empty(), "queued or not is part of what was asked");
    demand(&front, &["send", "nowhere", "--return-final", "hello"], 3);
    demand(&front, &["request", "get", "never"], 3);
    demand(&front, &["request", "watch", "--after", "9"], 7);
    demand(&front, &["request", "watch", "--once", "--stream", "another"], 7);
    demand(&front, &["request", "ack", "billing", "9"], 7);
    demand(&front, &["request", "ack", "billing", "1"], 0);
    send("job-2", "slow 60000", 0);
    send("job-3", "hello", 5);
    demand(&front, &["request", "wait", "job-2", "--timeout-ms", "1"], 11);
    demand(&front, &["request", "cancel", "job-2", "--interrupt"], 0);
    demand(&front, &["request", "wait", "job-2"], 10);
}

#[test]
fn the_store_of_a_daemon_that_was_stopped_is_found_where_the_daemon_kept_it() {
    let mut world = World::new();
    let (front, session) = (Front::of(world.address()), world.session());
    complete(&front, &session, "job-1", "hello");
    assert_eq!(world.terminate(), Some(0));
    let folder = |name| world.base().join(name).to_str().unwrap().to_owned();
    let (store, workspace) = (folder("store"), folder("workspace"));
    let output = turnd(&["request", "store", "verify", "--store", &store, "--workspace", &workspace]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((output.status.code(), &report["head"], &report["events"]), (Some(0), &1.into(), &1.into()), "{report}");
}
