//! What happens in the same millisecond, in every order. The promises that are checked are those of `properties.rs`.

use super::notation::{Play, word};
use super::properties::Model;
use crate::effect::{Effect, Tell};

/// A session under a model that watches it.
pub(super) struct Race {
    play: Play,
    model: Model,
}

impl Race {
    pub(super) fn after(setting: &[&str]) -> Self {
        let mut race = Self { play: Play::new(), model: Model::default() };
        setting.iter().for_each(|statement| race.act(statement));
        race
    }

    pub(super) fn act(&mut self, statement: &str) {
        self.step(statement);
        self.model.agree(&self.play);
    }

    /// The same without a look at everything that the session says of itself, which takes long where it holds many prompts.
    fn step(&mut self, statement: &str) {
        self.model.agent_answers(statement);
        self.play.act(statement).into_iter().for_each(|effect| self.model.take(effect));
    }

    /// The same, in words.
    fn told(&mut self, statement: &str) -> Vec<String> {
        let before = self.model.log.len();
        self.act(statement);
        self.model.log[before..].iter().map(word).collect()
    }

    /// Lets the session come to its end and looks whether each prompt has come to one.
    pub(super) fn rest(mut self) -> Model {
        for statement in ["shutdown", "wait 5000", "lost"] {
            self.act(statement);
        }
        let Self { model, .. } = self;
        assert!(model.forgotten);
        assert!(model.receipts.iter().all(|id| model.recorded.contains_key(id)), "each has its one outcome");
        model
    }
}

/// Every order of these.
pub(super) fn orders(of: &[&'static str], mut play: impl FnMut(&[&'static str])) {
    fn go(order: &mut Vec<&'static str>, at: usize, play: &mut impl FnMut(&[&'static str])) {
        if at == order.len() {
            return play(order);
        }
        for other in at..order.len() {
            order.swap(at, other);
            go(order, at + 1, play);
            order.swap(at, other);
        }
    }
    go(&mut of.to_vec(), 0, &mut play);
}

/// `wait 0` lets what is due happen.
const DEADLINES: &str = "wait 0";

#[test]
fn whatever_meets_in_one_millisecond_each_prompt_has_one_outcome() {
    // One that runs and two that wait; the deadlines of the first two have come and nobody has looked yet.
    let setting = ["admit A 5", "admit B 5", "admit C", "tick 5"];
    let meeting = ["settle A end_turn", "remove B", DEADLINES, "close", "cancel", "kill", "lost", "admit D"];
    let mut played = 0;
    orders(&meeting, |order| {
        let mut race = Race::after(&setting);
        for statement in order {
            race.act(statement);
        }
        race.rest();
        played += 1;
    });
    assert_eq!(played, 40_320, "and every shorter run is the beginning of one of these");
}

#[test]
fn an_agent_that_is_to_be_replaced_may_stop_die_or_be_closed_in_the_same_millisecond() {
    let setting = ["admit A 5", "admit B", "wait 5", "cancel", "tick 30000"];
    let meeting = [DEADLINES, "hostreplaced A", "replaced", "admit C", "remove B", "cancel", "close"];
    orders(&meeting, |order| {
        let mut race = Race::after(&setting);
        for statement in order {
            race.act(statement);
        }
        race.rest();
    });
    for answer in ["kept", "needless", "noagent", "lost"] {
        orders(&[DEADLINES, "settle A end_turn", answer, "admit C", "cancel", "close"], |order| {
            let mut race = Race::after(&setting);
            for statement in order {
                race.act(statement);
            }
            race.rest();
        });
    }
}

#[test]
fn a_cancel_at_the_moment_of_the_end_does_not_touch_the_next() {
    for setting in ["admit A", "admit A 5"] {
        // The cancel of one prompt by its name, in every order.
        orders(&["settle A end_turn", "remove A", DEADLINES], |order| {
            let mut race = Race::after(&[setting, "admit B", "tick 5"]);
            let told: Vec<String> = order.iter().flat_map(|statement| race.told(statement)).collect();
            assert!(!told.contains(&"cancel B".to_owned()), "{order:?} {told:?}");
            race.act("settle B end_turn");
            assert_eq!(race.model.published["B"], "end_turn", "{order:?}");
            race.rest();
        });
        // The cancel of what runs, heard before the end: the agent's answer and its own news of it are for A alone.
        orders(&["settle A end_turn", DEADLINES, "settle A cancelled"], |order| {
            let mut race = Race::after(&[setting, "admit B", "tick 5", "cancel"]);
            let told: Vec<String> = order.iter().flat_map(|statement| race.told(statement)).collect();
            assert!(told.contains(&"> prompt B".to_owned()) && !told.contains(&"> cancel".to_owned()), "{told:?}");
            race.act("settle B end_turn");
            assert_eq!(race.model.published["B"], "end_turn", "{order:?}");
            race.rest();
        });
    }
}

#[test]
fn a_thousand_hand_overs_at_the_instant_a_turn_ends_lose_and_double_nothing() {
    for ahead in [0, 1, 4] {
        let mut race = Race::after(&[]);
        let admit = |race: &mut Race, number: u32| race.step(&format!("admit p{number}"));
        (0..ahead).for_each(|number| admit(&mut race, number));
        for number in ahead..1_000 {
            // In turns: the end first, or the admission first.
            if number % 2 == 0 {
                race.step("settle ? end_turn");
                admit(&mut race, number);
            } else {
                admit(&mut race, number);
                race.step("settle ? end_turn");
            }
            if number % 50 == 0 {
                race.model.agree(&race.play);
            }
        }
        while race.model.held.is_some() {
            race.act("settle ? end_turn");
        }
        let model = race.rest();
        let dispatched: Vec<_> = model.log.iter().filter_map(dispatched).collect();
        let expected: Vec<_> = (0..1_000).map(|number| format!("p{number}")).collect();
        assert_eq!(dispatched, expected, "each once and in the order of admission");
        assert!(model.published.values().all(|outcome| outcome == "end_turn"));
    }
}

fn dispatched(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Tell(Tell::Prompt { prompt_id, .. }) => Some(prompt_id.to_string()),
        _ => None,
    }
}

#[test]
fn of_fifty_copies_of_one_id_one_runs_whatever_happens_between_them() {
    for between in ["wait 0", "settle A end_turn", "cancel", "remove A", "admit B"] {
        let mut race = Race::after(&[]);
        let mut answers = Vec::new();
        for copy in 0..50 {
            answers.extend(race.told("admit A"));
            if copy % 10 == 3 {
                race.act(between);
            }
        }
        let known = answers.iter().filter(|word| *word == "known true").count();
        assert_eq!((known, answers[1].as_str()), (49, "receipt A"), "{between}: {answers:?}");
        let model = race.rest();
        assert_eq!(model.log.iter().filter_map(dispatched).filter(|id| id == "A").count(), 1, "{between}");
    }
}
