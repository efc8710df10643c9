//! What a client that attaches late is shown: everything up to the last finished turn, and what has happened since, within a bound.

use crate::clock::now_ms;
use crate::wire::history_truncated;
use serde::Deserialize;

/// The two parts of a late client's replay, each a list of envelopes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    pub(crate) compacted: Vec<String>,
    pub(crate) live: Vec<String>,
}

/// Events that a late client cannot be shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Missing {
    /// Before the history of the load: so many at least.
    pub(crate) before: u64,
    /// Between the history and the events that are still remembered.
    pub(crate) forgotten: u64,
}

/// What of an envelope tells whether it closes a turn.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

/// Puts the history of a load and the events since into two parts, at most `bytes_max` of the newest in all. When something had to be
/// left out, here or before (`missing` events at least), the first entry says so. Of a history whose next events are `forgotten`
/// nothing is shown, or it would look as if they had never been.
pub(crate) fn split(history: &[String], events: Vec<String>, missing: Missing, bytes_max: usize) -> Journal {
    let left_out = if missing.forgotten > 0 { history.len() } else { 0 };
    let history = &history[left_out..];
    let boundary = events.iter().rposition(|event| closes_turn(event)).map_or(0, |at| at + 1);
    let mut compacted: Vec<String> = history.to_vec();
    let mut live = events;
    let rest = live.split_off(boundary);
    compacted.append(&mut live);
    let mut live = rest;
    let mut left = bytes_max;
    let dropped_live = keep_newest(&mut live, &mut left);
    let dropped = dropped_live + keep_newest(&mut compacted, &mut left);
    let truncated = missing.before + missing.forgotten + (left_out + dropped) as u64;
    if truncated > 0 {
        let retained = compacted.len() + live.len();
        compacted.insert(0, history_truncated(truncated, retained, bytes_max, now_ms()));
    }
    Journal { compacted, live }
}

fn closes_turn(event: &str) -> bool {
    serde_json::from_str::<Envelope<'_>>(event)
        .is_ok_and(|event| matches!(&*event.kind, "turn_complete" | "turn_error"))
}

/// Drops from the front what does not fit; the number of entries dropped.
fn keep_newest(events: &mut Vec<String>, left: &mut usize) -> usize {
    let fits = events.iter().rev().take_while(|event| {
        let fits = event.len() <= *left;
        *left = if fits { *left - event.len() } else { 0 };
        fits
    });
    let dropped = events.len() - fits.count();
    events.drain(..dropped);
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(kind: &str) -> String {
        json!({ "type": kind }).to_string()
    }

    #[test]
    fn the_last_terminal_is_the_boundary() {
        let events = ["session_update", "turn_complete", "session_update"].map(event).to_vec();
        let journal = split(&[event("history")], events, Missing::default(), 1000);
        assert_eq!(journal.compacted, ["history", "session_update", "turn_complete"].map(event));
        assert_eq!(journal.live, [event("session_update")]);
    }

    #[test]
    fn without_a_terminal_all_events_are_live() {
        let journal = split(&[], vec![event("a"), event("b")], Missing::default(), 1000);
        assert_eq!((journal.compacted.len(), journal.live.len()), (0, 2));
    }

    #[test]
    fn what_does_not_fit_is_dropped_from_the_old_end_and_said() {
        let events = vec![event("turn_complete"), event("b")];
        let journal = split(&[event("a")], events, Missing::default(), event("b").len() + event("turn_complete").len());
        assert_eq!(journal.live, [event("b")]);
        assert!(journal.compacted[0].contains("history_truncated"), "{:?}", journal.compacted);
        assert_eq!(journal.compacted[1..], [event("turn_complete")]);
    }

    #[test]
    fn a_history_that_the_remembered_events_do_not_follow_is_left_out_and_said() {
        let missing = Missing { before: 1, forgotten: 3 };
        let journal = split(&[event("history"), event("history")], vec![event("b")], missing, 1000);
        assert_eq!((journal.compacted.len(), journal.live), (1, vec![event("b")]));
        let said: serde_json::Value = serde_json::from_str(&journal.compacted[0]).unwrap();
        assert_eq!((&said["type"], &said["data"]["truncatedEvents"]), (&json!("history_truncated"), &json!(6)));
    }
}
