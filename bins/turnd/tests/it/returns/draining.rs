//! Requests whose daemon is told to end (return requests, section 2.11): what runs has a while to be answered, and what waits has not.

use std::process::Command;

use serde_json::{Value, json};

use super::{
    all_events, body, ended, get, interrupts, is_refused, now_ms, post, prompts, sent, submit, submit_with, told, with,
    world,
};
use crate::http::Connection;
use crate::world::{World, until};

/// Tells a daemon to end, and does not wait for it.
fn signal(pid: u32) {
    let script = format!("kill -TERM {pid}");
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
}

/// A request that waits behind another one.
fn queue(world: &mut World, session: &str, id: &str) {
    submit_with(world, session, &with(body(id, "hello"), &json!({ "queue": true })));
}

/// Epoch milliseconds at which the host put the end of the only turn on record.
fn settled_at(world: &World, session: &str) -> u64 {
    let transcript = world.transcript(session);
    let mut lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let result = lines.find(|line| line["subtype"] == "turn_result").unwrap();
    result["systemPayload"]["endedAt"].as_u64().unwrap()
}

/// The ledger's words for how a session's prompts ended, in their order.
fn terminals(world: &World, session: &str) -> Vec<String> {
    let ledger = world.ledger(session);
    let lines = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| Some(line["terminal"].as_str()?.to_owned())).collect()
}

/// The states that the store has on disk behind the end of its daemon, which has closed it.
fn on_disk(world: &World, ids: &[&str]) -> Vec<&'static str> {
    let folder = crate::world::chats(world).with_file_name("turnd-requests");
    let store = request::store::Store::open(&folder, request::store::Options::default(), 1).unwrap().0;
    assert!(store.was_clean());
    let state = |id: &&str| {
        let id = request::RequestId::parse(id).unwrap();
        match store.get(&id).unwrap().unwrap() {
            request::store::Entry::Request(request) => request.state.as_str(),
            gone => panic!("{gone:?}"),
        }
    };
    ids.iter().map(state).collect()
}

#[test]
fn scenario_20_a_daemon_that_stops_takes_no_new_request_and_sends_nothing_but_tells_what_is_on_record() {
    let mut world = world();
    let (idle, running) = (world.session(), world.session());
    let done = submit(&mut world, &idle, "done", "hello");
    let over = ended(&mut world, "done");
    let begun = submit(&mut world, &running, "begun", "deaf");
    sent(&world, 2);
    let (pid, processes) = (world.pid(), world.family());
    // A host that does nothing holds the end up for as long as there is something to ask.
    world.signal_host(&running, "STOP");
    signal(pid);
    until("the daemon stops", || (world.get("/return-requests/stream")["draining"] == true).then_some(()));
    assert!(Connection::try_open(world.address()).is_none(), "there is no new caller");
    for (session, fields) in [(&idle, json!({})), (&running, json!({})), (&running, json!({ "queue": true }))] {
        is_refused(&mut world, session, &with(body("X", "and now"), &fields), 503, "draining");
        assert_eq!(world.call("GET", "/return-requests/X", "").0, 404, "{fields}");
    }
    for (session, request, first, is_over) in
        [(&idle, body("done", "hello"), &done, true), (&running, body("begun", "deaf"), &begun, false)]
    {
        let (status, again) = post(&mut world, session, &request);
        assert_eq!((status, &again["replayed"]), (200, &json!(true)), "{again}");
        assert_eq!((&again["prompt_id"], &again["reply_pending"]), (&first["prompt_id"], &json!(!is_over)), "{again}");
        assert_eq!(again.get("terminal"), over.get("terminal").filter(|_| is_over), "{again}");
    }
    let (status, refusal) = post(&mut world, &running, &body("begun", "and now"));
    assert_eq!((status, &refusal["code"]), (422, &json!("request_id_reused")), "{refusal}");
    world.signal_host(&running, "CONT");
    world.until_ended_by(|| signal(pid));
    world.until_dead(&processes);
    assert_eq!(prompts(&world), 2, "nothing was sent");
    assert_eq!(on_disk(&world, &["done", "begun"]), ["completed", "aborted"]);
    world.start_again();
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404, "nothing was stored");
    world.load(&idle);
    submit(&mut world, &idle, "X", "and now");
    let taken = ended(&mut world, "X");
    assert_eq!(
        (told(&taken).as_str(), &taken["terminal"]["final_message"]),
        ("completed - yes", &json!("echo: and now"))
    );
    all_events(&mut world, 3);
    sent(&world, 3);
}

