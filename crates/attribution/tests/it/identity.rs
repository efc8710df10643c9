//! The identity rules, where they need more than a case: ids and results that no story can tell, and what the two rules
//! together may do to a verdict.

use attribution::strategies::{Deed, Entry, Event, Outcome, Story, What};
use attribution::{Basis, Settled, Withheld};
use ledger::{Fact, Terminal};
use proptest::prelude::*;

use crate::told::{self, verdict};

#[test]
fn an_id_that_may_have_been_another_is_not_answered_for() {
    let mut remains = told::story("[A if, user, answer]").remains();
    remains.ledger = String::from_utf8(remains.ledger).unwrap().replace("\"A\"", "\"\\ud800\"").into_bytes();
    assert_eq!(verdict(&told::files(&remains)), "attribution_guard");
}

#[test]
fn a_result_of_no_known_state_is_an_end_that_nobody_knows() {
    let mut remains = told::story("[A if, A user, answer, A result cancelled]").remains();
    let transcript = String::from_utf8(remains.transcript).unwrap();
    remains.transcript = transcript.replace("\"cancelled\"", "\"running\"").into_bytes();
    assert_eq!(verdict(&told::files(&remains)), "history_unreadable");
}

#[test]
fn a_result_that_cannot_be_read_does_not_let_an_older_one_count() {
    let mut remains = told::story("[A if, A user, answer, A result completed, A result failed]").remains();
    let transcript = String::from_utf8(remains.transcript).unwrap();
    for damage in [r#""message":7"#, r#""message":"""#, r#""code":{}"#] {
        let field = if damage.starts_with("\"code") { "\"code\":\"boom\"" } else { "\"message\":\"m\"" };
        remains.transcript = transcript.replace(field, damage).into_bytes();
        assert_eq!(verdict(&told::files(&remains)), "history_unreadable", "{damage}");
    }
}

/// The events that stories are made of.
const EVENTS: &str = "A if, B if, A if marked, B if marked, A if marked 2, A term, B term, B cancelled, B deadline, \
     A user, B user, user, user, answer, answer, answer, answer, call, tool, A result completed, B result completed, \
     A result cancelled, B result failed, note, compression, reminder, notification, job, mid-turn, same ms, back 3s, \
     rewind on 1, A user torn, A result failed torn, answer glued, answer undated";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happened: with identity a verdict differs from the one without only by a prompt's own result or by
    /// withholding more; and where the conversation was taken back, by knowing a question behind that as the prompt's own.
    #[test]
    fn identity_only_adds_a_prompts_own_end(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..14),
    ) {
        let story = told::story(&format!("[{}]", events.join(", ")));
        let mut remains = story.remains();
        let with = told::files(&remains).plan().verdict;
        // Without identity: the same files, unstamped.
        let unstamped = String::from_utf8(remains.transcript).unwrap();
        let unstamped = unstamped.replace("daemonPromptId", "unread").replace("\"turn_result\"", "\"unread\"");
        remains.transcript = unstamped.into_bytes();
        let without = told::files(&remains).plan().verdict;
        for settled in &with.settled {
            if settled.basis == Basis::TurnResult {
                prop_assert!(tells(&story, settled), "{}: {:?}", story, with);
            } else {
                let is_own = without.withheld == Some(Withheld::ForeignPrompt) && is_asked_behind_rewind(&story, settled);
                prop_assert!(
                    is_own || without.settled.contains(settled),
                    "{}: {:?}, without {:?}",
                    story,
                    with,
                    without
                );
            }
        }
    }
}

/// Whether a whole result of the story, with the prompt's own id, says this very ending.
fn tells(story: &Story, settled: &Settled) -> bool {
    let Fact::Terminal { terminal, .. } = settled.fact else { return false };
    let outcome = match terminal {
        Terminal::Completed => Outcome::Completed,
        Terminal::Cancelled => Outcome::Cancelled,
        Terminal::Error => Outcome::Failed,
        Terminal::Interrupted => return false,
    };
    story.events.iter().any(|event| {
        matches!(event, Event { deed: Deed::Write(Entry { owner: Some(owner), what: What::Result(told), .. }), torn: None, .. }
            if owner.prompt_id() == settled.prompt_id && *told == outcome)
    })
}

/// Whether the conversation was taken back and the prompt's own question stands behind that.
fn is_asked_behind_rewind(story: &Story, settled: &Settled) -> bool {
    let written = story.events.iter().filter_map(|event| match event {
        Event { deed: Deed::Write(entry), torn: None, .. } => Some(entry),
        _ => None,
    });
    let written: Vec<&Entry> = written.collect();
    let Some(rewind) = written.iter().rposition(|entry| entry.what == What::Rewind) else { return false };
    written[rewind..].iter().any(|entry| {
        let is_own = entry.owner.as_ref().is_some_and(|owner| owner.prompt_id() == settled.prompt_id);
        entry.what == What::User && is_own
    })
}
