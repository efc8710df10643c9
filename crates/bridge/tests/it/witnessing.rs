//! Prompts with a witness: nothing runs without it, and nothing is on record before it has the outcome.

use std::sync::Arc;
use std::time::Duration;

use acp::compose;
use bridge::limits::{OPENING_WORDS_MS, SHUTDOWN_ANSWER_MS, SHUTDOWN_OBEY_MS};
use bridge::witness::{Baseline, Dispatch, Ended, FinalText, Heard, Process, Settling};
use bridge::{InputWritten, Prompt, PromptState, Witness};
use parking_lot::Mutex;
use serde_json::json;

use crate::world::{World, prompt, soon};

/// What a witness was told, a line each.
#[derive(Default)]
pub(crate) struct Record {
    lines: Mutex<Vec<String>>,
}

impl Record {
    fn note(&self, line: String) {
        self.lines.lock().push(line);
    }

    /// The same, when something was told.
    async fn next_news(&self) -> String {
        let told = async {
            while self.lines.lock().is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        soon(told).await;
        self.news()
    }

    /// What was told since this was asked for the last time.
    fn news(&self) -> String {
        std::mem::take(&mut *self.lines.lock()).join("; ")
    }
}

fn words(terminal: &bridge::Terminal, written: InputWritten, text: &FinalText, pid: Option<u32>) -> String {
    let detail = terminal.code().or(terminal.stop_reason()).unwrap_or("-");
    let text = match text {
        FinalText::None => "-",
        FinalText::Whole(text) => text,
        FinalText::Elsewhere => "elsewhere",
    };
    format!("{detail} {} {text:?} by {}", written.as_str(), pid.unwrap_or_default())
}

impl Witness for Record {
    fn dispatching(&self, session: &str, prompt: &str, facts: Dispatch<'_>) {
        let Dispatch { baseline, incarnation, last_event_id, after_ms } = facts;
        let pid = incarnation.map(|process| process.pid).unwrap_or_default();
        assert_eq!((session, after_ms >= 1_000), ("s", true));
        self.note(format!("next {prompt} after turn {} and event {last_event_id} by {pid}", baseline.turn));
    }

    fn written(&self, _: &str, prompt: &str) {
        self.note(format!("written {prompt}"));
    }

    fn heard(&self, _: &str, prompt: &str, what: Heard<'_>) {
        self.note(match what {
            Heard::FirstUpdate => format!("heard {prompt}"),
            Heard::UserMessage { message_id, content } => format!("user {prompt} {message_id:?} {content}"),
        });
    }

    fn settling(&self, _: &str, prompt: &str, outcome: Settling<'_>) {
        let Settling { terminal, input_written, text, strayed, unreadable, incarnation, .. } = outcome;
        let pid = incarnation.map(|process| process.pid);
        let strayed = if strayed { " strayed" } else { "" };
        let strayed = format!("{strayed}{}", if unreadable { " unreadable" } else { "" });
        self.note(format!("settling {prompt} {}{strayed}", words(terminal, input_written, text, pid)));
    }

    fn ended(&self, _: &str, prompt: &str, ending: Ended<'_>) {
        let Ended { terminal, input_written, text, incarnation, .. } = ending;
        let pid = incarnation.map(|process| process.pid);
        self.note(format!("ended {prompt} {}", words(terminal, input_written, text, pid)));
    }

