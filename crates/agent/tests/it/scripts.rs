//! Every script does what its line in the table says.

use std::time::Duration;

use agent::{SCRIPTS, Script};
use tokio::time::{Instant, timeout};

use crate::client::{Client, Heard};

/// How the example of each script ends.
fn expected_end(script: &Script) -> &'static str {
    match script.name {
        "" | "slow" | "think" | "long" | "empty" | "recall" | "tool" | "steer" => "end_turn",
        "deaf" | "late" | "hasty" | "twice" | "noise" | "surrogate" | "endless" | "flood" | "grandchild" => "end_turn",
        "numbered" | "garble" => "end_turn",
        "mumble" => "unread",
        "hang" | "stuck" => "cancelled",
        "refuse" => "refusal",
        "max_tokens" => "max_tokens",
        "fail" => "-32603",
        "die" => "death",
        unknown => panic!("no expectation for the script {unknown:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_example_ends_as_expected() {
    for script in SCRIPTS {
        let (mut client, session) = Client::with_session().await;
        if matches!(script.name, "tool" | "grandchild") {
            // Commands take real time.
            tokio::time::resume();
        }
        let id = client.prompt(&session, script.example).await;
        match expected_end(script) {
            "death" => {
                while client.next().await.is_some() {}
                client.ended().await.unwrap();
            }
            "unread" => {
                while let Ok(Some(_)) = timeout(Duration::from_secs(1), client.next()).await {}
                assert_eq!(client.skipped.not_json, 1, "{}", script.example);
            }
            end => {
                if end == "cancelled" {
                    client.cancel(&session).await;
                }
                let heard = client.listen(&id).await;
                assert_eq!(heard.end(), end, "{}", script.example);
                if script.name == "grandchild" {
                    crate::misbehaviour::kill(&heard.text());
                    tokio::time::pause();
                } else if script.name == "tool" {
                    tokio::time::pause();
                }
            }
        }
    }
}

async fn heard(text: &str) -> Heard {
    let (mut client, session) = Client::with_session().await;
    client.play(&session, text).await
}

#[tokio::test(start_paused = true)]
async fn what_names_no_script_is_echoed_in_a_few_chunks() {
    let heard = heard("Hello, wörld! 😀").await;
    assert_eq!(heard.text(), "echo: Hello, wörld! 😀");
    assert!((2..=3).contains(&heard.updates.len()));
    assert_eq!(heard.end(), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn recall_says_what_was_asked_before_and_not_itself() {
    let (mut client, session) = Client::with_session().await;
    for expected in ["asked: ", "asked: recall", "asked: recall | recall"] {
        assert_eq!(client.play(&session, "recall").await.text(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn slow_streams_for_its_time_at_an_even_pace() {
    let (mut client, session) = Client::with_session().await;
    let start = Instant::now();
    let heard = client.play(&session, "slow 1020").await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(1020) && took < Duration::from_millis(1100), "{took:?}");
    assert_eq!(heard.updates.len(), 22);
    assert!(heard.text().starts_with("1 2 3 ") && heard.text().ends_with("21 done"));
}

#[tokio::test(start_paused = true)]
async fn slow_for_no_time_is_done_at_once() {
    assert_eq!(heard("slow 0").await.text(), "done");
}

#[tokio::test(start_paused = true)]
async fn thoughts_come_before_the_answer() {
    let heard = heard("think of a number").await;
    assert_eq!(heard.chunks("agent_thought_chunk").concat(), "let me think about \"of a number\"");
    assert_eq!(heard.text(), "echo: of a number");
    let kinds: Vec<&str> = heard.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    assert!(kinds.is_sorted_by_key(|kind| *kind == "agent_message_chunk"), "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_has_exactly_its_bytes() {
    for length in [0, 1, 9, 16 * 1024, 16 * 1024 + 1, 100_003] {
        let text = heard(&format!("long {length}")).await.text();
        assert_eq!(text.len(), length);
        assert!(text.bytes().enumerate().all(|(at, byte)| usize::from(byte - b'0') == at % 10));
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_turn_says_nothing_and_ends_normally() {
    let heard = heard("empty").await;
    assert_eq!((heard.updates.len(), heard.end()), (0, "end_turn".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn failure_carries_its_details() {
    let error = heard("fail no disk").await.answer.unwrap_err();
    assert_eq!((error.code, error.details().as_deref()), (-32603, Some("no disk")));
    assert!(heard("fail").await.answer.unwrap_err().details().is_some());
}

#[tokio::test(start_paused = true)]
async fn refusal_and_exhaustion_say_something_first() {
    for (text, end) in [("refuse", "refusal"), ("max_tokens", "max_tokens")] {
        let heard = heard(text).await;
        assert_eq!(heard.end(), end);
        assert!(!heard.text().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_arrives_whole_and_in_order() {
    let heard = heard("flood 2000").await;
    let expected: String = (1..=2000).map(|n| format!("{n} ")).collect();
    assert_eq!(heard.text(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_meanwhile_is_asked_for_and_repeated() {
    let (mut client, session) = Client::with_session().await;
    client.prompt(&session, "steer 100").await;
    client.next_update().await;
    let question = client.next().await.unwrap();
    assert_eq!(question.method(), Some("craft/drainMidTurnQueue"));
    let acp::Kind::Request { id, .. } = question.kind() else { panic!("a request") };
    client.write(&acp::compose::response(id, &serde_json::json!({"messages": ["left", "right"], "items": []}))).await;
    assert_eq!(client.next_update().await["content"]["text"], "; heard: left, right");
}
