//! What is said of a request after a kill at each step of its way. The daemon ends itself there with signal 9 (the plan in its environment),
//! another one is started on the same store, and the agents' journal says how often they were asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{
    all_events, body, cancel, ended, events, get, now_ms, post, prompts, reached, sent, submit, submit_with, told, with,
};
use crate::http::Connection;
use crate::world::{World, alive, until};

/// A world whose hosts live on for a turn of a second, with a session, whose daemon ends itself by a plan.
pub(super) fn doomed(plan: &str) -> (World, String) {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    world.restart_failing(plan);
    let session = world.session();
    (world, session)
}

/// Posts a request to a daemon that does not live to answer, and waits for the next life.
fn post_and_die(world: &mut World, session: &str, body: &Value) {
    let path = format!("/session/{session}/return-requests");
    let answer = world.connect().try_call("POST", &path, &body.to_string());
    assert_eq!(answer, None, "it was to die before its answer");
    world.until_killed();
}

/// The answer of a daemon that may end at any time.
fn try_post(world: &World, path: &str, body: &str) -> Option<(u16, String)> {
    Connection::try_open(world.address())?.try_call("POST", path, body)
}

/// What is said of the only request after a daemon was killed at a step of its submission.
fn after_kill_at(plan: &str, text: &str) -> (World, String, Value) {
    let (mut world, session) = doomed(plan);
    post_and_die(&mut world, &session, &body("X", text));
    let over = ended(&mut world, "X");
    let (status, again) = post(&mut world, &session, &body("X", text));
    assert_eq!((status, &again["terminal"]), (200, &over["terminal"]), "what ended is not sent again");
    assert_eq!(all_events(&mut world, 1)[0], over["terminal"]);
    (world, session, over)
}

/// The terminals of a session's ledger: their states and codes.
fn terminals(world: &World, session: &str) -> Vec<String> {
    let ledger = world.ledger(session);
    let lines = ledger.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = lines.filter(|line| line["terminal"].is_string());
    ends.map(|line| format!("{} {}", line["terminal"].as_str().unwrap(), line["code"].as_str().unwrap_or("-")))
        .collect()
}

#[test]
fn scenario_21_before_the_row_there_is_nothing_and_the_id_is_free() {
    let (mut world, session) = doomed("before:register=kill");
    post_and_die(&mut world, &session, &body("X", "hello"));
    assert_eq!(world.call("GET", "/return-requests/X", "").0, 404);
    let session = world.session();
    submit(&mut world, &session, "X", "hello");
    assert_eq!(told(&ended(&mut world, "X")), "completed - yes");
    sent(&world, 1);
}

#[test]
fn scenario_22_a_row_without_an_admission_was_never_sent() {
    let (world, _, over) = after_kill_at("after:register=kill", "hello");
    assert_eq!(told(&over), "indeterminate crash_before_submitted no");
    assert!(!world.base().join("journal.jsonl").exists() || prompts(&world) == 0);
}

#[test]
fn scenario_23_an_admission_without_a_dispatch_was_never_sent_and_the_ledger_says_so() {
    let (world, session, over) = after_kill_at("before:admitted=kill", "hello");
    assert_eq!(told(&over), "indeterminate crash_before_submitted no");
    assert_eq!(prompts(&world), 0);
    assert_eq!(terminals(&world, &session), ["error never_dispatched"]);
}

#[test]
fn scenario_24_behind_the_mark_of_the_dispatch_nobody_knows_whether_bytes_went_out() {
    let (world, _, over) = after_kill_at("after:dispatched=kill", "hello");
    assert_eq!(told(&over), "indeterminate crash_in_dispatch maybe");
    assert_eq!(prompts(&world), 0);
}

/// An agent that opens a session, reads the beginning of a prompt, and no more.
const SLOW_READER: &str = r#"cd "$(dirname "$0")"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')" "$1"; }
read -r line; answer '{"protocolVersion":1,"agentCapabilities":{}}'
read -r line; answer '{"sessionId":"ses"}'
head -c 100000 > part
mv part got
exec sleep 3600
"#;

