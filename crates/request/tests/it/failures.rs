//! What the store does when it cannot: returns 2.16. The faults are planned, or real where SQLite can be brought to them.

use std::sync::mpsc;

use rusqlite::Connection;
use turnd_request::store::{Applied, OpenError, Registered, StoreError, recover};
use turnd_request::{Input, Stage, State};

use crate::world::{World, asked, dispatched, id, outcome, settled, wait};

type Reply<T> = mpsc::Receiver<Result<T, StoreError>>;

/// Tells an outcome and does not wait.
fn tell(world: &World, name: &str, input: Input) -> Reply<Applied> {
    let (sender, receiver) = mpsc::channel();
    world.store().apply(id(name), input, world.now, move |answer| sender.send(answer).unwrap());
    receiver
}

#[test]
fn scenario_78_a_full_disk_takes_no_new_request_and_nothing_of_it_stays() {
    let world = World::new();
    world.fail_points.set("before:commit=full");
    assert_eq!(world.register("x"), Err(StoreError::Full));
    assert_eq!(world.store().trouble(), Some(StoreError::Full));
    world.fail_points.set("");
    assert_eq!(world.store().get(&id("x")).unwrap(), None);
    world.new_request("x");
    assert_eq!(world.store().trouble(), None);
}

#[test]
fn scenario_78_a_dispatch_that_is_not_on_disk_is_refused_so_that_nothing_is_sent() {
    let world = World::new();
    world.new_request("x");
    for (plan, error) in [("full", StoreError::Full), ("busy", StoreError::Busy)] {
        world.fail_points.set(&format!("before:dispatched={plan}"));
        assert_eq!(world.apply("x", dispatched()), Err(error.clone()));
        world.fail_points.set(&format!("before:admitted={plan}"));
        assert_eq!(world.apply("x", Input::Admitted), Err(error));
    }
    world.fail_points.set("");
    assert_eq!(world.get("x").rev, 1);
}

#[test]
fn scenario_79_an_outcome_waits_for_room_and_is_told_once() {
    let world = World::new();
    world.submit("x");
    world.fail_points.set("before:terminal=full*3");
    let reply = tell(&world, "x", settled("t"));
    let applied = reply.recv().unwrap().unwrap();
    assert_eq!((applied.request.state, applied.event.unwrap().seq), (State::Completed, 1));
    assert_eq!(world.events().len(), 1);
    world.assert_sound();
}

#[test]
fn scenario_79_while_an_outcome_waits_nothing_new_is_taken_and_nothing_overtakes_it() {
    let world = World::new();
    world.submit("x");
    world.submit("y");
    world.fail_points.set("before:terminal=full");
    let first = tell(&world, "x", settled("t"));
    assert_eq!(world.register("new"), Err(StoreError::Full));
    let second = tell(&world, "y", Input::Cancel);
    let third = tell(&world, "x", settled("another"));
    // The writer has come to all of them before the disk has room again.
    assert_eq!(world.register("newer"), Err(StoreError::Full));
    assert!(first.try_recv().is_err() && third.try_recv().is_err());
    world.fail_points.set("");
    assert_eq!(first.recv().unwrap().unwrap().event.unwrap().seq, 1);
    assert_eq!(third.recv().unwrap().unwrap().event, None, "it came after the end");
    let cancelled = second.recv().unwrap();
    assert!(matches!(&cancelled, Err(StoreError::Full) | Ok(_)), "a cancel may be refused: {cancelled:?}");
    world.assert_sound();
}

#[test]
fn scenario_79_the_ballast_makes_room_for_an_outcome_at_once() {
    let mut world = World::closed();
    let options = turnd_request::store::Options { ballast_bytes: 64 * 1024, ..world.options() };
    let (store, _) = turnd_request::store::Store::open(&world.folder(), options, world.now).unwrap();
    world.store = Some(store.into());
    let ballast = world.folder().join("ballast");
    assert_eq!(std::fs::metadata(&ballast).unwrap().len(), 64 * 1024);
    world.submit("x");
    world.fail_points.set("before:commit=full*1");
    assert_eq!(world.register("new"), Err(StoreError::Full));
    assert!(ballast.exists(), "it is not there for new requests");
    world.fail_points.set("before:commit=full*1");
    tell(&world, "x", settled("t")).recv().unwrap().unwrap();
    assert!(!ballast.exists());
}

