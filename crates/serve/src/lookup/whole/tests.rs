//! Requests for a whole answer between whose looks the session moves on.

use std::cell::RefCell;

use bridge::{Clipped, InputWritten, PromptState};
use transcript::{Answer, TurnResult, TurnState};

use super::*;
use crate::whole::tests::ended;

/// What happens while something is read, and what the reading gives.
///
/// The words: `run` for a prompt that runs, `said` and `cut` for one that completed with a text that memory has whole or cut, `-` for
/// none; of a reading `answer` for the whole answer in the transcript, `completed` and `failed` for the ledger's terminal, `refused`
/// for a transcript that cannot be searched.
struct Fake {
    now: RefCell<&'static str>,
    /// For each reading in turn, last first: what it gives, and what the session has come to by then.
    readings: RefCell<Vec<(&'static str, &'static str)>>,
}

impl Fake {
    fn read(&self) -> &'static str {
        let (gives, then) = self.readings.borrow_mut().pop().expect("nobody reads more often than that");
        *self.now.borrow_mut() = then;
        gives
    }
}

impl AnswerSources for Fake {
    fn view(&self) -> TurnView {
        let completed = Terminal::Completed { stop_reason: "end_turn".into() };
        match *self.now.borrow() {
            "run" => TurnView { live: Some(live()), overlay: None },
            "-" => TurnView::default(),
            word => TurnView { live: None, overlay: Some(ended(completed, Some(("all", word == "cut")))) },
        }
    }

    async fn answered(&self) -> Result<Option<Answered>, Refusal> {
        match self.read() {
            "refused" => Err(Refusal::internal()),
            "answer" => {
                let result = TurnResult::new("p", TurnState::Completed, 5).with_result_text("all of it");
                Ok(Some(Answered { result, answer: Answer::Short("all of it".into()), partial: None }))
            }
            _ => Ok(None),
        }
    }

    async fn ledger(&self) -> Option<Ended> {
        match self.read() {
            "completed" => Some(ended(Terminal::Completed { stop_reason: "end_turn".into() }, None)),
            "failed" => Some(ended(Terminal::Error { message: "no".into(), code: None }, None)),
            _ => None,
        }
    }
}

fn live() -> LivePrompt {
    LivePrompt {
        prompt_id: "p".into(),
        state: PromptState::Running,
        prompt_text: Clipped::default(),
        queued_at_ms: 0,
        started_at_ms: None,
        heard_at_ms: None,
        silent_for_ms: None,
        waiting: None,
        wished_at_ms: None,
        originator: None,
        input_written: InputWritten::Yes,
    }
}

/// Asks while the session is in a state, with readings of the given results, each followed by what the session has come to.
async fn check(now: &'static str, readings: &[(&'static str, &'static str)], expected: &str) {
    let turned = readings.iter().rev().copied().collect();
    let fake = Fake { now: RefCell::new(now), readings: RefCell::new(turned) };
    let got = match whole_answer(&fake).await {
        Err(_) => "refused".to_owned(),
        Ok(FoundAnswer::Live(_)) => "live".to_owned(),
        Ok(FoundAnswer::Nothing) => "unknown".to_owned(),
        Ok(FoundAnswer::Whole(Whole::Short(text))) => text,
        Ok(FoundAnswer::Whole(Whole::Expired(_, gone))) => gone.as_str().to_owned(),
        Ok(FoundAnswer::Whole(Whole::NoResult(..))) => "no result".to_owned(),
        Ok(FoundAnswer::Whole(other)) => format!("{other:?}"),
    };
    assert_eq!(got, expected, "{now} {readings:?}");
    assert!(fake.readings.borrow().is_empty(), "{now} {readings:?}: less was read");
}

#[tokio::test]
async fn an_answer_comes_from_the_transcript_else_from_memory_else_there_is_only_an_outcome() {
    check("run", &[], "live").await;
    check("cut", &[("answer", "cut")], "all of it").await;
    check("said", &[("-", "said")], "all").await;
    check("cut", &[("-", "cut")], "not_recorded").await;
    check("-", &[("-", "-"), ("completed", "-")], "out_of_reach").await;
    check("-", &[("-", "-"), ("failed", "-")], "no result").await;
    check("-", &[("-", "-"), ("-", "-")], "unknown").await;
}

#[tokio::test]
async fn a_prompt_that_ends_while_the_disk_is_read_is_looked_for_once_more() {
    check("-", &[("-", "cut"), ("answer", "cut")], "all of it").await;
    check("-", &[("-", "-"), ("completed", "cut"), ("answer", "cut")], "all of it").await;
    check("-", &[("-", "run")], "live").await;
    check("-", &[("-", "-"), ("-", "run")], "live").await;
}

#[tokio::test]
async fn a_transcript_that_cannot_be_searched_does_not_show_that_a_text_is_gone() {
    check("said", &[("refused", "said")], "all").await;
    check("cut", &[("refused", "cut")], "refused").await;
    check("-", &[("refused", "-"), ("completed", "-")], "refused").await;
    check("-", &[("refused", "-"), ("failed", "-")], "no result").await;
    check("-", &[("refused", "-"), ("-", "-")], "refused").await;
}