#[test]
fn scenario_25_in_the_middle_of_the_line_nobody_knows_and_no_whole_prompt_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let (script, got) = (folder.path().join("agent"), folder.path().join("got"));
    std::fs::write(&script, SLOW_READER).unwrap();
    let mut world = World::with(&["--agent", &format!("sh '{}'", script.display()), "--linger-ms", "100"]);
    let session = world.session();
    let (mut connection, path) = (world.connect(), format!("/session/{session}/return-requests"));
    let request = body("X", &"x".repeat(1_000_000)).to_string();
    let posting = std::thread::spawn(move || connection.try_call("POST", &path, &request));
    until("a part of the line is read", || got.exists().then_some(()));
    world.kill_everything();
    assert_eq!(posting.join().unwrap(), None);
    assert_eq!(told(&ended(&mut world, "X")), "indeterminate crash_in_dispatch maybe");
    let got = std::fs::read(got).unwrap();
    assert!(got.len() == 100_000 && !got.contains(&b'\n') && !got.ends_with(b"}"));
    all_events(&mut world, 1);
}

#[test]
fn scenario_26_a_line_that_was_not_marked_as_sent_is_never_taken_for_completed() {
    let (mut world, session, over) = after_kill_at("before:written=kill", "hello");
    assert_eq!(told(&over), "indeterminate crash_in_dispatch maybe");
    sent(&world, 1);
    world.load(&session);
    assert!(world.transcript(&session).contains("echo: hello"), "the agent has run the turn to its end");
    assert_eq!(told(&get(&mut world, "X")), "indeterminate crash_in_dispatch maybe");
}

#[test]
fn scenario_27_a_caller_that_lost_the_answer_finds_the_receipt() {
    let (mut world, session) = doomed("after:written=kill");
    post_and_die(&mut world, &session, &body("X", "slow 300"));
    let (status, again) = post(&mut world, &session, &body("X", "slow 300"));
    assert_eq!((status, &again["replayed"], &again["input_written"]), (200, &json!(true), &json!("yes")), "{again}");
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("transcript_exact")));
    sent(&world, 1);
}

#[test]
fn scenario_28_when_daemon_host_and_agent_die_in_the_turn_nothing_is_known() {
    let mut world = super::world();
    let session = world.session();
    submit(&mut world, &session, "X", "slow 60000");
    sent(&world, 1);
    world.kill_everything();
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate daemon_lost yes");
    assert_eq!(over["detail"], "turn_interrupted");
    sent(&world, 1);
}

#[test]
fn scenario_28_an_agent_that_is_killed_with_its_daemon_leaves_nobody_to_say_how_its_turn_ended_though_its_host_lives() {
    let mut world = World::journaled(&["--linger-ms", "10000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "slow 60000");
    sent(&world, 1);
    world.kill_all_but_hosts();
    let over = ended(&mut world, "X");
    assert_eq!(told(&over), "indeterminate daemon_lost yes", "{over}");
    assert_eq!(over["detail"], "agent_gone");
    assert!(world.transcript(&session).contains("channel_closed"), "its host has put that on record");
    all_events(&mut world, 1);
}

#[test]
fn scenarios_29_30_a_host_that_outlived_the_daemon_records_the_turn_and_is_waited_for() {
    let mut world = World::journaled(&["--linger-ms", "10000"]);
    let session = world.session();
    submit(&mut world, &session, "X", "slow 1500");
    world.kill_daemon();
    let meanwhile = get(&mut world, "X");
    assert_eq!((&meanwhile["reply_pending"], &meanwhile["waiting_on"]), (&json!(true), &json!("recovery")));
    // A load of the session waits for the same, so that nothing else writes before it is decided.
    world.load(&session);
    let over = get(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("transcript_exact")));
    let turn = world.get(&format!("/session/{session}/turns/{}", over["prompt_id"].as_str().unwrap()));
    assert_eq!(over["terminal"]["final_message"], turn["resultText"]);
    all_events(&mut world, 1);
    sent(&world, 1);
}

#[test]
fn scenario_30_a_turn_whose_record_was_written_before_its_outcome_was_seen_is_completed_from_it() {
    let (mut world, session) = doomed("before:stage=kill");
    submit(&mut world, &session, "X", "slow 100");
    world.until_killed();
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("transcript_exact")));
    sent(&world, 1);
}