#[test]
fn scenario_79_a_file_that_may_not_grow_takes_it_all_once_it_may() {
    let world = World::new();
    world.submit("x");
    // SQLite itself says that it is full.
    world.fail_points.set("limit=full");
    let large = "long ".repeat(100_000);
    let reply = tell(&world, "x", settled(&large));
    assert_eq!(world.register("new"), Err(StoreError::Full));
    assert_eq!(world.get("x").state, State::Submitted);
    world.fail_points.set("");
    assert_eq!(reply.recv().unwrap().unwrap().request.final_message, Some(large));
    world.assert_sound();
}

#[test]
fn scenario_81_a_lock_of_another_process_refuses_what_is_new_and_only_delays_an_outcome() {
    let world = World::new();
    world.submit("x");
    let other = Connection::open(world.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(world.register("new"), Err(StoreError::Busy));
    let reply = tell(&world, "x", settled("t"));
    assert_eq!(world.register("newer"), Err(StoreError::Busy), "the writer has tried, and waits");
    assert!(reply.try_recv().is_err());
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(reply.recv().unwrap().unwrap().event.unwrap().seq, 1);
    assert_eq!(world.events().len(), 1);
    world.new_request("new");
}

#[test]
fn scenario_81_under_a_lock_callers_are_not_held_up_one_behind_the_other() {
    let mut world = World::closed();
    let options = turnd_request::store::Options { busy_ms: 2_000, ..world.options() };
    world.store = Some(turnd_request::store::Store::open(&world.folder(), options, world.now).unwrap().0.into());
    let other = Connection::open(world.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let answers = (0..30).map(|number| world.register(&format!("new-{number}")));
            sender.send(answers.filter(|answer| *answer == Err(StoreError::Busy)).count()).unwrap();
        });
        // One after the other they would take a minute if each waited for the lock.
        let refused = receiver.recv_timeout(std::time::Duration::from_secs(30));
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(refused, Ok(30));
    });
    world.new_request("new-0");
}

#[test]
fn scenario_84_a_flush_that_failed_after_all_was_written_is_found_out_and_nothing_is_done_twice() {
    let world = World::new();
    world.fail_points.set("after:commit=io*1");
    world.new_request("x");
    world.apply("x", dispatched()).unwrap();
    world.fail_points.set("after:commit=io*1");
    world.apply("x", Input::Written).unwrap();
    world.fail_points.set("after:commit=io*1");
    assert_eq!(world.apply("x", settled("t")).unwrap().event.unwrap().seq, 1);
    assert_eq!(world.store().late(&id("x")).unwrap(), [], "the outcome was not taken for a second one");
    assert_eq!((world.store().newest(), world.events().len()), (1, 1));
    assert_eq!(world.store().trouble(), None);
    world.assert_sound();
}

#[test]
fn scenario_84_a_flush_that_failed_before_anything_was_written_refuses_what_is_new_and_repeats_an_outcome() {
    let world = World::new();
    world.submit("x");
    world.fail_points.set("before:commit=io*1");
    assert!(matches!(world.register("new"), Err(StoreError::Io(_))));
    assert_eq!(world.store().get(&id("new")).unwrap(), None);
    world.fail_points.set("before:commit=io*1");
    assert_eq!(world.apply("x", settled("t")).unwrap().event.unwrap().seq, 1);
    world.assert_sound();
}

