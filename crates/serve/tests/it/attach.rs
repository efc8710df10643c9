//! What a client is shown that attaches to a session which lives already (wire rules, section 7.3).

use serde_json::{Value, json};

use crate::client::{Connection, until};
use crate::daemon::Daemon;

async fn load_with(daemon: &Daemon, session: &str, body: Value) -> Value {
    let answer = daemon.post(&format!("/session/{session}/load"), body).await;
    assert_eq!(answer.status, 200, "{}", answer.verdict());
    answer.json()
}

async fn load(daemon: &Daemon, session: &str) -> Value {
    load_with(daemon, session, json!({})).await
}

/// A part of a replay in short: `kind text` for what is said, `kind id status` for tools, the type alone for the rest.
fn shown(part: &Value) -> Vec<String> {
    let short = |event: &Value| {
        let update = if event["data"]["update"].is_null() { &event["data"] } else { &event["data"]["update"] };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match update["sessionUpdate"].as_str() {
            Some(kind @ ("tool_call" | "tool_call_update")) => {
                format!("{kind} {} {}", text(&update["toolCallId"]), text(&update["status"]))
            }
            Some(kind) => format!("{kind} {}", text(&update["content"]["text"])),
            None => text(&event["type"]),
        }
    };
    part.as_array().unwrap().iter().map(short).collect()
}

/// Begins a turn that goes on until it is released; its first events are out.
async fn begin(daemon: &Daemon, session: &str, text: &str) {
    let receipt = daemon.prompt(session, text).await;
    daemon.events_from(session, &receipt["lastEventId"]).await.until(&["session_update"]).await;
}

#[tokio::test]
async fn finished_turns_are_shown_in_short_and_the_running_one_as_it_is() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "chatter").await;
    daemon.run(&session, "tool").await;
    begin(&daemon, &session, "hold").await;
    let loaded = load(&daemon, &session).await;
    let said: String = (0..300).map(|number| number.to_string()).collect();
    let turns = [
        "user_message_chunk chatter".to_owned(),
        format!("agent_message_chunk {said}echo: chatter"),
        "turn_complete".to_owned(),
        "user_message_chunk tool".to_owned(),
        "tool_call c completed".to_owned(),
        "agent_message_chunk echo: tool".to_owned(),
        "turn_complete".to_owned(),
    ];
    assert_eq!(shown(&loaded["compactedReplay"]), turns);
    assert_eq!(shown(&loaded["liveJournal"]), ["user_message_chunk hold"]);
    assert_eq!((&loaded["attached"], &loaded["hasActivePrompt"]), (&json!(true), &json!(true)));
    // The call is one event that holds all that was said of it.
    let call = &loaded["compactedReplay"][4]["data"]["update"];
    assert_eq!(
        (&call["title"], &call["rawInput"]["command"], &call["rawOutput"]),
        (&json!("ls"), &json!("ls"), &json!("Cargo.toml"))
    );
    daemon.hosts.release(1);
}

#[tokio::test]
async fn what_the_load_has_read_stands_before_the_turns_since() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    let daemon = daemon.restart().await;
    let first = load(&daemon, &session).await;
    daemon.run(&session, "two").await;
    let second = load(&daemon, &session).await;
    let expected = ["user_message_chunk one", "agent_message_chunk echo: one"];
    assert_eq!(shown(&first["compactedReplay"]), expected);
    let since = ["user_message_chunk two", "agent_message_chunk echo: two", "turn_complete"];
    assert_eq!(shown(&second["compactedReplay"]), [&expected[..], &since[..]].concat());
    assert_ne!(first["eventEpoch"], load(&daemon.restart().await, &session).await["eventEpoch"]);
}

/// The peer shows such a session as if nothing had ever been said in it.
#[tokio::test]
async fn a_session_that_was_resumed_says_that_it_has_a_history_unlike_the_peers() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    let daemon = daemon.restart().await;
    daemon.post(&format!("/session/{session}/resume"), json!({})).await;
    let attached = load(&daemon, &session).await;
    assert_eq!(shown(&attached["compactedReplay"]), ["history_truncated"]);
    let data = &attached["compactedReplay"][0]["data"];
    assert_eq!((&data["truncatedEvents"], &data["fullTranscriptAvailable"]), (&json!(1), &json!(true)));
}

