//! Kept files of every version open, and the ids in them are still known.

use std::path::{Path, PathBuf};

use turnd_request::store::{Entry, Registered, Retention};
use turnd_request::webhook::{Rotation, Secret};
use turnd_request::{Hash, Input, Registration, Request, Stage, State};

use crate::world::{NOON, World, asked, id, incarnation, outcome, wait};

/// The newest version of which a file is kept.
pub(crate) const NEWEST: u32 = 2;

pub(crate) fn kept(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/requests/v{version}.db"))
}

/// How the file of version 2 was made: one of everything. Kept to make that of the next version.
#[expect(dead_code, reason = "run by hand when there is a new version")]
fn make(target: &Path) {
    let mut world = World::new();
    world.note(incarnation("i")).unwrap();
    world.complete("pruned");
    world.now += 10;
    world.complete("completed");
    world.apply("completed", Input::Cancel).unwrap();
    world.apply("completed", crate::world::settled("late")).unwrap();
    world.new_request("cancelled");
    world.apply("cancelled", Input::Cancel).unwrap();
    world.ask(Registration { incarnation_id: Some("i".into()), ..asked("registered") }).unwrap();
    world.submit("staged");
    world.stage("staged", Stage::new(outcome("staged text"), NOON)).unwrap();
    world.consume("reader", 2, Some(true)).unwrap();
    world.hook_at_the_head("endpoint");
    world.rotate("endpoint", Rotation::Begin(Secret::new(vec![8; 32]).unwrap())).unwrap().unwrap();
    let retention = Retention { kept_ms: 0, kept_requests: 2, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
    world.store().prune(retention, NOON + 1).unwrap();
    wait(|reply| world.store().end_incarnation("i".into(), "exit".into(), NOON, reply)).unwrap();
    world.store().close(world.now).unwrap();
    std::fs::copy(world.file(), target).unwrap();
}

/// Looks whether the ids in a kept file of a version are known in the store that was made of it, and whether it goes on.
pub(crate) fn assert_known(world: &World, waiting: &[Request], version: u32) {
    let waiting: Vec<String> = waiting.iter().map(|request| request.id().to_string()).collect();
    assert_eq!(waiting, ["registered", "staged"], "version {version}");
    world.assert_sound();
    assert!(matches!(world.register("pruned").unwrap(), Registered::Tombstone(_)));
    assert!(matches!(world.register("completed").unwrap(), Registered::Known(_)));
    assert_eq!(world.get("completed").final_message.as_deref(), Some("answer of completed"));
    let other = Registration { input_hash: Hash([9; 32]), ..asked("cancelled") };
    assert_eq!(world.ask(other).unwrap(), Registered::Mismatch);
    assert_eq!(world.store().late(&id("completed")).unwrap().len(), 1);
    assert_eq!(world.store().staged(&id("staged")).unwrap(), Some(Stage::new(outcome("staged text"), NOON)));
    let numbers: Vec<u64> = world.events().iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(world.store().consumers().unwrap()[0].acked_seq, 2);
    assert!(matches!(world.store().get(&id("cancelled")).unwrap(), Some(Entry::Request(_))));
    assert_eq!(world.apply("registered", Input::Cancel).unwrap().request.state, State::Cancelled);
    assert_eq!(world.complete("next").seq, 5);
    let signing: Vec<usize> =
        world.store().endpoints().unwrap().iter().map(|(endpoint, _)| endpoint.secrets().count()).collect();
    assert_eq!(signing, if version == 1 { vec![] } else { vec![2] });
}

/// A store that is a kept file of a version, and that nobody has opened since.
pub(crate) fn of_version(version: u32) -> World {
    let world = World::closed();
    std::fs::create_dir_all(world.folder()).unwrap();
    std::fs::copy(kept(version), world.file()).unwrap();
    // As a daemon would have made it.
    std::fs::set_permissions(world.file(), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    world
}

#[test]
fn scenario_85_a_file_of_each_version_opens_and_its_ids_replay() {
    for version in 1..=NEWEST {
        let mut world = of_version(version);
        let waiting = world.open();
        assert_known(&world, &waiting, version);
    }
}

#[test]
fn the_newest_kept_file_has_the_shape_that_is_made_now() {
    let shape = |file: &Path| -> Vec<String> {
        let conn = rusqlite::Connection::open(file).unwrap();
        let mut statement = conn.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut world = World::new();
    world.store = None;
    let scratch = world.scratch.path().join("kept.db");
    std::fs::copy(kept(NEWEST), &scratch).unwrap();
    assert_eq!(shape(&scratch), shape(&world.file()), "another shape is another version, with a step to it");
}