    fn late(&self, _: &str, prompt: &str, outcome: Settling<'_>) {
        let Settling { terminal, input_written, text, .. } = outcome;
        self.note(format!("late {prompt} {}", words(terminal, input_written, text, None)));
    }
}

fn witnessed(id: &str) -> Prompt {
    Prompt { witnessed: true, ..prompt(id) }
}

async fn world() -> (World, Arc<Record>) {
    let opened = opened().await;
    // The pause behind the opening.
    tokio::time::advance(Duration::from_millis(OPENING_WORDS_MS)).await;
    opened
}

/// One whose session goes live just now.
async fn opened() -> (World, Arc<Record>) {
    let record = Arc::new(Record::default());
    (World::before(record.clone()).await, record)
}

/// Has the agent asked something, so that what it was told before has reached it.
async fn hears_nothing_before(world: &mut World, method: &str) {
    let (session, asked) = (world.session.clone(), method.to_owned());
    let (answered, ()) = tokio::join!(async move { session.ask(&asked, "{}", 1_000).await }, async {
        let question = world.agent.hear_method(method).await;
        world.agent.answer(&question, json!({})).await;
    });
    answered.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_agent_sees_a_witnessed_prompt_when_its_witness_lets_it_and_nobody_an_outcome_before_it_has_it() {
    let (mut world, record) = world().await;
    world.session.admit(witnessed("A")).unwrap();
    assert_eq!(record.news(), "next A after turn 0 and event 0 by 7");
    hears_nothing_before(&mut world, "x/first").await;
    world.session.dispatch("A", true);
    let held = world.agent.hear_prompt().await;
    assert_eq!((held.prompt_id(), &held.params["_meta"]["turnd/witnessed"]), ("A", &json!(true)));
    world.agent.say(compose::notification("turnd/prompt_written", &json!({"promptId": "A"}))).await;
    let echo = json!({"sessionUpdate": "user_message_chunk", "messageId": "m", "content": {"type": "text"}});
    world.agent.update(echo).await;
    world.agent.text("hi").await;
    world.expect("user_message_chunk A A; user_message_chunk A; agent_message_chunk A hi").await;
    assert_eq!(record.news(), r#"written A; heard A; user A Some("m") {"type":"text"}"#);
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    hears_nothing_before(&mut world, "x/second").await;
    assert_eq!(record.news(), "", "what it says late has a moment to come");
    assert_eq!(record.next_news().await, r#"settling A end_turn yes "hi" by 7"#);
    assert_eq!(world.ledger.lines(), ["A in_flight"]);
    let live = world.session.turn(Some("A")).live.unwrap();
    assert_eq!((live.state, live.input_written), (PromptState::Running, InputWritten::Yes));
    world.session.confirm("A");
    soon(world.session.settled("A")).await;
    assert_eq!(record.news(), r#"ended A end_turn yes "hi" by 7"#);
    assert_eq!(world.ledger.lines(), ["A in_flight", "A completed end_turn"]);
    world.expect("turn_complete A end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_says_behind_the_opening_is_listened_for_before_a_witness_is_asked() {
    let (mut world, record) = opened().await;
    world.session.admit(witnessed("A")).unwrap();
    hears_nothing_before(&mut world, "x/first").await;
    assert_eq!(record.news(), "");
    world.agent.say(compose::notification("turnd/strayed", &json!({}))).await;
    assert_eq!(record.next_news().await, "next A after turn 0 and event 0 by 7");
    world.session.dispatch("A", true);
    let held = world.agent.hear_prompt().await;
    world.agent.say(compose::notification("turnd/prompt_written", &json!({"promptId": "A"}))).await;
    world.agent.text("hi").await;
    world.expect("user_message_chunk A A; agent_message_chunk A hi").await;
    assert_eq!(record.news(), "written A; heard A");
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    assert_eq!(record.next_news().await, r#"settling A end_turn yes "-" by 7 strayed"#);
}

#[tokio::test(start_paused = true)]
async fn what_the_host_or_the_daemon_could_not_read_is_told_with_the_outcome_of_its_turn() {
    let lost = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"cost\":NaN}}\n".into();
    for unreadable in [compose::notification("turnd/unreadable", &json!({})), lost] {
        let (mut world, record) = world().await;
        world.session.admit(witnessed("A")).unwrap();
        world.session.dispatch("A", true);
        let held = world.agent.hear_prompt().await;
        world.agent.say(compose::notification("turnd/prompt_written", &json!({"promptId": "A"}))).await;
        world.agent.text("hi").await;
        world.agent.say(unreadable).await;
        world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
        world.expect("user_message_chunk A A; agent_message_chunk A hi").await;
        let told = record.next_news().await;
        assert!(told.ends_with(r#"settling A end_turn yes "-" by 7 unreadable"#), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_only_the_daemon_cannot_read_ends_its_prompt() {
    let mut world = World::start().await;
    world.session.admit(prompt("A")).unwrap();
    let held = world.agent.hear_prompt().await;
    world.agent.say(format!("{{\"id\":{},\"result\":{{\"cost\":NaN}}}}\n", held.id)).await;
    world.expect("user_message_chunk A A; prompt_cancelled A forward_failed; turn_error A unreadable_answer").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_witness_a_witnessed_prompt_is_like_any_other() {
    let mut world = World::start().await;
    world.session.admit(witnessed("A")).unwrap();
    let held = world.agent.hear_prompt().await;
    assert!(held.params["_meta"].get("turnd/witnessed").is_none());
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    world.expect("user_message_chunk A A; turn_complete A end_turn").await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_without_a_witness_waits_for_none() {
    let (mut world, record) = world().await;
    world.admit("A");
    let held = world.agent.hear_prompt().await;
    assert!(held.params["_meta"].get("turnd/witnessed").is_none());
    world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
    soon(world.session.settled("A")).await;
    assert_eq!(record.news(), "");
}

#[tokio::test(start_paused = true)]
async fn a_killed_session_tells_the_witness_of_each_prompt_and_gives_none_to_the_agent() {
    let (mut world, record) = world().await;
    for id in ["A", "B"] {
        world.session.admit(witnessed(id)).unwrap();
    }
    let session = world.session.clone();
    let (_, ()) = tokio::join!(session.kill(), async {
        world.agent.hear_method("turnd/close").await;
        world.agent.hang_up().await;
    });
    world.session.dispatch("A", true);
    world.session.confirm("A");
    let ended = |id: &str| format!(r#"ended {id} session_killed no "-" by 7"#);
    let expected = format!("next A after turn 0 and event 0 by 7; {}; {}", ended("A"), ended("B"));
    assert_eq!(record.news(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_facts_of_a_session_are_those_of_one_moment() {
    let (mut world, _) = world().await;
    let process = Process { pid: 7, start_ticks: 42, boot_id: "boot".into() };
    let facts = world.session.facts();
    assert_eq!((facts.idle, facts.tainted, facts.last_event_id), (true, false, 0));
    assert_eq!((facts.baseline, facts.incarnation), (Baseline::default(), Some(process)));
    assert!(!world.session.agent_state().contains("turnd/process"), "it is no client's business");

    world.session.admit(Prompt { deadline_ms: Some(10), ..witnessed("A") }).unwrap();
    world.session.dispatch("A", true);
    let held = world.agent.hear_prompt().await;
    world.agent.hear_method("session/cancel").await;
    let facts = world.session.facts();
    assert_eq!((facts.idle, facts.tainted, facts.baseline.turn), (false, true, 0));
    world.agent.settle(&held, json!({"stopReason": "cancelled"})).await;
    soon(world.session.idle()).await;
    let facts = world.session.facts();
    assert_eq!((facts.idle, facts.tainted, facts.baseline.turn), (true, false, 1));
    assert_eq!(facts.baseline.prompt_id.as_deref(), Some("A"));
    assert_eq!(facts.last_event_id, world.session.last_event_id());
}

#[tokio::test(start_paused = true)]
async fn another_agent_is_another_incarnation_and_a_late_answer_is_told_as_late() {
    let (mut world, record) = world().await;
    world.session.admit(Prompt { deadline_ms: Some(10), ..witnessed("A") }).unwrap();
    world.session.dispatch("A", true);
    let held = world.agent.hear_prompt().await;
    world.agent.hear_method("session/cancel").await;
    world.session.admit(witnessed("B")).unwrap();
    let replace = world.agent.hear_method("turnd/replace_agent").await;
    world.agent.settle(&held, json!({"stopReason": "end_turn", "_meta": {"turnd/turn": {"state": "completed"}}})).await;
    let process = json!({"pid": 8, "startTicks": 43, "bootId": "boot"});
    world.agent.answer(&replace, json!({"sessionId": "agent-2", "_meta": {"turnd/process": process}})).await;
    hears_nothing_before(&mut world, "x/then").await;
    assert_eq!(world.session.facts().incarnation.map(|process| process.pid), Some(8));
    let news = record.news();
    let told: Vec<&str> = news.split("; ").collect();
    assert_eq!(told[1], r#"ended A prompt_deadline_exceeded maybe "-" by 7"#);
    assert_eq!(told[2], r#"late A end_turn yes "elsewhere" by 0"#);
    assert_eq!(told.len(), 3, "{news}");
    let next = record.next_news().await;
    assert!(next.starts_with("next B after turn 1 and event ") && next.ends_with(" by 8"), "{next}");
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_stops_waits_for_the_answer_to_a_witnessed_prompt_and_for_nothing_else() {
    let (mut world, record) = world().await;
    world.session.admit(witnessed("A")).unwrap();
    world.admit("B");
    world.session.dispatch("A", true);
    let held = world.agent.hear_prompt().await;
    world.agent.say(compose::notification("turnd/prompt_written", &json!({"promptId": "A"}))).await;
    let (bridge, session) = (world.bridge.clone(), world.session.clone());
    let ((), ()) = tokio::join!(bridge.shutdown(), async {
        tokio::time::sleep(Duration::from_millis(SHUTDOWN_ANSWER_MS - 1)).await;
        assert_eq!(world.ledger.lines(), ["A in_flight", "B in_flight", "B error daemon_shutdown"]);
        record.news();
        world.agent.text("done").await;
        world.agent.settle(&held, json!({"stopReason": "end_turn"})).await;
        assert_eq!(record.next_news().await, r#"heard A"#);
        assert_eq!(record.next_news().await, r#"settling A end_turn yes "done" by 7"#);
        session.confirm("A");
        world.agent.hear_method("turnd/close").await;
        world.agent.hang_up().await;
    });
    assert_eq!(record.news(), r#"ended A end_turn yes "done" by 7"#);
    assert_eq!(world.ledger.lines()[3], "A completed end_turn");
    world.expect("pending_prompt_added B; user_message_chunk A A; turn_error B daemon_shutdown").await;
    world.expect("pending_prompt_completed B completed; agent_message_chunk A done; turn_complete A end_turn").await;
    world.expect("session_died daemon_shutdown").await;
    world.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_stops_tells_an_agent_that_does_not_answer_to_cancel_and_waits_no_longer_than_its_bound() {
    let (mut world, record) = world().await;
    world.session.admit(witnessed("A")).unwrap();
    world.session.dispatch("A", true);
    world.agent.hear_prompt().await;
    let (bridge, begun) = (world.bridge.clone(), tokio::time::Instant::now());
    let ((), ()) = tokio::join!(bridge.shutdown(), async {
        world.agent.hear_method("session/cancel").await;
        world.agent.hear_method("turnd/close").await;
        let bound = Duration::from_millis(SHUTDOWN_ANSWER_MS + SHUTDOWN_OBEY_MS);
        assert_eq!(begun.elapsed(), bound, "of a clock that only moves when everybody waits");
        world.agent.hang_up().await;
    });
    assert!(record.news().ends_with(r#"ended A daemon_shutdown maybe "-" by 7"#));
    assert_eq!(world.ledger.lines(), ["A in_flight", "A error daemon_shutdown"]);
    world.expect("user_message_chunk A A; turn_error A daemon_shutdown; prompt_cancelled A").await;
    world.expect("session_died daemon_shutdown").await;
    world.expect_end().await;
}