#[test]
fn scenario_33_a_staged_outcome_is_rolled_forward_to_ledger_and_request() {
    let (mut world, session) = doomed("after:stage=kill");
    submit(&mut world, &session, "X", "slow 100");
    world.until_killed();
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("rpc_response")));
    assert!(over["terminal"]["final_message"].as_str().unwrap().ends_with("done"), "{over}");
    assert_eq!(terminals(&world, &session), ["completed -"]);
    all_events(&mut world, 1);
    sent(&world, 1);
}

#[test]
fn scenario_34_an_end_that_is_on_the_ledger_already_is_rolled_forward_with_the_same_text() {
    let (mut world, session) = doomed("before:terminal=kill");
    submit(&mut world, &session, "X", "slow 100");
    world.until_killed();
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("rpc_response")));
    assert_eq!(terminals(&world, &session), ["completed -"]);
    all_events(&mut world, 1);
    sent(&world, 1);
}

#[test]
fn scenario_36_an_event_that_nobody_was_told_of_is_there_once_under_its_number() {
    let (mut world, session) = doomed("after:terminal=kill");
    submit(&mut world, &session, "X", "slow 100");
    world.until_killed();
    let event = all_events(&mut world, 1).remove(0);
    assert_eq!(told(&event), "completed - yes");
    world.kill_daemon();
    assert_eq!(events(&mut world, 0), [event]);
    assert_eq!(events(&mut world, 1), Vec::<Value>::new());
}

#[test]
fn scenario_37_a_recovery_that_is_killed_comes_to_the_same_end() {
    for plan in ["before:recovered=kill", "after:recovered=kill"] {
        let (mut world, session) = doomed("");
        submit(&mut world, &session, "X", "slow 60000");
        let other = world.session();
        world.prompt(&other, "hang");
        submit_with(&mut world, &other, &with(body("Y", "hello"), &json!({ "queue": true })));
        // No life in between may decide what this one is to be killed over.
        world.end_everything();
        world.restart_failing(plan);
        world.until_killed();
        assert_eq!(told(&ended(&mut world, "X")), "indeterminate daemon_lost yes", "{plan}");
        assert_eq!(told(&ended(&mut world, "Y")), "indeterminate crash_before_submitted no", "{plan}");
        let numbered = all_events(&mut world, 2);
        world.kill_everything();
        assert_eq!(all_events(&mut world, 2), numbered, "{plan}");
    }
}

#[test]
fn scenario_38_a_cancel_that_is_killed_has_happened_or_has_not() {
    for (plan, expected) in
        [("before:cancel=kill", "completed - yes"), ("after:cancel=kill", "cancelled client_cancel yes")]
    {
        let (mut world, session) = doomed(plan);
        submit(&mut world, &session, "X", "slow 500");
        assert_eq!(world.connect().try_call("POST", "/return-requests/X/cancel", "{}"), None, "{plan}");
        world.until_killed();
        let over = ended(&mut world, "X");
        assert_eq!(told(&over), expected, "{plan}");
        assert_eq!(all_events(&mut world, 1)[0], over["terminal"], "{plan}");
        assert_eq!(cancel(&mut world, "X", &json!({}))["terminal"], over["terminal"], "{plan}");
    }
}

/// What the callers of all lives were told, to be held against what is there at last.
#[derive(Default)]
struct Promises {
    /// The prompts of the ids that were taken.
    taken: BTreeMap<String, Value>,
    /// The ids that were refused as not sent.
    refused: BTreeSet<String>,
    /// The events of the stream by their numbers.
    events: BTreeMap<u64, Value>,
}

