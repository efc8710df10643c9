//! Any sequence of commands, against a model in memory that a reader can hold in the head.

use std::collections::HashMap;

use proptest::prelude::*;
use turnd_request::limits::LATE_MAX;
use turnd_request::store::{Applied, Entry, Registered, Retention, StoreError};
use turnd_request::{
    Cause, Effect, Evidence, Hash, Input, InputWritten, Mismatch, Recovered, Refusal, Registration, Request, Stage,
    step,
};

use crate::world::{NOON, World, asked, dispatched, id, outcome, settled};

/// What a caller, an agent, a clock or a crash may do.
#[derive(Debug, Clone)]
enum Act {
    Register { name: usize, input: u8, owner: bool },
    Apply { name: usize, input: Input },
    Stage { name: usize, text: String },
    Acknowledge { acked: u64 },
    Prune { through: u64 },
    Reopen,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn input() -> impl Strategy<Value = Input> {
    let written = || prop_oneof![Just(InputWritten::No), Just(InputWritten::Maybe), Just(InputWritten::Yes)];
    prop_oneof![
        1 => Just(Input::Admitted),
        1 => Just(Input::Refused),
        1 => Just(Input::Dropped(Refusal::Busy)),
        3 => Just(dispatched()),
        3 => Just(Input::Written),
        1 => any::<bool>().prop_map(|is_complete| Input::WriteFailed { is_complete }),
        1 => Just(Input::Bound { evidence: Evidence::FirstUpdate, user_record_id: None }),
        1 => "[uv]".prop_map(|record| Input::Bound { evidence: Evidence::UserRecord, user_record_id: Some(record) }),
        1 => written().prop_map(|written| Input::Mismatch { fact: Mismatch::TurnChanged, written }),
        3 => "[a-z ]{0,9}".prop_map(|text| settled(&text)),
        1 => written().prop_map(|written| Input::SessionEnded { cause: Cause::SessionClosed, written }),
        1 => written().prop_map(|written| Input::AgentExited { written }),
        1 => Just(Input::Cancel),
        1 => Just(Input::Deadline),
        1 => Just(Input::Recovered(Recovered::Unsubmitted)),
        1 => Just(Input::Recovered(Recovered::StoreRecovered)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let name = 0..NAMES.len();
    prop_oneof![
        4 => (name.clone(), prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(name, other, owner)| Act::Register { name, input: u8::from(other), owner }),
        12 => (name.clone(), input()).prop_map(|(name, input)| Act::Apply { name, input }),
        2 => (name, "[a-z]{1,5}").prop_map(|(name, text)| Act::Stage { name, text }),
        1 => (0_u64..9).prop_map(|acked| Act::Acknowledge { acked }),
        1 => (0_u64..9).prop_map(|through| Act::Prune { through }),
        1 => Just(Act::Reopen),
    ]
}

#[derive(Default)]
struct Model {
    requests: HashMap<&'static str, Request>,
    /// The owner and input of what was pruned.
    tombstones: HashMap<&'static str, (String, Hash)>,
    stages: HashMap<&'static str, Stage>,
    late: HashMap<&'static str, usize>,
    head: u64,
    pruned: u64,
    acked: Option<u64>,
}

impl Model {
    fn register(&mut self, name: &'static str, asked: &Registration) -> &'static str {
        let known = self.requests.get(name).map(|known| (&known.registration.owner, known.registration.input_hash));
        let known = known.or_else(|| self.tombstones.get(name).map(|(owner, input)| (owner, *input)));
        match known {
            Some((owner, _)) if *owner != asked.owner => "foreign",
            Some((_, input)) if input != asked.input_hash => "mismatch",
            Some(_) => {
                if self.requests.contains_key(name) {
                    "known"
                } else {
                    "tombstone"
                }
            }
            None => {
                self.requests.insert(name, Request::new(asked.clone()));
                "new"
            }
        }
    }

    /// The request after an input, and the number of its event if it ended just now.
    fn apply(&mut self, name: &'static str, input: &Input, at_ms: u64) -> Option<(Request, Option<u64>, bool)> {
        let request = self.requests.get_mut(name)?;
        let was_terminal = request.state.is_terminal();
        let effects = step(request, input, at_ms);
        let late = self.late.entry(name).or_default();
        *late = (*late + effects.iter().filter(|effect| matches!(effect, Effect::Late(_))).count()).min(LATE_MAX);
        if effects.contains(&Effect::Remove) {
            self.late.remove(name);
            self.stages.remove(name);
            return self.requests.remove(name).map(|request| (request, None, true));
        }
        request.apply(&effects, at_ms);
        let mut seq = None;
        if request.state.is_terminal() && !was_terminal {
            self.head += 1;
            request.terminal_seq = Some(self.head);
            seq = request.terminal_seq;
            self.stages.remove(name);
        }
        Some((request.clone(), seq, false))
    }

    fn prune(&mut self, through: u64) {
        let through = through.min(self.head);
        self.pruned = self.pruned.max(through);
        let gone: Vec<_> = self
            .requests
            .iter()
            .filter(|(_, request)| request.terminal_seq.is_some_and(|seq| seq <= through))
            .map(|(name, _)| *name)
            .collect();
        for name in gone {
            if let Some(request) = self.requests.remove(name) {
                self.tombstones.insert(name, (request.registration.owner, request.registration.input_hash));
                self.late.remove(name);
            }
        }
    }
}

fn play(world: &mut World, model: &mut Model, act: Act, place: u64) {
    match act {
        Act::Register { name, input, owner } => {
            let name = NAMES[name];
            let owner = if owner { "other" } else { "o" }.to_owned();
            let prompt_id = format!("prompt-{place}");
            let asked = Registration { owner, input_hash: Hash([input; 32]), prompt_id, ..asked(name) };
            let expected = model.register(name, &asked);
            let told = match world.ask(asked).unwrap() {
                Registered::New(_) => "new",
                Registered::Known(_) => "known",
                Registered::Tombstone(_) => "tombstone",
                Registered::Mismatch => "mismatch",
                Registered::ForeignOwner => "foreign",
                other => panic!("{other:?}"),
            };
            assert_eq!(told, expected);
        }
        Act::Apply { name, input } => {
            let mut expected = model.apply(NAMES[name], &input, NOON + place).ok_or(StoreError::Unknown);
            if let Ok((request, None, _)) = &mut expected {
                *request = read(request);
            }
            let told = world.apply_at(NAMES[name], input, NOON + place);
            let told =
                told.map(|Applied { request, event, is_removed }| (request, event.map(|event| event.seq), is_removed));
            assert_eq!(told, expected);
        }
        Act::Stage { name, text } => {
            let name = NAMES[name];
            let stage = Stage::new(outcome(&text), NOON);
            let told = world.stage(name, stage.clone());
            assert_eq!(told.ok(), model.requests.get(name).map(read));
            if model.requests.get(name).is_some_and(|request| !request.state.is_terminal()) {
                model.stages.entry(name).or_insert(stage);
            }
        }
        Act::Acknowledge { acked } => {
            let told = world.consume("c", acked, None).map(|consumer| consumer.acked_seq);
            if acked > model.head {
                assert_eq!(told, Err(StoreError::Ahead { asked: acked, head: model.head }));
            } else {
                model.acked = Some(model.acked.unwrap_or(0).max(acked));
                assert_eq!(told.ok(), model.acked);
            }
        }
        Act::Prune { through } => {
            model.prune(through);
            let kept_requests = model.head.saturating_sub(through);
            let retention = Retention { kept_ms: 0, kept_requests, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
            world.store().prune(retention, NOON + 1_000_000).unwrap();
        }
        Act::Reopen => {
            let open = model.requests.values().filter(|request| !request.state.is_terminal()).count();
            assert_eq!(world.open().len(), open);
        }
    }
}

/// A request as it is read: its final message is in its event alone.
fn read(request: &Request) -> Request {
    Request { final_message: None, ..request.clone() }
}

/// The store holds what the model holds, and nothing else.
fn compare(world: &World, model: &Model) {
    for name in NAMES {
        match world.store().get(&id(name)).unwrap() {
            Some(Entry::Request(request)) => assert_eq!(Some(*request), model.requests.get(name).map(read)),
            Some(Entry::Tombstone(_)) => assert!(model.tombstones.contains_key(name)),
            Some(Entry::Expired) => panic!("{name} tells no age"),
            None => assert!(!model.requests.contains_key(name) && !model.tombstones.contains_key(name)),
        }
        assert_eq!(world.store().staged(&id(name)).unwrap().as_ref(), model.stages.get(name));
        assert_eq!(world.store().late(&id(name)).unwrap().len(), model.late.get(name).copied().unwrap_or(0));
    }
    let head = world.store().head().unwrap();
    assert_eq!((head.head, head.pruned_through), (model.head, model.pruned));
    let numbers: Vec<u64> = world.events().iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (model.pruned + 1..=model.head).collect::<Vec<_>>());
    world.assert_sound();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_what_a_model_in_memory_is(acts in prop::collection::vec(act(), 1..60)) {
        let (mut world, mut model) = (World::new(), Model::default());
        for (place, act) in (0..).zip(acts) {
            play(&mut world, &mut model, act, place);
        }
        compare(&world, &model);
    }
}
