//! Cancelling, and what does not listen to it.

use std::time::Duration;

use acp::Kind;
use tokio::time::Instant;

use crate::client::Client;

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_a_streaming_turn_at_once() {
    let (mut client, session) = Client::with_session().await;
    let id = client.prompt(&session, "slow 10000").await;
    client.next_update().await;
    client.next_update().await;
    let start = Instant::now();
    client.cancel(&session).await;
    let heard = client.listen(&id).await;
    assert_eq!(heard.end(), "cancelled");
    assert!(start.elapsed() < Duration::from_millis(100) && !heard.text().contains("done"));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_right_behind_the_prompt_is_heard() {
    for text in ["hang", "stuck", "slow 1000", "flood 1000000"] {
        let (mut client, session) = Client::with_session().await;
        let id = client.prompt(&session, text).await;
        client.cancel(&session).await;
        assert_eq!(client.listen(&id).await.end(), "cancelled", "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_idle_harms_no_later_prompt() {
    let (mut client, session) = Client::with_session().await;
    client.cancel(&session).await;
    client.cancel("nobody").await;
    assert_eq!(client.play(&session, "slow 100").await.end(), "end_turn");
    client.cancel(&session).await;
    assert_eq!(client.play(&session, "slow 100").await.end(), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_right_behind_a_cancelled_one_runs_undisturbed() {
    let (mut client, session) = Client::with_session().await;
    let first = client.prompt(&session, "hang").await;
    client.cancel(&session).await;
    assert_eq!(client.listen(&first).await.end(), "cancelled");
    assert_eq!(client.play(&session, "hello").await.text(), "echo: hello");
}

#[tokio::test(start_paused = true)]
async fn a_deaf_turn_streams_on_through_a_cancel() {
    let (mut client, session) = Client::with_session().await;
    let id = client.prompt(&session, "deaf 500").await;
    client.next_update().await;
    let start = Instant::now();
    client.cancel(&session).await;
    let heard = client.listen(&id).await;
    assert_eq!(heard.end(), "end_turn");
    assert!(start.elapsed() >= Duration::from_millis(450));
    assert!(heard.updates.len() >= 10);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_deaf_for_good_blocks_its_session_until_the_agent_ends() {
    let (mut client, session) = Client::with_session().await;
    client.prompt(&session, "deaf").await;
    client.next_update().await;
    client.cancel(&session).await;
    let heard = client.play(&session, "hello").await;
    assert_eq!(heard.end(), "-32600");
    assert!(heard.updates.is_empty());
    client.hang_up().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stuck_turn_has_said_everything_but_the_answer() {
    let (mut client, session) = Client::with_session().await;
    let id = client.prompt(&session, "stuck").await;
    assert_eq!(client.next_update().await["content"]["text"], "This is the whole answer.");
    client.cancel(&session).await;
    let message = client.next().await.unwrap();
    assert_eq!(*message.kind(), Kind::Response { id: Some(id) });
}
