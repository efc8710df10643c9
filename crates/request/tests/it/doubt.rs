//! SQLite does not notice a bit that fell over in a text. What is recovered is what was told, or it is not told.

use std::path::Path;

use turnd_request::State;
use turnd_request::store::{Entry, Registered, Rescue, recover, verify};
use turnd_request::{Hash, Stage};

use crate::world::{NOON, World, id, outcome};

/// Five answers, the ids of which are `r0` to `r4`, and one that is only staged; stopped.
fn stopped() -> World {
    let mut world = World::new();
    for number in 0..5 {
        world.complete(&format!("r{number}"));
    }
    world.submit("staged");
    world.stage("staged", Stage::new(outcome("answer that is staged"), NOON)).unwrap();
    world.store().close(world.now).unwrap();
    world.store = None;
    world
}

/// Makes another answer of one in the file, by a bit, wherever that stands behind a text on its own page.
fn harm(file: &Path, answer: &str, is_event: bool) {
    let mut bytes = std::fs::read(file).unwrap();
    let has = |at: usize, word: &str| {
        let page = at / 4096 * 4096;
        bytes[page..page + 4096].windows(word.len()).any(|window| window == word.as_bytes())
    };
    let places = bytes.windows(answer.len()).enumerate().filter(|(_, window)| *window == answer.as_bytes());
    let places: Vec<usize> =
        places.map(|(at, _)| at).filter(|at| has(*at, "terminal_event_sequence") == is_event).collect();
    assert!(!places.is_empty(), "{answer}");
    for at in places {
        bytes[at + answer.len() - 1] ^= 4;
    }
    std::fs::write(file, bytes).unwrap();
}

fn recovered(world: &mut World) -> Rescue {
    assert!(!verify(&world.folder()).unwrap().violations.is_empty());
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    world.open();
    world.assert_sound();
    rescue
}

#[test]
fn scenario_83_an_answer_of_which_a_bit_fell_over_is_recovered_as_it_was_from_its_event_and_the_other_way_round() {
    for is_event in [false, true] {
        let mut world = stopped();
        harm(&world.file(), "answer of r3", is_event);
        let rescue = recovered(&mut world);
        assert_eq!((rescue.kept, rescue.reduced, rescue.is_damaged), (5, 0, false), "{is_event}: {rescue:?}");
        for number in 0..5 {
            let answer = world.get(&format!("r{number}")).final_message;
            assert_eq!(answer, Some(format!("answer of r{number}")), "{is_event}");
        }
    }
}

#[test]
fn scenario_83_an_answer_of_which_nobody_can_say_what_it_was_is_not_told_and_its_id_is_not_free() {
    let mut world = stopped();
    harm(&world.file(), "answer of r3", false);
    harm(&world.file(), "answer of r3", true);
    // What both say, but for the hash.
    let rescue = recovered(&mut world);
    assert_eq!((rescue.kept, rescue.reduced, rescue.is_damaged), (1, 4, true), "{rescue:?}");
    let Some(Entry::Tombstone(left)) = world.store().get(&id("r3")).unwrap() else { panic!() };
    assert_eq!(left.state, State::Completed);
    assert!(matches!(world.register("r3").unwrap(), Registered::Tombstone(_)));
    assert_eq!(world.get("r4").final_message.as_deref(), Some("answer of r4"));

    let mut world = stopped();
    let conn = rusqlite::Connection::open(world.file()).unwrap();
    conn.execute(
        "UPDATE request SET stop_reason = 'refusal', state = 'aborted', final_message = NULL WHERE terminal_seq = 4",
        [],
    )
    .unwrap();
    conn.execute("UPDATE terminal_event SET chain = ?1 WHERE seq = 4", [[9_u8; 32].as_slice()]).unwrap();
    drop(conn);
    assert!(recovered(&mut world).is_damaged);
    let Some(Entry::Tombstone(left)) = world.store().get(&id("r3")).unwrap() else { panic!() };
    assert_eq!(left.state, State::Indeterminate, "row and event tell two ends, and nothing says which");
    assert_eq!(left.input_hash, Hash([7; 32]));
}

#[test]
fn scenario_83_a_staged_answer_of_which_a_bit_fell_over_is_no_answer_of_a_recovery_and_none_of_a_start() {
    let mut world = stopped();
    harm(&world.file(), "answer that is staged", false);
    world.open();
    assert!(world.store().staged(&id("staged")).is_err());
    world.store().close(world.now).unwrap();
    world.store = None;
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.kept, rescue.ended, rescue.outcomes, rescue.is_damaged), (5, 1, 0, true), "{rescue:?}");
    world.open();
    let request = world.get("staged");
    assert_eq!((request.state, request.final_message), (State::Indeterminate, None));
    world.assert_sound();
}