#[tokio::test]
async fn each_part_says_what_it_left_out() {
    let daemon = Daemon::with(|options| {
        options.limits.compacted_replay_max_bytes = 1_300;
        options.limits.journal_max_events = 3;
    })
    .await;
    let session = daemon.create().await;
    for _ in 0..4 {
        daemon.run(&session, "hello").await;
    }
    daemon.prompt(&session, "ask").await;
    until("the agent asks", async || {
        load(&daemon, &session).await["liveJournal"].to_string().contains("permission_request")
    })
    .await;
    for _ in 0..2 {
        daemon.prompt(&session, "waits").await;
    }
    let loaded = load(&daemon, &session).await;
    let turns = &loaded["compactedReplay"][0];
    assert_eq!((&turns["type"], turns.get("id")), (&json!("history_truncated"), None));
    let expected = json!({"reason": "replay_window_exceeded", "truncatedEvents": 9, "truncatedTurns": 3, "retainedEvents": 3,
        "maxBytes": 1_300, "fullTranscriptAvailable": true});
    assert_eq!(turns["data"], expected);
    let journal = &loaded["liveJournal"][0];
    let expected = json!({"reason": "replay_window_exceeded", "scope": "live_journal", "truncatedEvents": 1,
        "retainedEvents": 3, "maxBytes": 8 * 1024 * 1024, "maxEvents": 3, "fullTranscriptAvailable": true});
    assert_eq!((&journal["type"], &journal["data"]), (&json!("history_truncated"), &expected));
    assert_eq!(
        shown(&loaded["liveJournal"])[1..],
        ["permission_request", "pending_prompt_added", "pending_prompt_added"]
    );
}

#[tokio::test]
async fn a_page_of_an_idle_session_comes_from_its_transcript() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    daemon.run(&session, "two").await;
    // Of the last two records, the answer and the turn's result, the second shows nothing.
    let paged = load_with(&daemon, &session, json!({ "historyPageSize": 2 })).await;
    assert_eq!(shown(&paged["compactedReplay"]), ["agent_message_chunk echo: two"]);
    let event = &paged["compactedReplay"][0];
    assert_eq!((event.get("id"), event["data"].get("sessionId")), (None, None));
    assert_eq!(
        (&event["data"]["sessionUpdate"], &paged["historyHasMore"]),
        (&json!("agent_message_chunk"), &json!(true))
    );
    let all = load_with(&daemon, &session, json!({ "historyPageSize": 500 })).await;
    assert_eq!((all["compactedReplay"].as_array().unwrap().len(), all.get("historyHasMore")), (4, None));
    begin(&daemon, &session, "hold").await;
    let busy = load_with(&daemon, &session, json!({ "historyPageSize": 2 })).await;
    assert_eq!(
        shown(&busy["compactedReplay"]).last().map(String::as_str),
        Some("turn_complete"),
        "not while a prompt runs"
    );
    assert_eq!(shown(&busy["liveJournal"]), ["user_message_chunk hold"]);
    daemon.hosts.release(1);
}

#[tokio::test]
async fn a_summary_lacks_what_tools_were_given_and_gave() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "tool").await;
    let receipt = daemon.prompt(&session, "tool").await;
    daemon.events_from(&session, &receipt["lastEventId"]).await.until(&["turn_complete"]).await;
    begin(&daemon, &session, "hold").await;
    let whole = load(&daemon, &session).await;
    let short = load_with(&daemon, &session, json!({ "compactedReplayMode": "summary" })).await;
    assert_eq!(shown(&short["compactedReplay"]), shown(&whole["compactedReplay"]));
    let (whole, short) =
        (&whole["compactedReplay"][1]["data"]["update"], &short["compactedReplay"][1]["data"]["update"]);
    for detail in ["content", "rawInput", "rawOutput"] {
        assert!(whole.get(detail).is_some() && short.get(detail).is_none(), "{detail}: {whole} {short}");
    }
    assert_eq!((&short["title"], &short["status"]), (&json!("ls"), &json!("completed")));
    daemon.hosts.release(1);
}

#[tokio::test]
async fn a_session_that_is_there_twice_is_neither() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    let daemon = daemon.restart().await;
    let transcript = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
    daemon.write(&format!("archive/{session}.jsonl"), &transcript);
    for action in ["load", "resume"] {
        let answer = daemon.post(&format!("/session/{session}/{action}"), json!({})).await;
        assert_eq!((answer.verdict().as_str(), &answer.json()["sessionId"]), ("409 session_conflict", &json!(session)));
    }
}

#[tokio::test]
async fn a_restore_that_nobody_waits_for_goes_on_and_says_so() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    let daemon = daemon.restart().await;
    daemon.hosts.behave(|behaviour| behaviour.gated = true);
    let mut connection = Connection::open(daemon.address).await;
    connection.ask(&format!("POST /session/{session}/load"), &[], b"").await;
    until("the host hears session/load", async || !daemon.hosts.heard("session/load").is_empty()).await;
    let resume = async || daemon.post(&format!("/session/{session}/resume"), json!({})).await;
    assert_eq!(resume().await.json()["reason"], "restore_in_progress");
    drop(connection);
    until("its caller is gone", async || resume().await.json()["reason"] == "awaiting_abandoned_cleanup").await;
    assert_eq!(resume().await.verdict(), "409 restore_in_progress");
    daemon.hosts.open_gate(1);
    until("it is done", async || resume().await.status == 200).await;
    assert_eq!(daemon.hosts.heard("session/load").len(), 1, "the restore that was begun is the one that was used");
}