#[test]
fn scenario_84_a_registration_that_was_refused_is_not_there_although_its_commit_was_written() {
    let world = World::new();
    // Nobody can look whether it is there, so that its caller is told that it is not.
    world.fail_points.set("after:commit=io*1; reopen=io*1");
    assert!(matches!(world.register("x"), Err(StoreError::Io(_))));
    world.new_request("y");
    assert_eq!(world.store().get(&id("x")).unwrap(), None);
    world.new_request("x");
}

#[test]
fn scenario_84_an_outcome_whose_commit_nobody_can_look_for_is_told_once_somebody_can() {
    let world = World::new();
    world.submit("x");
    world.submit("y");
    world.fail_points.set("after:commit=io*1; reopen=io*2");
    let reply = tell(&world, "x", settled("t"));
    assert_eq!(reply.recv().unwrap().unwrap().event.unwrap().seq, 1);
    assert_eq!(world.store().late(&id("x")).unwrap(), []);
    assert_eq!(world.complete("z").seq, 2);
    world.assert_sound();
}

/// Overwrites the middle of a file. The first page stays, so that it is still taken for a store.
fn damage(path: &std::path::Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    for page in (4096..bytes.len()).step_by(4096).filter(|page| page.abs_diff(middle) < 20_000) {
        bytes[page..page + 512].fill(0xa5);
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn scenario_82_a_damaged_file_is_put_aside_with_its_log_and_none_is_made_in_its_place() {
    let mut world = World::new();
    for number in 0..20 {
        world.complete(&format!("r{number}"));
    }
    world.store = None;
    damage(&world.file());
    std::fs::write(world.folder().join("requests.db-wal"), "a log").unwrap();
    let before = std::fs::read(world.file()).unwrap();
    let Err(OpenError::Corrupt { aside, .. }) = world.try_open() else { panic!() };
    assert_eq!(std::fs::read(aside.join("requests.db")).unwrap(), before);
    assert!(aside.join("requests.db-wal").exists());
    assert!(aside.file_name().unwrap().to_string_lossy().contains(&world.now.to_string()));
    assert!(!world.file().exists());
    let Err(OpenError::Corrupt { aside: again, .. }) = world.try_open() else { panic!() };
    assert_eq!(again, aside, "nobody has decided yet");
    assert!(!world.file().exists());
}

#[test]
fn scenario_82_invariants_that_do_not_hold_are_a_damage_although_sqlite_is_content() {
    for harm in [
        "UPDATE meta SET head_seq = 7",
        "DELETE FROM terminal_event WHERE seq = 2",
        "UPDATE terminal_event SET payload = '{}' WHERE seq = 2",
        "DELETE FROM meta",
    ] {
        let mut world = World::new();
        for number in 0..3 {
            world.complete(&format!("r{number}"));
        }
        world.store = None;
        Connection::open(world.file()).unwrap().execute_batch(harm).unwrap();
        assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "{harm}");
    }
}

#[test]
fn what_corrupts_while_it_runs_stops_the_writer_and_outcomes_are_left_on_lines() {
    let mut world = World::new();
    for name in ["x", "y", "z"] {
        world.submit(name);
    }
    world.fail_points.set("before:commit=corrupt");
    assert!(matches!(tell(&world, "x", settled("of x")).recv().unwrap(), Err(StoreError::Corrupt(_))));
    world.fail_points.set("");
    assert!(matches!(world.register("new"), Err(StoreError::Corrupt(_))), "it stays stopped");
    let staged = wait(|reply| world.store().stage(id("y"), Stage::new(outcome("of y"), world.now), reply));
    assert!(matches!(staged, Err(StoreError::Corrupt(_))));
    let lines = world.folder().join("outcomes.jsonl");
    assert_eq!(crate::world::mode(&lines), 0o600);
    world.store = None;
    // A kill may have cut the last line.
    let mut bytes = std::fs::read(&lines).unwrap();
    bytes.extend(b"\n{\"v\":1,\"request_id\":\"z\",\"sta");
    std::fs::write(&lines, bytes).unwrap();

    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.ended, rescue.head), (3, 3));
    assert_eq!(world.open(), []);
    let ends = ["x", "y", "z"].map(|name| {
        let request = world.get(name);
        (request.state, request.final_message)
    });
    let of = |name: &str| (State::Completed, Some(format!("of {name}")));
    assert_eq!(ends, [of("x"), of("y"), (State::Indeterminate, None)]);
    world.assert_sound();
    assert!(!lines.exists());
}

