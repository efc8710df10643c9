//! One id, one request: returns 2.9 as far as the store decides it.

use std::sync::Barrier;

use turnd_request::store::{Entry, Registered, StoreError};
use turnd_request::{Hash, Input, Registration, RequestId, State};

use crate::world::{NOON, World, asked, dispatched, id, incarnation, settled};

#[test]
fn scenario_01_a_new_id_is_registered_and_durable_before_anybody_is_told() {
    let mut world = World::new();
    let request = world.new_request("x");
    assert_eq!((request.state, request.rev, request.terminal_seq), (State::Registered, 1, None));
    let waiting = world.open();
    assert_eq!(waiting, [request], "every column is read back as it was");
}

#[test]
fn scenario_02_the_same_again_while_it_runs_is_the_same_row() {
    let world = World::new();
    let request = world.submit("x");
    let repeated = Registration { prompt_id: "another".into(), created_at: NOON + 5, ..asked("x") };
    assert_eq!(world.ask(repeated).unwrap(), Registered::Known(Box::new(request)));
}

#[test]
fn scenario_03_the_same_again_after_the_end_has_the_final_message() {
    let world = World::new();
    world.complete("x");
    let Registered::Known(request) = world.register("x").unwrap() else { panic!() };
    assert_eq!(request.state, State::Completed);
    assert_eq!(world.get("x").final_message.as_deref(), Some("answer of x"));
}

#[test]
fn scenario_04_05_other_input_under_the_id_is_refused() {
    let world = World::new();
    let before = world.new_request("x");
    let other = Registration { input_hash: Hash([9; 32]), ..asked("x") };
    assert_eq!(world.ask(other).unwrap(), Registered::Mismatch);
    assert_eq!(world.get("x"), before);
}

#[test]
fn an_id_that_was_hashed_by_another_recipe_says_which() {
    let world = World::new();
    world.new_request("x");
    let newer = Registration { hash_version: 2, ..asked("x") };
    assert_eq!(world.ask(newer).unwrap(), Registered::OtherRecipe { hash_version: 1 });
}

#[test]
fn scenario_06_of_fifty_at_once_one_is_new_and_there_is_one_row() {
    let world = World::new();
    let start = Barrier::new(50);
    let new = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|number| {
                let (world, start) = (&world, &start);
                scope.spawn(move || {
                    start.wait();
                    let asked = Registration { prompt_id: format!("p{number}"), ..asked("x") };
                    matches!(world.ask(asked).unwrap(), Registered::New(_))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|is_new| *is_new).count()
    });
    assert_eq!((new, world.store().open_requests().unwrap()), (1, 1));
}

#[test]
fn scenario_09_an_id_that_was_refused_is_free_again() {
    let world = World::new();
    world.new_request("x");
    assert!(world.apply("x", Input::Refused).unwrap().is_removed);
    assert_eq!(world.store().get(&id("x")).unwrap(), None);
    world.new_request("x");
    assert_eq!(world.events(), []);
}

#[test]
fn scenario_10_an_id_that_ended_undelivered_is_not_sent_again() {
    let world = World::new();
    world.new_request("x");
    world.apply("x", dispatched()).unwrap();
    let ended = world.apply("x", Input::WriteFailed { is_complete: false }).unwrap();
    assert_eq!(ended.request.state, State::DeliveryFailed);
    assert_eq!(world.register("x").unwrap(), Registered::Known(Box::new(ended.request)));
}

#[test]
fn scenario_11_of_another_owners_id_nothing_is_said() {
    let world = World::new();
    world.new_request("x");
    let theirs = Registration { owner: "b".into(), ..asked("x") };
    assert_eq!(world.ask(theirs).unwrap(), Registered::ForeignOwner);
    let other = Registration { owner: "b".into(), input_hash: Hash([9; 32]), ..asked("x") };
    assert_eq!(world.ask(other).unwrap(), Registered::ForeignOwner, "also not that the input is another one");
}

#[test]
fn a_request_of_a_process_that_was_not_noted_is_refused() {
    let world = World::new();
    let asked = Registration { incarnation_id: Some("i".into()), ..asked("x") };
    assert_eq!(world.ask(asked.clone()), Err(StoreError::UnknownIncarnation));
    world.note(incarnation("i")).unwrap();
    assert!(matches!(world.ask(asked).unwrap(), Registered::New(_)));
    assert_eq!(world.store().incarnation("i").unwrap(), Some(incarnation("i")));
}

#[test]
fn a_prompt_id_is_one_requests_only() {
    let world = World::new();
    world.new_request("x");
    let twice = Registration { prompt_id: "prompt-x".into(), ..asked("y") };
    assert!(matches!(world.ask(twice), Err(StoreError::Refused(_))));
    world.new_request("z");
    assert_eq!(world.store().open_requests().unwrap(), 2, "what one command failed at does not touch its neighbours");
}

#[test]
fn what_nobody_registered_is_unknown() {
    let world = World::new();
    assert_eq!(world.store().get(&RequestId::parse("x").unwrap()).unwrap(), None);
    assert_eq!(world.apply("x", Input::Cancel), Err(StoreError::Unknown));
    world.new_request("x");
    assert!(matches!(world.store().get(&id("x")).unwrap(), Some(Entry::Request(_))));
}

#[test]
fn what_ends_has_one_event_with_the_next_number() {
    let world = World::new();
    let numbers: Vec<u64> = ["a", "b", "c"].iter().map(|name| world.complete(name).seq).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let again = world.apply("b", settled("another answer")).unwrap();
    assert_eq!((again.event, world.get("b").final_message.as_deref()), (None, Some("answer of b")));
    assert_eq!(world.store().late(&id("b")).unwrap().len(), 1);
    assert_eq!(world.events().len(), 3);
    world.assert_sound();
}
