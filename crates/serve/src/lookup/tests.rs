//! Polls between whose looks the session moves on.

use std::cell::RefCell;

use bridge::{Clipped, InputWritten, PromptState, Terminal};
use transcript::TurnState;

use super::*;

/// What happens while something is read, and what the reading gives.
///
/// The words: `run p` and `wait p` for an unfinished prompt, `fail p 5` and `cancel p 5` for one that ended then, `-` for nothing;
/// of a reading `done p 7` for a completed turn, `refused` for one that cannot be made.
struct Fake {
    now: RefCell<String>,
    /// For each reading in turn: what it gives, and what the session has come to by then.
    readings: RefCell<Vec<(String, String)>>,
    kept: RefCell<Vec<String>>,
}

impl Fake {
    fn read(&self) -> String {
        let (gives, then) = self.readings.borrow_mut().pop().expect("nobody reads more often than that");
        *self.now.borrow_mut() = then;
        gives
    }
}

impl Sources for Fake {
    fn view(&self, prompt: Option<&str>) -> TurnView {
        let now = self.now.borrow();
        let words: Vec<&str> = now.split_whitespace().collect();
        let named = |id: &str| prompt.is_none_or(|prompt| prompt == id);
        match words[..] {
            ["run", id] if named(id) => TurnView { live: Some(live(id, PromptState::Running)), overlay: None },
            ["wait", id] if named(id) => TurnView { live: Some(live(id, PromptState::Queued)), overlay: None },
            [how, id, at] if named(id) => TurnView { live: None, overlay: Some(ended(how, id, at)) },
            _ => TurnView::default(),
        }
    }

    fn is_settled(&self, _: &Ended) -> bool {
        false
    }

    async fn record(&self, _: Option<&str>) -> Result<Scanned, Refusal> {
        let gives = self.read();
        match gives.split_whitespace().collect::<Vec<_>>()[..] {
            ["refused"] => Err(Refusal::internal()),
            ["done", id, at] => {
                let result = TurnResult::new(id, TurnState::Completed, at.parse().unwrap());
                Ok(Scanned { found: Some(result), transcript_bytes: 1 })
            }
            _ => Ok(Scanned::default()),
        }
    }

    async fn ledger(&self, _: &str) -> Option<Ended> {
        let gives = self.read();
        match gives.split_whitespace().collect::<Vec<_>>()[..] {
            [how, id, at] => Some(ended(how, id, at)),
            _ => None,
        }
    }

    fn keep(&self, ended: &Ended, _: Seen, changed: bool) {
        if changed {
            self.kept.borrow_mut().push(ended.prompt_id.clone());
        }
    }
}

fn live(id: &str, state: PromptState) -> LivePrompt {
    LivePrompt {
        prompt_id: id.into(),
        state,
        prompt_text: Clipped::default(),
        queued_at_ms: 0,
        started_at_ms: None,
        heard_at_ms: None,
        wished_at_ms: None,
        silent_for_ms: None,
        waiting: None,
        originator: None,
        input_written: InputWritten::No,
    }
}

fn ended(how: &str, id: &str, at: &str) -> Ended {
    let terminal = match how {
        "fail" => Terminal::Error { message: "no".into(), code: None },
        "cancel" => Terminal::Cancelled { agent_stop_reason: None },
        other => panic!("no such end: {other}"),
    };
    Ended {
        prompt_id: id.into(),
        prompt_text: None,
        result_text: None,
        partial_text: None,
        queued_at_ms: Some(0),
        started_at_ms: Some(1),
        ended_at_ms: at.parse().unwrap(),
        originator: None,
        terminal,
        input_written: None,
        expiry: None,
    }
}