impl Promises {
    /// An answer to the submission of a new id.
    fn answered(&mut self, id: String, status: u16, answer: &str) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        if status == 202 {
            self.taken.insert(id, answer["prompt_id"].clone());
        } else {
            assert_eq!(answer["input_written"], "no", "{status} {answer}");
            self.refused.insert(id);
        }
    }

    /// The stream from its beginning, as a daemon gave it.
    fn streamed(&mut self, events: &[Value]) {
        for event in events {
            let number = event["terminal_event_sequence"].as_u64().unwrap();
            let told = self.events.entry(number).or_insert_with(|| event.clone());
            assert_eq!(told, event, "number {number} is told twice");
        }
    }

    /// All that was promised is there, ended, and nothing of what was refused.
    fn hold(&self, all: &[Value], events: &[Value]) {
        let prompts: BTreeMap<_, _> =
            all.iter().map(|one| (one["request_id"].as_str().unwrap(), &one["prompt_id"])).collect();
        let ended: BTreeSet<_> = events.iter().map(|event| event["request_id"].as_str().unwrap()).collect();
        for (id, prompt) in &self.taken {
            assert_eq!(prompts.get(&**id), Some(&prompt), "{id} was taken");
            assert!(ended.contains(&**id), "{id} was taken and has no event");
        }
        let kept: Vec<_> = self.refused.iter().filter(|id| prompts.contains_key(&***id)).collect();
        assert!(kept.is_empty(), "refused, and there all the same: {kept:?}");
        assert!(self.events.keys().all(|number| *number <= events.len() as u64), "{:?}", self.events.keys().last());
    }
}

#[test]
fn scenario_41_lives_that_end_anywhere_under_load_send_each_prompt_once_and_end_each_request_that_was_promised() {
    let mut world = World::journaled(&["--linger-ms", "2000"]);
    let (mut number, mut promises) = (0, Promises::default());
    for life in 0..10 {
        // Each life ends itself at another commit of another step.
        let steps = ["register", "admitted", "dispatched", "written", "bound", "stage", "terminal", "incarnation"];
        let (step, time) = (steps[life % steps.len()], 2 + life * 3);
        let side = if life % 2 == 0 { "before" } else { "after" };
        world.restart_failing(&format!("{side}:{step}=kill@{time}"));
        // The lives before this one have ended; none of its own requests has.
        promises.streamed(&events(&mut world, 0));
        let mut sessions = Vec::new();
        'life: for _ in 0..40 {
            if sessions.len() < 3 {
                let Some((200, made)) = try_post(&world, "/session", r#"{"sessionScope":"thread"}"#) else {
                    break 'life;
                };
                let made: Value = serde_json::from_str(&made).unwrap();
                sessions.push(made["sessionId"].as_str().unwrap().to_owned());
            }
            let session = &sessions[number % sessions.len()];
            let (path, id) = (format!("/session/{session}/return-requests"), format!("X{number}"));
            let request = with(body(&id, "hello"), &json!({ "queue": true }));
            number += 1;
            let Some((status, answer)) = try_post(&world, &path, &request.to_string()) else { break 'life };
            promises.answered(id, status, &answer);
        }
    }
    world.restart_failing("");
    let open = || "/return-requests?limit=1000".to_owned();
    let all = until("every request has ended", || {
        let all = world.get(&open())["requests"].as_array().unwrap().clone();
        all.iter().all(|one| one["reply_pending"] == false).then_some(all)
    });
    assert!(promises.taken.len() > 80, "{} of {number}", promises.taken.len());
    let events = all_events(&mut world, all.len());
    promises.streamed(&events);
    promises.hold(&all, &events);
    let journal: Vec<String> = world
        .journal()
        .iter()
        .filter(|line| line["heard"]["method"] == "session/prompt")
        .map(Value::to_string)
        .collect();
    for request in &all {
        let prompt = request["prompt_id"].as_str().unwrap();
        let heard = journal.iter().filter(|line| line.contains(prompt)).count();
        let most = usize::from(request["input_written"] != "no");
        assert!(heard <= most, "{heard} {request}");
        assert!(heard == 1 || request["state"] != "completed", "{request}");
    }
}

/// A ledger of whose last line no more than so many eighths are left.
fn torn(ledger: &str, eighths: usize) -> String {
    let begin = ledger.trim_end().rfind('\n').unwrap() + 1;
    ledger[..begin + (ledger.len() - begin) * eighths / 8].to_owned()
}

