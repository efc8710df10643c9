//! From streams to a session.

use bridge::limits::Limits;
use bridge::{Kind, OpenError, OpenSession, Seed, Subscribe};
use serde_json::json;

use crate::agent::Agent;
use crate::world::{bridge_with, open, open_session, short, soon};

#[tokio::test(start_paused = true)]
async fn a_new_session_tells_the_agent_our_id_and_takes_the_agents() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let answer = json!({"sessionId": "agent-1", "modes": {"currentModeId": "auto"}});
    let (opened, request) = tokio::join!(bridge.open(open_session(Kind::New), streams), agent.greet(answer));
    assert_eq!(request.method(), Some("session/new"));
    let params = request.params().unwrap();
    assert_eq!(acp::string_at(params, &["_meta", "qwen-code/sessionId"]).as_deref(), Some("s"));
    assert_eq!(acp::string_at(params, &["cwd"]).as_deref(), Some("/ws"));
    let opened = opened.unwrap();
    assert_eq!(acp::string_at(opened.agent_state(), &["modes", "currentModeId"]).as_deref(), Some("auto"));
    assert!(bridge.session("s").is_none(), "nobody can reach it yet");
    let session = opened.activate(0, Seed::default());
    assert_eq!((session.id(), session.agent_session_id().as_str()), ("s", "agent-1"));
    assert!(bridge.session("s").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_restored_session_numbers_its_events_behind_the_replayed_ones() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let answer = json!({"sessionId": "agent-1", "_meta": {"turnd/memory": "loaded"}});
    let (opened, request) = tokio::join!(bridge.open(open_session(Kind::Restore), streams), agent.greet(answer));
    assert_eq!(request.method(), Some("session/load"));
    let opened = opened.unwrap();
    assert_eq!(opened.memory().as_deref(), Some("loaded"));
    assert_eq!(opened.activate(7, Seed::default()).last_event_id(), 7);
}

#[tokio::test(start_paused = true)]
async fn what_the_agent_says_before_its_session_is_open_is_kept() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let (opened, ()) = tokio::join!(bridge.open(open_session(Kind::New), streams), async {
        let initialize = agent.hear_method("initialize").await;
        agent.text("early").await;
        agent.say("noise\n{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"fs/read_text_file\"}\n").await;
        assert_eq!(agent.hear().await.rpc_error().unwrap().code, -32601);
        agent.answer(&initialize, json!({})).await;
        let opening = agent.hear_method("session/new").await;
        agent.update(json!({"sessionUpdate": "usage_update", "used": 1})).await;
        agent.answer(&opening, json!({"sessionId": "agent-1"})).await;
    });
    let session = opened.unwrap().activate(3, Seed::default());
    assert_eq!(session.last_event_id(), 5);
    let mut reader = session.subscribe(&Subscribe { cursor: Some(3), ..Subscribe::default() }).unwrap();
    assert_eq!(short(&soon(reader.next()).await.unwrap()), "agent_message_chunk early");
    assert_eq!(short(&soon(reader.next()).await.unwrap()), "usage_update");
}

#[tokio::test(start_paused = true)]
async fn a_silent_agent_is_given_up_after_the_limit_for_its_method() {
    let (bridge, _) = bridge_with(Limits::default());
    let (_agent, streams) = Agent::connect();
    let error = soon(bridge.open(open_session(Kind::New), streams)).await.err().unwrap();
    assert_eq!(error, OpenError::Timeout { method: "initialize", timeout_ms: 10_000 });
    assert_eq!(error.code(), "init_timeout");
    let (mut agent, streams) = Agent::connect();
    let (opened, _) = tokio::join!(soon(bridge.open(open_session(Kind::Restore), streams)), async {
        let initialize = agent.hear_method("initialize").await;
        agent.answer(&initialize, json!({})).await;
        agent.hear_method("session/load").await
    });
    assert_eq!(opened.err().unwrap().code(), "session_restore_timeout");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_refuses_gives_its_code_and_cause() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let (opened, ()) = tokio::join!(bridge.open(open_session(Kind::New), streams), async {
        agent.hear_method("initialize").await;
        let error = r#"{"code":-32000,"message":"no","data":{"turnd/code":"agent_unavailable","details":"exit 1"}}"#;
        agent.say(format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{error}}}\n")).await;
    });
    let error = opened.err().unwrap();
    assert_eq!((error.code(), error.to_string().as_str()), ("agent_unavailable", "exit 1"));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_meanwhile_is_told_from_one_that_refuses() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let (opened, ()) = tokio::join!(bridge.open(open_session(Kind::New), streams), async {
        let exited =
            r#"{"jsonrpc":"2.0","method":"turnd/agent_exited","params":{"exitCode":3,"stderrTail":"no model"}}"#;
        agent.say(format!("{exited}\n")).await;
        drop(agent);
    });
    assert_eq!(opened.err(), Some(OpenError::ChannelClosed { stderr_tail: Some("no model".into()) }));
}

#[tokio::test(start_paused = true)]
async fn a_native_agent_must_take_our_id() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, streams) = Agent::connect();
    let native = OpenSession { same_id: true, ..open_session(Kind::New) };
    let (opened, _) = tokio::join!(bridge.open(native.clone(), streams), agent.greet(json!({"sessionId": "other"})));
    assert_eq!(opened.err().unwrap().code(), "session_id_not_honored");
    let (mut agent, streams) = Agent::connect();
    let (opened, _) = tokio::join!(bridge.open(native, streams), agent.greet(json!({"sessionId": "s"})));
    assert!(opened.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_id_is_taken_from_the_first_word_on_and_free_again_when_opening_fails() {
    let (bridge, _) = bridge_with(Limits::default());
    let (agent, opened) = open(&bridge, open_session(Kind::New)).await;
    let again = bridge.open(open_session(Kind::New), Agent::connect().1).await;
    assert_eq!(again.err(), Some(OpenError::InUse));
    drop((agent, opened));
    let (_agent, opened) = open(&bridge, open_session(Kind::New)).await;
    opened.activate(0, Seed::default());
    let again = bridge.open(open_session(Kind::New), Agent::connect().1).await;
    assert_eq!(again.err(), Some(OpenError::InUse));
}

#[tokio::test(start_paused = true)]
async fn dropping_an_opened_session_closes_the_agents_input() {
    let (bridge, _) = bridge_with(Limits::default());
    let (mut agent, opened) = open(&bridge, open_session(Kind::New)).await;
    drop(opened);
    assert!(agent.hear_or_end().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn sessions_are_limited_and_none_opens_after_a_shutdown() {
    let (bridge, _) = bridge_with(Limits { sessions: 1, ..Limits::default() });
    let (agent, opened) = open(&bridge, open_session(Kind::New)).await;
    let other = OpenSession { session_id: "t".into(), ..open_session(Kind::New) };
    let refused = bridge.open(other.clone(), Agent::connect().1).await;
    assert_eq!(refused.err(), Some(OpenError::SessionLimit { limit: 1 }));
    let shutdown = bridge.shutdown();
    drop(agent);
    shutdown.await;
    assert_eq!(bridge.open(other, Agent::connect().1).await.err(), Some(OpenError::ShuttingDown));
    let session = opened.activate(0, Seed::default());
    soon(session.ended()).await;
    assert!(bridge.sessions().is_empty(), "what was being opened meanwhile is shut down as well");
}