#[test]
fn lines_beside_a_file_that_opens_after_all_become_staged_outcomes() {
    let mut world = World::new();
    world.submit("x");
    world.fail_points.set("before:commit=corrupt");
    assert!(tell(&world, "x", settled("of x")).recv().unwrap().is_err());
    world.fail_points.set("");
    assert_eq!(world.open().len(), 1);
    assert_eq!(world.store().staged(&id("x")).unwrap(), Some(Stage::new(outcome("of x"), world.now)));
    assert!(!world.folder().join("outcomes.jsonl").exists());
}

#[test]
fn a_reply_that_panics_costs_nobody_else_anything() {
    let world = World::new();
    world.store().register(asked("x"), |_| panic!("planned"));
    assert!(matches!(world.register("x").unwrap(), Registered::Known(_)));
}

#[test]
fn a_closed_store_says_so() {
    let world = World::new();
    world.submit("x");
    world.store().close(world.now).unwrap();
    assert_eq!(world.register("y"), Err(StoreError::Closed));
    assert_eq!(world.apply("x", settled("t")), Err(StoreError::Closed));
}

#[test]
fn the_trouble_is_over_when_it_is_although_nobody_asks_for_anything() {
    let world = World::new();
    world.fail_points.set("before:commit=full*3");
    assert_eq!(world.register("x"), Err(StoreError::Full));
    assert_eq!(world.store().trouble(), Some(StoreError::Full));
    let begun = std::sync::atomic::AtomicU64::new(0);
    while world.store().trouble().is_some() {
        std::thread::yield_now();
        assert!(begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2_000_000_000, "it never is");
    }
    world.new_request("x");
}

#[test]
fn an_outcome_that_waits_when_the_store_is_closed_is_left_on_a_line_and_staged_by_the_next_life() {
    let mut world = World::new();
    world.submit("x");
    world.fail_points.set("before:commit=busy");
    let reply = tell(&world, "x", settled("of x"));
    assert!(world.store().close(world.now).is_err());
    assert_eq!(reply.recv().unwrap(), Err(StoreError::Closed));
    world.fail_points.set("");
    assert_eq!(world.open().len(), 1);
    assert_eq!(world.store().staged(&id("x")).unwrap(), Some(Stage::new(outcome("of x"), world.now)));
}

#[test]
fn an_end_whose_caller_was_told_that_nobody_knows_is_told_to_the_readers_of_the_stream() {
    let world = World::new();
    world.submit("x");
    world.fail_points.set("after:commit=io*1; reopen=io*1");
    assert!(matches!(world.apply("x", Input::Cancel), Err(StoreError::Io(_))));
    let again = world.apply("x", Input::Cancel).unwrap();
    assert_eq!((again.request.state, again.event), (State::Cancelled, None));
    assert_eq!((world.store().newest(), world.events().len()), (1, 1));
}

#[test]
fn scenario_82_a_move_aside_that_was_cut_off_is_finished_and_a_file_put_back_is_left_alone() {
    let mut world = World::new();
    world.complete("x");
    world.store = None;
    let aside = world.folder().join("aside-1-0");
    std::fs::create_dir(&aside).unwrap();
    std::fs::write(aside.join("requests.db-wal"), "a log").unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })));
    assert!(aside.join("requests.db").exists() && !world.file().exists());
    std::fs::copy(aside.join("requests.db"), world.file()).unwrap();
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "an operator says so by a rescue");
    assert!(aside.join("requests.db").exists() && world.file().exists());
}
