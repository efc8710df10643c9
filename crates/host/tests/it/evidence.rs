//! The host is killed, and the transcript is all there is: cut it anywhere, and it says nothing wrong.

use std::path::Path;

use serde_json::json;
use transcript::{HistoryTail, Interruption, Role, Transcript, WINDOW_BYTES, classify, find_turn_result};

use crate::world::Store;

/// A completed turn, one with a tool, one that was cancelled in the middle of its words, and one whose agent died.
async fn written() -> Store {
    let store = Store::new();
    let mut host = store.host(&[]);
    host.open().await;
    host.turn("p1", "hello").await;
    let id = host.prompt("p2", "tool echo hi").await;
    let ask = host.until("session/request_permission").await;
    let allow = ask["params"]["options"].as_array().unwrap().iter().find(|it| it["kind"] == "allow_once").unwrap();
    host.reply(&ask, json!({ "outcome": { "outcome": "selected", "optionId": allow["optionId"] } })).await;
    host.answer(id).await;
    let id = host.prompt("p3", "slow 600000").await;
    host.until("session/update").await;
    host.cancel().await;
    host.answer(id).await;
    host.turn("p4", "die").await;
    host.rest().await;
    host.ended().await;
    store
}

/// What a reader finds: the prompt asked last, and whether the conversation looks like it was answered.
fn look(path: &Path) -> Option<(String, bool)> {
    let transcript = Transcript::open(path).unwrap()?;
    let mut branch = transcript.branch(WINDOW_BYTES).unwrap();
    let (mut tail, mut asked_last) = (HistoryTail::default(), None);
    while let Some(record) = branch.next_record().unwrap() {
        tail.push(&record);
        asked_last = asked_last.or(record.prompt_id);
    }
    tail.reach_the_beginning();
    let entries = tail.finish().unwrap().entries;
    let answered = entries.last().is_some_and(|last| last.role == Role::Model && last.calls.is_empty());
    Some((asked_last?, answered && classify(&entries) == Interruption::None))
}

#[tokio::test]
async fn cut_anywhere_it_shows_no_answer_to_a_prompt_that_got_none() {
    let store = written().await;
    let outcomes = [("p1", "completed"), ("p2", "completed"), ("p3", "cancelled"), ("p4", "error")];
    let whole = std::fs::read(store.transcript()).unwrap();
    let cut = store.path("cut.jsonl");
    std::fs::write(&cut, &whole).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&cut).unwrap();
    let mut clean = 0;
    for length in (0..=whole.len()).rev() {
        file.set_len(length as u64).unwrap();
        let Some((open, answered)) = look(&cut) else { continue };
        let outcome = outcomes.iter().find(|(prompt, _)| *prompt == open).unwrap().1;
        match find_turn_result(&cut, Some(&open)).unwrap() {
            Some(result) => assert_eq!(result.state.as_str(), outcome, "{open} at byte {length}"),
            None if answered => {
                clean += 1;
                assert_eq!(outcome, "completed", "{open} at byte {length}");
            }
            None => {}
        }
    }
    assert!(clean > 0, "the two answers are seen as such before their results are whole");
    assert_eq!(store.result("p4").unwrap()["state"], "error");
}
