//! A second, far simpler account of what becomes of each prompt, and whether the machine agrees.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::notation::Play;

/// Prompts and their outcomes, without events, records, permissions or time.
#[derive(Default)]
struct Oracle {
    waiting: Vec<String>,
    held: Option<String>,
    cancelled: bool,
    closing: bool,
    gone: bool,
    outcomes: BTreeMap<String, String>,
}

impl Oracle {
    fn act(&mut self, statement: &str) {
        let words: Vec<&str> = statement.split_whitespace().collect();
        match words[..] {
            _ if self.gone => {}
            ["settle", "?", stop] => self.settle(if self.cancelled { "cancelled" } else { stop }),
            ["fail", "?"] => self.settle(if self.cancelled { "cancelled" } else { "-32603" }),
            ["host", "?", "completed", stop] => self.settle(stop),
            ["hostgone", "?"] => self.lose_agent(),
            ["lost"] => self.flush("channel_closed", true),
            ["shutdown"] => self.flush("daemon_shutdown", true),
            ["kill"] => self.flush("session_killed", true),
            _ if self.closing => {}
            ["admit", id] => self.admit(id),
            ["cancel"] => self.cancelled |= self.held.is_some(),
            ["remove", id] => self.remove(id),
            ["close"] => {
                self.flush("session_closed", false);
                (self.closing, self.cancelled, self.gone) = (true, true, self.held.is_none());
            }
            _ => panic!("no such statement: {statement}"),
        }
    }

    fn admit(&mut self, id: &str) {
        let known = self.outcomes.contains_key(id) || self.waiting.iter().chain(&self.held).any(|known| known == id);
        if !known && self.waiting.len() + usize::from(self.held.is_some()) < 5 {
            self.waiting.push(id.to_owned());
            self.run();
        }
    }

    fn remove(&mut self, id: &str) {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting == id) {
            self.waiting.remove(place);
            self.outcomes.insert(id.to_owned(), "cancelled".to_owned());
        }
        self.cancelled |= self.held.as_deref() == Some(id);
    }

    fn settle(&mut self, outcome: &str) {
        let Some(id) = self.held.take() else { return };
        self.outcomes.insert(id, outcome.to_owned());
        self.gone = self.closing;
        self.run();
    }

    fn run(&mut self) {
        if self.held.is_none() && !self.waiting.is_empty() {
            self.held = Some(self.waiting.remove(0));
            self.cancelled = false;
        }
    }

    fn lose_agent(&mut self) {
        if self.held.is_some() {
            self.flush("channel_closed", true);
        }
    }

    fn flush(&mut self, code: &str, running_too: bool) {
        let running = if running_too { self.held.take() } else { None };
        for id in running.into_iter().chain(self.waiting.drain(..)) {
            self.outcomes.insert(id, code.to_owned());
        }
        self.gone = running_too;
    }
}

fn statement() -> impl Strategy<Value = String> {
    let id = || prop::sample::select(&["A", "B", "C", "D", "E", "F", "G", "H"][..]);
    let fixed = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![
        10 => id().prop_map(|id| format!("admit {id}")),
        3 => id().prop_map(|id| format!("remove {id}")),
        8 => fixed(&["settle ? end_turn", "settle ? refusal", "fail ?", "host ? completed end_turn"]),
        3 => fixed(&["cancel"]),
        1 => fixed(&["close", "lost", "shutdown", "kill", "hostgone ?"]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn two_accounts_of_what_became_of_each_prompt_agree(script in prop::collection::vec(statement(), 0..60)) {
        let (mut play, mut oracle) = (Play::new(), Oracle::default());
        for statement in &script {
            play.act(statement);
            oracle.act(statement);
            for id in ["A", "B", "C", "D", "E", "F", "G", "H"] {
                let view = play.session.turn(Some(id));
                let ended = view.overlay.map(|ended| {
                    ended.terminal.code().or(ended.terminal.stop_reason()).unwrap_or_default().to_owned()
                });
                prop_assert_eq!(ended.as_ref(), oracle.outcomes.get(id), "{} after {}", id, statement);
                let unfinished = oracle.waiting.iter().chain(&oracle.held).any(|unfinished| unfinished == id);
                prop_assert_eq!(view.live.is_some(), unfinished, "{} after {}", id, statement);
            }
        }
    }
}