#[test]
fn scenario_42_a_power_cut_that_tears_the_ledgers_tail_costs_neither_the_request_nor_the_prompt_before_it() {
    // The last line is the admission of the request's prompt, or its end.
    for (plan, evidence) in [("after:written=kill", "transcript_exact"), ("before:terminal=kill", "rpc_response")] {
        for eighths in [0, 3, 7] {
            let (mut world, session) = doomed(plan);
            let before = world.prompt(&session, "hello");
            assert_eq!(world.settle(&session, &before)["state"], "completed");
            let request = body("X", "slow 100").to_string();
            let path = format!("/session/{session}/return-requests");
            let _ = world.connect().try_call("POST", &path, &request);
            world.until_ended_by(|| ());
            let whole = world.ledger(&session);
            let file = crate::world::chats(&world).join(format!("{session}.ledger.jsonl"));
            assert_eq!(whole.lines().last().unwrap().contains("terminal"), plan.contains("terminal"), "{whole}");
            let left = torn(&whole, eighths);
            std::fs::write(&file, &left).unwrap();
            world.start_again();
            let case = format!("{plan}, {eighths} eighths of {whole}");
            let over = ended(&mut world, "X");
            assert_eq!(told(&over), "completed - yes", "{case}: {over}");
            assert_eq!(over["terminal"]["evidence"], evidence, "{case}: {over}");
            let (status, again) = post(&mut world, &session, &body("X", "slow 100"));
            assert_eq!((status, &again["terminal"]), (200, &over["terminal"]), "{case}");
            world.load(&session);
            assert_eq!(world.get(&format!("/session/{session}/turns/{before}"))["state"], "completed", "{case}");
            let next = world.prompt(&session, "hello");
            assert_eq!(world.settle(&session, &next)["state"], "completed", "{case}");
            let now = world.ledger(&session);
            assert!(now.starts_with(&left), "{case}: {now}");
            // Each line is its own, whatever the one before it lost.
            let lines = |prompt: &str| {
                let lines = now.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let own = lines.filter(|line| line["promptId"] == prompt);
                own.map(|line| line["terminal"].as_str().unwrap_or("admitted").to_owned()).collect::<Vec<_>>()
            };
            let whole = ["admitted", "completed"].map(str::to_owned);
            assert_eq!((lines(&before), lines(&next)), (whole.to_vec(), whole.to_vec()), "{case}: {now}");
            let own = lines(over["prompt_id"].as_str().unwrap());
            assert_eq!(own, whole[..own.len()], "{case}: {now}");
            assert!(own.len() == 2 || !plan.contains("terminal"), "what was staged is on the ledger: {case}: {now}");
            assert_eq!(all_events(&mut world, 1)[0], over["terminal"], "{case}");
            sent(&world, 3);
        }
    }
}

#[test]
fn scenario_63_what_ended_before_its_deadline_is_completed_and_what_ended_behind_it_is_not() {
    // The turn begins behind the request, and so ends behind a deadline that is shorter than the turn.
    for (turn_ms, timeout_ms, expected) in
        [(1_000, 600_000, "completed - yes"), (6_000, 5_000, "timed_out deadline yes")]
    {
        let mut world = World::journaled(&["--linger-ms", "60000"]);
        let session = world.session();
        let asked = with(body("X", &format!("slow {turn_ms}")), &json!({ "timeoutMs": timeout_ms }));
        submit_with(&mut world, &session, &asked);
        world.kill_daemon();
        let over = ended(&mut world, "X");
        assert_eq!(told(&over), expected);
        if over["state"] == "timed_out" {
            let late = until("what the turn came to is shown", || {
                let late = get(&mut world, "X")["late_outcome"]["state"].clone();
                (!late.is_null()).then_some(late)
            });
            assert_eq!(late, "completed");
        } else {
            assert!(over.get("late_outcome").is_none(), "{over}");
        }
        all_events(&mut world, 1);
    }
}

