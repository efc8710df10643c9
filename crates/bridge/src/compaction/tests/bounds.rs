//! What is left out when there is too much, and what is said of it.

use super::notation::{Life, history};
use crate::compaction::{Bounds, Seed};

/// Bounds by which nothing is left out.
const WIDE: Bounds = Bounds { window_bytes: 1_000_000, journal_events: 1_000_000, journal_bytes: 1_000_000 };

fn bytes_of(script: &str) -> usize {
    let (turns, _) = Life::of(script, WIDE).compaction.told("s");
    turns.frames.iter().map(bytes::Bytes::len).sum()
}

#[test]
fn the_oldest_turns_make_room_as_wholes() {
    let window_bytes = bytes_of("say a, plan 1, end, say b, plan 2, end");
    let life = Life::of("say a, plan 1, end, say b, plan 2, end, say c, plan 3, end", Bounds { window_bytes, ..WIDE });
    assert_eq!(life.shown(), "(-3 1 turn) 4=say b 5=plan 2 6=end 7=say c 8=plan 3 9=end |");
}

#[test]
fn of_a_turn_that_is_too_large_by_itself_the_end_is_shown() {
    let window_bytes = bytes_of("plan 2, end");
    let life = Life::of("say a, end, plan 1, plan 2, end", Bounds { window_bytes, ..WIDE });
    assert_eq!(life.shown(), "(-3 1 turn) 4=plan 2 5=end |");
}

#[test]
fn a_history_makes_room_event_by_event_and_what_it_left_out_is_counted() {
    let seed = Seed { frames: vec![history(1), history(2), history(3)], left_out: 5 };
    let mut life = Life::new(seed, Bounds { window_bytes: 2 * history(1).len() + bytes_of("end"), ..WIDE });
    assert_eq!(life.shown(), "(-5) 1=plan 1 2=plan 2 3=plan 3 |");
    life.say("end");
    assert_eq!(life.shown(), "(-6) 2=plan 2 3=plan 3 1=end |");
}

#[test]
fn the_running_turn_keeps_its_newest_events_and_the_turns_before_it_stay() {
    let life = Life::of("say a, end, plan 1, plan 2, plan 3", Bounds { journal_events: 2, ..WIDE });
    assert_eq!(life.shown(), "1=say a 2=end | (-1) 4=plan 2 5=plan 3");
}

#[test]
fn a_turn_that_lost_its_beginning_is_shown_with_nothing_before_it() {
    let life = Life::of("say a, end, plan 1, plan 2, plan 3, end", Bounds { journal_events: 2, ..WIDE });
    assert_eq!(life.shown(), "(-4 1 turn) 5=plan 3 6=end |", "it would look as if there were no hole");
}

#[test]
fn a_tool_that_shows_its_output_over_and_over_costs_no_history() {
    let mut script = "say a, end, call c".to_owned();
    for number in 0..50 {
        script += &format!(", update c status={number}");
    }
    let life = Life::of(&script, Bounds { journal_events: 10, ..WIDE });
    assert!(life.shown().starts_with("1=say a 2=end | "), "{}", life.shown());
    assert!(life.shown().contains("call c status="), "{}", life.shown());
    let life = Life::of(&(script + ", end"), Bounds { journal_events: 10, ..WIDE });
    assert_eq!(life.shown(), "1=say a 2=end 53=call c status=49 54=end |");
}

#[test]
fn an_event_larger_than_all_that_is_kept_is_left_out_with_what_was_before_it() {
    let long = format!("plan {}", "x".repeat(2_000));
    let life = Life::of(&format!("plan 1, {long}, plan 2"), Bounds { journal_bytes: 1_000, ..WIDE });
    assert_eq!(life.shown(), "| (-2) 3=plan 2");
}
