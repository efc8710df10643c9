//! The identity rules: a prompt's own result, and another prompt's turn.

use proptest::prelude::*;

use crate::story::{Story, verdict};

fn check(words: &str, verdict: &str) {
    assert_eq!(Story::new(words).verdict(), verdict, "{words}");
}

#[test]
fn a_prompts_own_result_is_its_end() {
    check("A+ A? ! A#done", "A=completed:max_tokens");
    check("A+ A? A#cancelled", "A=cancelled:-");
    check("A+ A? A#failed", "A=error:boom");
    check("note A+m A? ! A#done", "A=completed:max_tokens");
}

#[test]
fn it_holds_where_the_tail_would_say_nothing() {
    check("A+ B+ A? ! A#done B?  B#cancelled", "A=completed:max_tokens B=cancelled:-");
    check("B+ B=late A+ A? A#done", "A=completed:max_tokens");
    check("A+ A? ! A#done zip", "A=completed:max_tokens");
    check("A+ A? ! A#done remind", "A=completed:max_tokens");
}

#[test]
fn the_newest_result_counts() {
    check("A+ A? A#cancelled A#done", "A=completed:max_tokens");
}

#[test]
fn a_result_before_the_marker_is_of_another_admission() {
    check("A+ A? ! A#done A=done A+m", "attribution_guard");
    check("A? ! A#done A+m", "marker_nothing_after");
    check("A+ A? ! A#done A=done A+m A? A#cancelled", "A=cancelled:-");
    // Without a marker nobody can say of which admission it is.
    check("A+ A? ! A#done A=done A+", "attribution_guard");
    check("A+ A? ! A=done A#done same A+", "attribution_guard");
}

#[test]
fn a_result_of_nobody_is_nobodys_end() {
    check("A+ ? ! B#done", "A=completed:reconstructed_from_transcript");
    check("A+ ? ! A#running", "A=completed:reconstructed_from_transcript");
}

#[test]
fn what_is_left_open_beside_a_result_ends_before_now() {
    check("A+ B+ A? ! A#done B? !", "A=completed:max_tokens tail_before_other_terminal");
    check("A+ B+ C+ A? ! A#done B? !", "A=completed:max_tokens several_dangling");
}

#[test]
fn a_turn_stamped_with_another_prompt_is_not_this_ones() {
    check("A+ A? !", "A=completed:reconstructed_from_transcript");
    check("A+ B? !", "foreign_prompt");
    check("A+ A? ! B?", "foreign_prompt");
    check("A+ A? ! ? !", "foreign_prompt");
    check("A+ B? ! ? !", "A=completed:reconstructed_from_transcript");
    check("A+ B? ! A? !", "A=completed:reconstructed_from_transcript");
}

#[test]
fn late_words_of_an_ended_turn_are_not_the_next_ones_answer() {
    check("B+ B? A+ B=done !", "foreign_prompt");
}

#[test]
fn what_is_said_into_a_turn_belongs_to_it() {
    check("A+ A? call tool mid !", "A=completed:reconstructed_from_transcript");
}

#[test]
fn an_id_that_may_have_been_another_is_not_answered_for() {
    let story = Story::new("A+ ? !");
    let files = story.files();
    files.write_ledger(story.ledger.replace("\"A\"", "\"\\ud800\"").as_bytes());
    assert_eq!(verdict(&files), "attribution_guard");
}

/// The words that stories are made of.
const WORDS: &str = "A+ B+ A+m B+m A+m2 A=done B=done B=cancelled B=late A? B? ? ! \
     ! call tool A#done B#done A#cancelled B#failed note zip remind task job mid same";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happened: with identity a verdict differs from the one without only by a prompt's own result or by
    /// withholding more.
    #[test]
    fn identity_only_adds_a_prompts_own_end(words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..14)) {
        let story = Story::new(&words.join(" "));
        let with = story.files().plan().verdict;
        // Without identity: the same files, unstamped.
        let unstamped = story.transcript.replace("daemonPromptId", "unread").replace("\"turn_result\"", "\"unread\"");
        let without = story.with_transcript(unstamped).files().plan().verdict;
        for settled in &with.settled {
            let is_its_own = settled.basis == attribution::Basis::TurnResult;
            let result = format!("\"promptId\":\"{}\"", settled.prompt_id);
            if is_its_own {
                prop_assert!(story.transcript.contains(&result), "{:?}: {:?}", words, with);
            } else {
                prop_assert!(without.settled.contains(settled), "{:?}: {:?}, without {:?}", words, with, without);
            }
        }
    }
}