#[test]
fn scenario_62_what_is_answered_while_its_daemon_stops_is_completed_and_on_disk_before_the_exit() {
    let mut world = world();
    let (one, two) = (world.session(), world.session());
    submit(&mut world, &one, "X", "slow 1500");
    queue(&mut world, &one, "Y");
    world.prompt(&two, "hang");
    sent(&world, 2);
    assert_eq!(world.terminate(), Some(0));
    assert_eq!(terminals(&world, &one), ["error", "completed"], "what waits is over before what runs");
    assert_eq!(on_disk(&world, &["X", "Y"]), ["completed", "delivery_failed"]);
    world.start_again();
    let over = get(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["stop_reason"]), ("completed - yes", &json!("end_turn")));
    assert!(over["terminal"]["final_message"].is_string() && over.get("late_evidence").is_none(), "{over}");
    assert_eq!(told(&get(&mut world, "Y")), "delivery_failed refused_before_dispatch no");
    let order: Vec<_> = all_events(&mut world, 2).iter().map(|event| event["request_id"].clone()).collect();
    assert_eq!(order, ["Y", "X"]);
    assert_eq!(interrupts(&world), 0);
    sent(&world, 2);
}

#[test]
fn scenario_62_an_agent_that_is_still_at_it_is_told_to_cancel_and_the_end_is_dated_behind_its_answer() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "hang");
    sent(&world, 1);
    assert_eq!(world.terminate(), Some(0));
    let answered_at = settled_at(&world, &session);
    assert_eq!(terminals(&world, &session), ["cancelled"]);
    assert_eq!(on_disk(&world, &["X"]), ["aborted"]);
    world.start_again();
    let over = get(&mut world, "X");
    assert_eq!(told(&over), "aborted daemon_shutdown yes");
    assert!(over["ended_at"].as_u64().unwrap() >= answered_at, "{answered_at}: {over}");
    assert!(over.get("late_evidence").is_none() && over.get("late_outcome").is_none(), "{over}");
    assert_eq!(interrupts(&world), 1);
}

#[test]
fn scenario_62_an_agent_that_hears_no_cancel_holds_the_end_up_no_longer_than_the_bound() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "deaf");
    sent(&world, 1);
    let told_at = now_ms();
    assert_eq!(world.terminate(), Some(0));
    assert_eq!(terminals(&world, &session), ["error"]);
    assert_eq!(on_disk(&world, &["X"]), ["aborted"]);
    world.start_again();
    let over = get(&mut world, "X");
    assert_eq!(told(&over), "aborted daemon_shutdown yes");
    // 9 s, and as much as a machine under load takes beside that.
    assert!(over["ended_at"].as_u64().unwrap() < told_at + 60_000, "{told_at}: {over}");
    assert!(over.get("late_evidence").is_none(), "{over}");
    assert_eq!(interrupts(&world), 1);
    all_events(&mut world, 1);
}

#[test]
fn a_daemon_that_is_told_again_waits_for_no_answer() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "deaf");
    sent(&world, 1);
    let pid = world.pid();
    signal(pid);
    // Signals that come at once are one.
    world.until_ended_by(|| signal(pid));
    world.start_again();
    assert_eq!(told(&get(&mut world, "X")), "aborted daemon_shutdown yes");
    assert_eq!(interrupts(&world), 0, "it did not even come to the cancel");
}

#[test]
fn a_daemon_that_is_killed_while_it_stops_has_lost_nothing_of_what_its_host_goes_on_with() {
    let mut world = World::journaled(&["--linger-ms", "60000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "slow 2000");
    queue(&mut world, &session, "Y");
    signal(world.pid());
    until("what waits has ended", || (get(&mut world, "Y")["reply_pending"] == false).then_some(()));
    world.kill_daemon();
    let over = ended(&mut world, "X");
    assert_eq!(
        (told(&over).as_str(), &over["terminal"]["evidence"]),
        ("completed - yes", &json!("transcript_exact")),
        "{over}"
    );
    assert_eq!(told(&get(&mut world, "Y")), "delivery_failed refused_before_dispatch no");
    all_events(&mut world, 2);
    assert_eq!(prompts(&world), 1);
}

#[test]
fn an_outcome_that_waits_for_its_store_is_told_once_though_the_daemon_ends() {
    let mut world = world();
    world.restart_failing("before:terminal=busy*4");
    let session = world.session();
    submit(&mut world, &session, "X", "slow 500");
    assert_eq!(world.terminate(), Some(0));
    assert_eq!(on_disk(&world, &["X"]), ["completed"]);
    world.start_again();
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "completed - yes");
    assert!(over.get("late_evidence").is_none(), "{over}");
    all_events(&mut world, 1);
}