/// Polls (`-` is the current prompt) while the session is as `at_first`, and reads so often: each reading's words, and the
/// session's afterwards.
async fn poll(prompt: &str, at_first: &str, readings: &[(&str, &str)]) -> (String, Vec<String>) {
    let readings: Vec<_> =
        readings.iter().rev().map(|(gives, then)| ((*gives).to_owned(), (*then).to_owned())).collect();
    let fake = Fake { now: RefCell::new(at_first.into()), readings: readings.into(), kept: RefCell::default() };
    let found = match prompt {
        "-" => of_current(&fake).await,
        prompt => of_prompt(&fake, prompt).await,
    };
    let word = match found {
        Ok(Found::Live(live)) => format!("{} {}", live.state.as_str(), live.prompt_id),
        Ok(Found::Ended(ended)) => format!("{} {}", ended.terminal.state(), ended.prompt_id),
        Ok(Found::Ledger(ended)) => format!("ledger {}", ended.prompt_id),
        Ok(Found::Nothing) => "nothing".into(),
        Err(refusal) => refusal.code.into(),
    };
    assert!(fake.readings.borrow().is_empty(), "{prompt} from {at_first}: fewer readings than that");
    (word, fake.kept.into_inner())
}

async fn check(prompt: &str, at_first: &str, readings: &[(&str, &str)], expected: &str) {
    assert_eq!(poll(prompt, at_first, readings).await.0, expected, "{prompt} from {at_first} by {readings:?}");
}

#[tokio::test]
async fn what_is_live_is_answered_without_a_look_at_the_disk() {
    check("p", "run p", &[], "running p").await;
    check("-", "wait p", &[], "queued p").await;
}

#[tokio::test]
async fn a_prompt_that_is_admitted_while_the_transcript_is_read_is_live_even_when_the_reading_fails() {
    for gives in ["-", "refused", "done p 7"] {
        check("p", "-", &[(gives, "run p")], "running p").await;
        check("-", "-", &[(gives, "run p")], "running p").await;
    }
}

#[tokio::test]
async fn a_prompt_that_is_admitted_while_the_ledger_is_read_is_live() {
    for transcript in ["-", "refused"] {
        for ledger in ["-", "fail p 3"] {
            check("p", "-", &[(transcript, "-"), (ledger, "wait p")], "queued p").await;
        }
    }
}

#[tokio::test]
async fn a_prompt_that_ends_while_something_is_read_has_ended_even_when_the_reading_fails() {
    for gives in ["-", "refused"] {
        check("p", "-", &[(gives, "cancel p 5")], "cancelled p").await;
        check("-", "-", &[(gives, "cancel p 5"), ("-", "cancel p 5")], "cancelled p").await;
        check("p", "-", &[(gives, "-"), ("fail p 3", "cancel p 5")], "cancelled p").await;
    }
}

#[tokio::test]
async fn the_current_prompt_is_looked_up_again_after_the_second_reading_too() {
    for gives in ["-", "refused", "done a 9"] {
        check("-", "cancel a 5", &[("-", "cancel a 5"), (gives, "run b")], "running b").await;
        check("-", "cancel a 5", &[("-", "cancel a 5"), (gives, "cancel b 9")], "cancelled b").await;
    }
}

#[tokio::test]
async fn what_was_read_of_one_prompt_is_never_taken_for_another() {
    let (found, kept) = poll("-", "fail a 5", &[("-", "fail a 5"), ("done a 5", "fail b 9")]).await;
    assert_eq!((found.as_str(), kept), ("error b", vec![]));
    let (found, kept) = poll("-", "fail a 5", &[("-", "fail a 5"), ("done a 5", "fail a 5")]).await;
    assert_eq!((found.as_str(), kept), ("completed a", vec!["a".to_owned()]));
}

#[tokio::test]
async fn a_reading_that_fails_hides_nothing_that_memory_knows_and_does_not_say_that_there_is_nothing() {
    check("p", "fail p 5", &[("refused", "fail p 5")], "error p").await;
    check("p", "-", &[("refused", "-"), ("fail p 3", "-")], "ledger p").await;
    check("p", "-", &[("refused", "-"), ("-", "-")], "internal_error").await;
    check("-", "-", &[("refused", "-")], "internal_error").await;
    check("p", "-", &[("-", "-"), ("-", "-")], "nothing").await;
    check("-", "-", &[("-", "-")], "nothing").await;
}
