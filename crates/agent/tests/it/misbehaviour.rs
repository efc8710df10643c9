//! What the agent does wrong when told to.

use std::process::Command;
use std::sync::atomic::Ordering;

use acp::Kind;

use crate::client::Client;

/// Ends a process that a script left behind.
pub(crate) fn kill(pid: &str) {
    assert!(pid.parse::<u32>().is_ok(), "{pid:?} is no pid");
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success(), "{pid} was not there");
}

#[tokio::test(start_paused = true)]
async fn death_comes_after_the_last_words_and_without_an_answer() {
    let (mut client, session) = Client::with_session().await;
    client.prompt(&session, "die").await;
    assert_eq!(client.next_update().await["content"]["text"], "these are my last words");
    assert!(client.next().await.is_none());
    assert!(client.dead.load(Ordering::SeqCst));
    client.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_deadly() {
    let (mut client, session) = Client::with_session().await;
    client.play(&session, "hello").await;
    let dead = client.dead.clone();
    client.hang_up().await.unwrap();
    assert!(!dead.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn late_updates_follow_the_answer_and_may_fall_into_the_next_turn() {
    let (mut client, session) = Client::with_session().await;
    let heard = client.play(&session, "late 2").await;
    assert_eq!((heard.text().as_str(), heard.end().as_str()), ("answered", "end_turn"));
    assert_eq!(client.next_update().await["content"]["text"], " late 1");
    let next = client.play(&session, "slow 100").await;
    assert!(next.text().contains(" late 2"), "{}", next.text());
    assert_eq!(next.end(), "end_turn");
}

#[tokio::test(start_paused = true)]
async fn a_hasty_answer_comes_before_the_last_words() {
    let (mut client, session) = Client::with_session().await;
    let heard = client.play(&session, "hasty").await;
    assert_eq!((heard.text().as_str(), heard.end().as_str()), ("so far", "end_turn"));
    assert_eq!(client.next_update().await["content"]["text"], ", and the rest");
}

#[tokio::test(start_paused = true)]
async fn a_second_answer_follows_the_first_and_the_next_turn_is_a_turn_of_its_own() {
    let (mut client, session) = Client::with_session().await;
    let id = client.prompt(&session, "twice").await;
    client.listen(&id).await;
    let again = client.next().await.unwrap();
    assert_eq!(*again.kind(), Kind::Response { id: Some(id) });
    assert_eq!(client.play(&session, "hello").await.text(), "echo: hello");
}

#[tokio::test(start_paused = true)]
async fn noise_is_no_messages_and_the_answer_is_whole() {
    let (mut client, session) = Client::with_session().await;
    let heard = client.play(&session, "noise").await;
    assert_eq!((heard.text().as_str(), heard.end().as_str()), ("before and after", "end_turn"));
    let skipped = client.skipped;
    assert_eq!((skipped.not_json, skipped.not_an_object, skipped.no_envelope), (2, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn updates_with_ids_are_told_all_the_same() {
    let (mut client, session) = Client::with_session().await;
    assert_eq!(client.play(&session, "numbered").await.text(), "first second third");
}

#[tokio::test(start_paused = true)]
async fn what_is_garbled_cannot_be_read_or_not_exactly() {
    let (mut client, session) = Client::with_session().await;
    for (how, heard, lines) in [
        ("nan", "first third", 1),
        ("deep", "first third", 1),
        ("tab", "first third", 1),
        ("torn", "first third", 2),
        ("joined", "first third", 1),
        ("halves", "first s\u{fffd}ec\u{fffd}ond third", 0),
        ("bytes", "first caf\u{fffd} third", 0),
        ("late", "first", 0),
    ] {
        let before = client.skipped.total();
        assert_eq!(client.play(&session, &format!("garble {how}")).await.text(), heard, "{how}");
        assert_eq!(client.skipped.total() - before, lines, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mumbled_answer_is_none() {
    let (mut client, session) = Client::with_session().await;
    for how in ["nan", "deep", "tab", "torn", "batched", "joined"] {
        let before = client.skipped.total();
        client.prompt(&session, &format!("mumble {how}")).await;
        assert_eq!(client.next_update().await["content"]["text"], "this is the answer");
        let next = tokio::time::timeout(std::time::Duration::from_secs(1), client.next()).await;
        assert!(next.is_err() && client.skipped.total() > before, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn half_a_pair_is_really_on_the_wire() {
    let (mut client, session) = Client::with_session().await;
    client.prompt(&session, "surrogate").await;
    let message = client.next().await.unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(message.raw()).is_err());
    assert!(message.params().unwrap().contains("\\ud83d\""));
}

#[tokio::test(start_paused = true)]
async fn an_endless_line_is_one_line_that_is_no_message() {
    let (mut client, session) = Client::with_session().await;
    let heard = client.play(&session, "endless 100000").await;
    assert_eq!(heard.text(), "over");
    assert_eq!(client.skipped.total(), 1);
}

#[tokio::test]
async fn a_grandchild_lives_on_in_a_session_of_its_own() {
    let (mut client, session) = Client::with_session().await;
    let heard = client.play(&session, "grandchild").await;
    let pid = heard.text();
    client.hang_up().await.unwrap();
    let ours = std::fs::read_to_string("/proc/self/stat");
    let theirs = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    kill(&pid);
    // Elsewhere than on Linux that it could be killed is all we can tell.
    if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
        let field =
            |stat: &str, number: usize| stat.rsplit(") ").next().unwrap().split(' ').nth(number).unwrap().to_owned();
        let (parent, session) = (1, 3);
        assert_ne!(field(&ours, session), field(&theirs, session));
        assert_ne!(field(&theirs, parent), std::process::id().to_string());
    }
}