#[test]
fn scenario_63_of_a_deadline_that_passed_while_there_was_no_daemon_the_turn_decides() {
    for (turn_ms, expected) in [(200, "completed - yes"), (6_000, "timed_out deadline yes")] {
        let mut world = World::journaled(&["--linger-ms", "60000"]);
        let session = world.session();
        let asked = with(body("X", &format!("slow {turn_ms}")), &json!({ "timeoutMs": 4_000 }));
        let deadline_ms = submit_with(&mut world, &session, &asked)["deadline_at"].as_u64().unwrap();
        let cast = world.cast(&session);
        world.signal(&[cast.daemon], "KILL");
        until("the turn is over", || (!alive(cast.host)).then_some(()));
        until("the deadline is over", || (now_ms() > deadline_ms).then_some(()));
        world.until_killed();
        assert_eq!(told(&ended(&mut world, "X")), expected);
        all_events(&mut world, 1);
        sent(&world, 1);
    }
}

#[test]
fn scenario_80_an_outcome_that_found_no_room_before_a_kill_is_read_from_the_transcript() {
    let mut world = World::journaled(&["--linger-ms", "5000"]);
    world.restart_failing("before:stage=full; before:terminal=full");
    let session = world.session();
    submit(&mut world, &session, "X", "slow 100");
    let prompt = get(&mut world, "X")["prompt_id"].as_str().unwrap().to_owned();
    assert_eq!(world.settle(&session, &prompt)["state"], "completed", "the prompt itself is not held back for long");
    assert_eq!(get(&mut world, "X")["reply_pending"], true);
    world.kill_everything();
    let over = ended(&mut world, "X");
    assert_eq!((told(&over).as_str(), &over["terminal"]["evidence"]), ("completed - yes", &json!("transcript_exact")));
    sent(&world, 1);
}

#[test]
fn scenario_78_a_full_disk_takes_no_request_and_sends_nothing_while_plain_prompts_go_on() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    world.restart_failing("before:register=full");
    let session = world.session();
    let (status, refusal) = post(&mut world, &session, &body("X", "hello"));
    assert_eq!((status, &refusal["code"], &refusal["input_written"]), (507, &json!("storage_full"), &json!("no")));
    let prompt = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &prompt)["state"], "completed");
    sent(&world, 1);
}

#[test]
fn scenario_79_an_outcome_waits_for_room_and_appears_once() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    world.restart_failing("before:stage=full*2; before:terminal=full*4");
    let session = world.session();
    submit(&mut world, &session, "X", "slow 100");
    assert_eq!(told(&reached(&mut world, "X", "completed")), "completed - yes");
    all_events(&mut world, 1);
    sent(&world, 1);
}

#[test]
fn scenario_81_a_store_that_is_busy_says_so_and_a_dispatch_that_is_not_on_record_sends_nothing() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    world.restart_failing("before:register=busy*1; before:dispatched=busy*1");
    let session = world.session();
    for code in ["register", "dispatched"] {
        let (status, refusal) = post(&mut world, &session, &body("X", "hello"));
        assert_eq!(
            (status, &refusal["code"], &refusal["input_written"]),
            (503, &json!("store_busy"), &json!("no")),
            "{code}"
        );
    }
    until("the row is gone", || (world.call("GET", "/return-requests/X", "").0 == 404).then_some(()));
    submit(&mut world, &session, "X", "hello");
    assert_eq!(told(&ended(&mut world, "X")), "completed - yes");
    sent(&world, 1);
}

