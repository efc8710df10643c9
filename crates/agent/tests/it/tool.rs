//! Tools: asked for, allowed, rejected, cancelled.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Client, Heard, eventually, trace_file};

async fn tool(choice: Option<&'static str>, command: &str) -> Heard {
    let (mut client, session) = Client::with_session().await;
    client.choice = choice;
    client.play(&session, &format!("tool {command}")).await
}

fn output(heard: &Heard) -> &str {
    let last = heard.updates.iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["rawOutput"]["output"], last["content"][0]["content"]["text"]);
    last["rawOutput"]["output"].as_str().unwrap()
}

#[tokio::test]
async fn an_allowed_tool_runs_and_its_output_is_told() {
    let heard = tool(Some("allow_once"), "echo out; echo err >&2; pwd").await;
    assert_eq!(heard.statuses(), ["pending", "in_progress", "completed"]);
    assert_eq!(output(&heard), "out\n/\nerr\n");
    assert_eq!((heard.text().as_str(), heard.end().as_str()), ("It ran.", "end_turn"));
}

#[tokio::test]
async fn the_question_names_the_call_and_offers_all_four_kinds() {
    let heard = tool(Some("allow_once"), "true").await;
    let [question] = heard.asked.as_slice() else { panic!("{:?}", heard.asked) };
    let call = heard.updates.iter().find(|update| update["sessionUpdate"] == "tool_call").unwrap();
    assert_eq!(question["toolCall"]["toolCallId"], call["toolCallId"]);
    assert_eq!(call["title"], "true");
    assert_eq!(call["rawInput"], json!({"command": "true"}));
    let kinds: Vec<&Value> = question["options"].as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
}

#[tokio::test]
async fn a_failing_command_is_a_failed_call_and_a_normal_turn() {
    let heard = tool(Some("allow_once"), "echo before; exit 3").await;
    assert_eq!(heard.statuses(), ["pending", "in_progress", "failed"]);
    assert!(output(&heard).starts_with("before\n") && output(&heard).contains('3'));
    assert_eq!(heard.end(), "end_turn");
}

#[tokio::test]
async fn a_command_that_cannot_start_is_a_failed_call() {
    let mut client = Client::new();
    let session = client.new_session("/no/such/folder").await;
    let heard = client.play(&session, "tool true").await;
    assert_eq!(heard.statuses(), ["pending", "in_progress", "failed"]);
    assert_eq!(heard.end(), "end_turn");
}

#[tokio::test]
async fn the_command_has_no_input() {
    assert_eq!(output(&tool(Some("allow_once"), "cat; echo end").await), "end\n");
}

#[tokio::test]
async fn much_output_is_cut_and_the_command_still_ends() {
    let heard = tool(Some("allow_once"), "head -c 2000000 /dev/zero | tr '\\0' x; echo done >&2").await;
    assert_eq!(heard.statuses().last(), Some(&"completed"));
    assert_eq!(output(&heard).len(), 256 * 1024 + "done\n".len());
}

#[tokio::test(start_paused = true)]
async fn a_rejected_tool_does_not_run() {
    let trace = trace_file("rejected");
    for choice in ["reject_once", "reject_always", "an option of our own making"] {
        let heard = tool(Some(choice), &format!("touch {}", trace.display())).await;
        assert_eq!(heard.statuses(), ["pending", "failed"], "{choice}");
        assert_eq!((heard.text().as_str(), heard.end().as_str()), ("I was not allowed to run it.", "end_turn"));
        assert!(!trace.exists(), "{choice}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_cancelled_cancels_the_turn_and_closes_the_call() {
    let heard = tool(None, "true").await;
    assert_eq!(heard.statuses(), ["pending", "failed"]);
    assert_eq!((heard.text().as_str(), heard.end().as_str()), ("", "cancelled"));
}

#[tokio::test]
async fn always_holds_for_the_session_and_no_other() {
    for (choice, statuses) in
        [("allow_always", &["pending", "in_progress", "completed"][..]), ("reject_always", &["pending", "failed"])]
    {
        let (mut client, session) = Client::with_session().await;
        client.choice = Some(choice);
        for questions in [1, 0] {
            let heard = client.play(&session, "tool true").await;
            assert_eq!((heard.asked.len(), heard.statuses()), (questions, statuses.to_vec()), "{choice}");
        }
        let other = client.new_session("/").await;
        assert_eq!(client.play(&other, "tool true").await.asked.len(), 1);
    }
}

#[tokio::test]
async fn each_call_has_an_id_of_its_own() {
    let (mut client, session) = Client::with_session().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let heard = client.play(&session, "tool true").await;
        ids.push(heard.asked[0]["toolCall"]["toolCallId"].as_str().unwrap().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_asking_ends_the_turn_without_an_answer_to_the_question() {
    let (mut client, session) = Client::with_session().await;
    let id = client.prompt(&session, "tool true").await;
    client.next_update().await;
    let question = client.next().await.unwrap();
    assert_eq!(question.method(), Some("session/request_permission"));
    client.cancel(&session).await;
    let heard = client.listen(&id).await;
    assert_eq!((heard.statuses(), heard.end().as_str()), (vec!["failed"], "cancelled"));
    // The answer that comes all the same finds nobody.
    let acp::Kind::Request { id, .. } = question.kind() else { panic!("{question:?}") };
    client.write(&acp::compose::response(id, &json!({"outcome": {"outcome": "cancelled"}}))).await;
    assert_eq!(client.play(&session, "hello").await.text(), "echo: hello");
}

#[tokio::test]
async fn a_cancel_while_the_command_runs_ends_both() {
    let (mut client, session) = Client::with_session().await;
    client.choice = Some("allow_always");
    client.play(&session, "tool true").await;
    let trace = trace_file("cancelled");
    let id = client.prompt(&session, &format!("tool echo $$ > {}; exec sleep 300", trace.display())).await;
    while client.next_update().await["status"] != "in_progress" {}
    let pid = || std::fs::read_to_string(&trace).ok().filter(|pid| pid.ends_with('\n'));
    eventually("the command has started", || pid().is_some()).await;
    client.cancel(&session).await;
    let heard = client.listen(&id).await;
    assert_eq!((heard.statuses(), heard.end().as_str()), (vec!["failed"], "cancelled"));
    let pid = pid().unwrap();
    std::fs::remove_file(&trace).unwrap();
    eventually("the command is gone", || !is_alive(pid.trim())).await;
}

fn is_alive(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success()
}
