//! Every script does what its line in the table says.

use std::time::Duration;

use agent::{SCRIPTS, Script};
use tokio::time::{Instant, timeout};

use crate::client::{Client, Heard};

/// How the example of each script ends.
fn expected_end(script: &Script) -> &'static str {
    match script.name {
        "" | "slow" | "think" | "long" | "wide" | "empty" | "recall" | "tool" | "steer" | "steps" => "end_turn",
        "quote" | "misquote" => "end_turn",
        "deaf" | "late" | "hasty" | "twice" | "noise" | "surrogate" | "endless" | "flood" | "grandchild" => "end_turn",
        "numbered" | "garble" => "end_turn",
        "mumble" => "unread",
        "hang" | "stuck" => "cancelled",
        "refuse" => "refusal",
        "max_tokens" => "max_tokens",
        "fail" => "-32603",
        "reject" => "-32602",
        "stop" => "pause_turn",
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
async fn a_wide_answer_has_exactly_its_characters() {
    for count in [0, 1, 5_461, 5_462, 20_000] {
        assert_eq!(heard(&format!("wide {count}")).await.text(), "€".repeat(count));
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_taken_in_their_order_and_nobody_is_asked() {
    let heard = heard("steps before think tool after").await;
    let kinds: Vec<&str> = heard.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
    );
    assert_eq!((heard.text().as_str(), heard.statuses(), heard.asked.len()), ("beforeafter", vec!["completed"], 0));
}

#[tokio::test(start_paused = true)]
async fn a_quote_is_the_prompt_under_an_id_of_its_own_and_a_misquote_something_else() {
    let ids = |heard: &Heard| -> Vec<String> {
        heard.updates.iter().filter_map(|update| update["messageId"].as_str()).map(str::to_owned).collect()
    };
    let twice = heard("quote 2").await;
    assert_eq!(
        (twice.chunks("user_message_chunk"), ids(&twice)),
        (vec!["quote 2"; 2], vec!["user-1".into(), "user-2".into()])
    );
    let wrong = heard("misquote").await;
    assert_eq!((ids(&wrong), wrong.chunks("user_message_chunk").contains(&"misquote")), (vec!["user-1".into()], false));
    assert!(!twice.text().is_empty() && !wrong.text().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rejection_has_its_number_and_says_only_what_it_is_to() {
    for (text, number, words) in [("reject -32601", "-32601", ""), ("reject -32602 but why", "-32602", "but why")] {
        let heard = heard(text).await;
        assert_eq!((heard.end().as_str(), heard.text().as_str()), (number, words));
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