#[test]
fn scenario_81_under_another_process_write_lock_new_requests_are_refused_and_the_end_of_a_turn_comes_late_but_once() {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    let (running, idle) = (world.session(), world.session());
    let prompt = submit(&mut world, &running, "X", "tool true")["prompt_id"].as_str().unwrap().to_owned();
    // The turn ends when it is allowed to, which is behind the lock.
    let question = crate::permission::question(&mut world, &running);
    let file = crate::world::chats(&world).with_file_name("turnd-requests").join("requests.db");
    let other = rusqlite::Connection::open(file).unwrap();
    other.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = |world: &World| {
        let (path, body) = (format!("/session/{idle}/return-requests"), body("Y", "hello").to_string());
        let (status, head, refusal) = world.connect().exchange("POST", &path, "", &body).unwrap();
        let refusal: Value = serde_json::from_str(&refusal).unwrap();
        assert_eq!(
            (status, &refusal["code"], &refusal["input_written"]),
            (503, &json!("store_busy"), &json!("no")),
            "{refusal}"
        );
        assert!(head.lines().any(|line| line == "retry-after: 5"), "{head}");
        assert_eq!(prompts(world), 1, "nothing is sent");
    };
    refused(&world);
    let vote = json!({ "outcome": { "outcome": "selected", "optionId": question["options"][0]["optionId"] } });
    let path = format!("/permission/{}", question["requestId"].as_str().unwrap());
    assert_eq!(world.call("POST", &path, &vote.to_string()).0, 200);
    assert_eq!(world.settle(&running, &prompt)["state"], "completed", "the agent has answered");
    refused(&world);
    assert_eq!(get(&mut world, "X")["reply_pending"], true);
    assert_eq!(events(&mut world, 0), Vec::<Value>::new());
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(told(&ended(&mut world, "X")), "completed - yes");
    assert_eq!(all_events(&mut world, 1)[0], get(&mut world, "X")["terminal"]);
    submit(&mut world, &idle, "Y", "hello");
    assert_eq!(told(&ended(&mut world, "Y")), "completed - yes");
    all_events(&mut world, 2);
    sent(&world, 2);
}

/// A daemon that was told to end behind the end of the request X, and where its store lies.
fn stopped_behind_an_end() -> (World, PathBuf) {
    let mut world = World::journaled(&["--linger-ms", "100"]);
    let session = world.session();
    submit(&mut world, &session, "X", "hello");
    ended(&mut world, "X");
    assert_eq!(world.terminate(), Some(0));
    let folder = crate::world::chats(&world).with_file_name("turnd-requests");
    (world, folder)
}

#[test]
fn scenario_81_a_store_that_another_process_has_at_the_start_is_used_as_soon_as_it_is_let_go() {
    let (mut world, folder) = stopped_behind_an_end();
    let other = request::store::Store::open(&folder, request::store::Options::default(), 1).unwrap().0;
    world.start_again();
    let session = world.session();
    let refusal = until("it is known that there is no store", || {
        let (status, refusal) = post(&mut world, &session, &body("Y", "hello"));
        assert_eq!(status, 503, "{refusal}");
        (refusal["code"] == "store_unavailable").then_some(refusal)
    });
    assert_eq!((&refusal["reason"], &refusal["input_written"]), (&json!("locked"), &json!("maybe")));
    assert_eq!(world.get("/health?deep=1")["returnRequests"]["reason"], "locked");
    let prompt = world.prompt(&session, "hello");
    assert_eq!(world.settle(&session, &prompt)["state"], "completed");
    drop(other);
    until("the store is there", || (world.get("/health?deep=1")["returnRequests"]["status"] == "ok").then_some(()));
    submit(&mut world, &session, "Y", "hello");
    assert_eq!(told(&ended(&mut world, "Y")), "completed - yes");
    assert_eq!(world.call("GET", "/return-requests/X", "").1["state"], "completed");
}

#[test]
fn scenario_82_a_store_that_is_damaged_is_put_aside_and_the_daemon_serves_without_it() {
    let (mut world, folder) = stopped_behind_an_end();
    let file = folder.join("requests.db");
    let mut bytes = std::fs::read(&file).unwrap();
    for byte in bytes.iter_mut().skip(4096).step_by(7) {
        *byte ^= 0x5a;
    }
    std::fs::write(&file, bytes).unwrap();
    for _ in 0..2 {
        world.start_again();
        let session = world.session();
        let (status, refusal) = post(&mut world, &session, &body("Y", "hello"));
        let said = (status, &refusal["code"], &refusal["input_written"]);
        assert_eq!(said, (503, &json!("store_corrupt"), &json!("maybe")), "the id may have been sent before");
        let (status, refusal) = world.call("GET", "/return-requests/X", "");
        assert_eq!((status, refusal.get("input_written")), (503, None), "{refusal}");
        assert!(!file.exists(), "no empty store is made");
        let prompt = world.prompt(&session, "hello");
        assert_eq!(world.settle(&session, &prompt)["state"], "completed");
        assert_eq!(world.terminate(), Some(0));
    }
    world.start_again();
}
