//! kill -9 at every step, in a real process: this test binary, started again. What is on disk then, and what is said of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnd_request::fail_points::FailPoints;
use turnd_request::recovery::Loss;
use turnd_request::store::{Entry, Retention, Store};
use turnd_request::{Code, Evidence, Input, InputWritten, Phase, Recovered, Request, Stage, State};

use crate::child;
use crate::world::{NOON, World, asked, dispatched, id, incarnation, outcome, settled, wait};

/// The steps of a request, in their order.
const STEPS: [&str; 7] = ["register", "admitted", "dispatched", "written", "bound", "stage", "terminal"];

/// Plays a part in a process of its own, which is killed by its plan.
fn killed(part: &str, folder: &Path, plan: &str) {
    child::killed("crashes::the_part_of_a_child", &format!("{part}\n{}", folder.display()), plan);
}

/// Not a test of its own: what a child runs. In the first process it has no part and nothing to do.
#[test]
fn the_part_of_a_child() {
    let Some(part) = child::part() else { return };
    let (part, folder) = part.split_once('\n').unwrap();
    let mut world = World::closed();
    world.fail_points = Arc::new(FailPoints::from_env());
    let (store, waiting) = Store::open(&PathBuf::from(folder), world.options(), NOON).unwrap();
    world.store = Some(Arc::new(store));
    match part {
        "work" => (0..3).for_each(|number| live(&world, &format!("r{number}"), STEPS.len())),
        "decide" => decide(&world, &waiting),
        "forget" => {
            world.store().prune(everything(), NOON + 1).unwrap();
        }
        "note" => world.note(incarnation("i")).unwrap(),
        "idle" => {
            world.note(incarnation("i")).unwrap();
            // Until the plan kills this process.
            std::thread::park_timeout(std::time::Duration::from_secs(60));
        }
        "busy" => (0..260).for_each(|number| drop(world.new_request(&format!("r{number}")))),
        "fill" => fill(&world, folder),
        other => panic!("{other}"),
    }
}

fn everything() -> Retention {
    Retention { kept_ms: 0, kept_requests: 0, bytes_max: u64::MAX, tombstone_ms: u64::MAX }
}

/// The first steps of a request's life.
fn live(world: &World, name: &str, steps: usize) {
    for step in &STEPS[..steps] {
        match *step {
            "register" => drop(world.new_request(name)),
            "admitted" => drop(world.apply(name, Input::Admitted).unwrap()),
            "dispatched" => drop(world.apply(name, dispatched()).unwrap()),
            "written" => drop(world.apply(name, Input::Written).unwrap()),
            "bound" => drop(world.apply(name, bound()).unwrap()),
            "stage" => drop(world.stage(name, Stage::new(outcome("text"), NOON)).unwrap()),
            _ => drop(world.apply(name, settled("text")).unwrap()),
        }
    }
}

fn bound() -> Input {
    Input::Bound { evidence: Evidence::UserRecord, user_record_id: Some("u".into()) }
}

/// Decides about every request that is open, the transcript being lost.
fn decide(world: &World, waiting: &[Request]) {
    for request in waiting {
        let staged = world.store().staged(request.id()).unwrap();
        let recovered = match (staged, request.state) {
            (Some(stage), _) => Recovered::Staged(stage),
            (None, State::Registered) => Recovered::Unsubmitted,
            _ => Recovered::DaemonLost(Loss::Missing),
        };
        wait(|reply| world.store().apply(request.id().clone(), Input::Recovered(recovered), NOON, reply)).unwrap();
    }
}

/// How many steps of a request are on disk.
fn steps_on_disk(world: &World, name: &str) -> usize {
    let Some(Entry::Request(request)) = world.store().get(&id(name)).unwrap() else { return 0 };
    let is_staged = world.store().staged(&id(name)).unwrap().is_some();
    match (request.state, request.phase) {
        (State::Registered, Phase::Registered) => 1,
        (State::Registered, Phase::Admitted) => 2,
        (State::Registered, Phase::Dispatching) => 3,
        (State::Submitted, _) => 4,
        (State::Bound, _) => 5 + usize::from(is_staged),
        (State::Completed, _) => 7,
        other => panic!("{other:?}"),
    }
}

/// What is said in the end of a request that got so far.
fn said(world: &World, name: &str) -> (State, Option<String>, InputWritten, Option<String>) {
    let request = world.get(name);
    let code = request.code.as_ref().map(|code: &Code| code.as_str().to_owned());
    (request.state, code, request.input_written, request.final_message)
}

#[test]
fn scenario_21_to_28_33_killed_at_each_step_it_is_where_it_was_and_ends_as_it_must() {
    for (place, step) in STEPS.iter().enumerate() {
        for (when, done) in [("before", place), ("after", place + 1)] {
            let mut world = World::closed();
            killed("work", &world.folder(), &format!("{when}:{step}=kill@2"));
            let waiting = world.open();
            let plan = format!("{when} {step}");
            assert_eq!(steps_on_disk(&world, "r0"), 7, "{plan}");
            assert_eq!(steps_on_disk(&world, "r1"), done, "{plan}");
            assert_eq!(steps_on_disk(&world, "r2"), 0, "{plan}");
            assert_eq!(waiting.len(), usize::from((1..7).contains(&done)), "{plan}");
            world.assert_sound();
            decide(&world, &waiting);
            let expected = match done {
                0 => {
                    // C1: the id is free.
                    live(&world, "r1", STEPS.len());
                    (State::Completed, None, InputWritten::Yes, Some("text".to_owned()))
                }
                1 | 2 => (State::Indeterminate, Some("crash_before_submitted".to_owned()), InputWritten::No, None),
                3 => (State::Indeterminate, Some("crash_in_dispatch".to_owned()), InputWritten::Maybe, None),
                4 | 5 => (State::Indeterminate, Some("daemon_lost".to_owned()), InputWritten::Yes, None),
                _ => (State::Completed, None, InputWritten::Yes, Some("text".to_owned())),
            };
            assert_eq!(said(&world, "r1"), expected, "{plan}");
            assert_eq!(world.get("r1").terminal_seq, Some(2), "{plan}");
            assert_eq!(world.events().len(), 2, "{plan}");
            world.assert_sound();
        }
    }
}

#[test]
fn scenario_38_killed_around_a_cancel_it_is_cancelled_or_open_and_never_both() {
    for (when, expected) in [("before", State::Registered), ("after", State::Cancelled)] {
        let mut world = World::closed();
        // The child's second life of a request is cut by its own cancel.
        killed("work", &world.folder(), "after:admitted=kill@1");
        world.open();
        world.store = None;
        // A cancel is an input like any other.
        let folder = world.folder().display().to_string();
        child::killed("crashes::a_child_that_cancels", &folder, &format!("{when}:cancel=kill"));
        world.open();
        assert_eq!(world.get("r0").state, expected);
        assert_eq!(world.events().len(), usize::from(expected.is_terminal()));
        world.assert_sound();
    }
}

/// Not a test of its own, as the part above.
#[test]
fn a_child_that_cancels() {
    let Some(folder) = child::part() else { return };
    let mut world = World::closed();
    world.fail_points = Arc::new(FailPoints::from_env());
    world.store = Some(Arc::new(Store::open(&PathBuf::from(folder), world.options(), NOON).unwrap().0));
    world.apply("r0", Input::Cancel).unwrap();
}

/// A store with one request at each step but the last, in a folder of its own.
fn one_of_each() -> World {
    let world = World::new();
    for steps in 1..STEPS.len() {
        live(&world, &format!("r{steps}"), steps);
    }
    world
}

fn ends(world: &World) -> Vec<(String, State, Option<u64>)> {
    (1..STEPS.len())
        .map(|steps| {
            let request = world.get(&format!("r{steps}"));
            (request.id().to_string(), request.state, request.terminal_seq)
        })
        .collect()
}

#[test]
fn scenario_37_killed_at_each_decision_of_a_recovery_the_next_one_comes_to_the_same() {
    let mut whole = one_of_each();
    let waiting = whole.open();
    decide(&whole, &waiting);
    let expected = ends(&whole);
    for when in ["before", "after"] {
        for decision in 1..STEPS.len() {
            let mut world = one_of_each();
            world.store = None;
            killed("decide", &world.folder(), &format!("{when}:recovered=kill@{decision}"));
            let waiting = world.open();
            assert_eq!(waiting.len(), STEPS.len() - decision - usize::from(when == "after"));
            decide(&world, &waiting);
            assert_eq!(ends(&world), expected, "{when} decision {decision}");
            world.assert_sound();
        }
    }
}

#[test]
fn scenario_39_killed_while_pruning_it_is_pruned_as_before_or_a_step_further() {
    // Two steps of pruning, and a part of a third one.
    let many = 450;
    for (plan, through) in [
        ("before:prune=kill@1", 0),
        ("after:prune=kill@1", 200),
        ("before:prune=kill@2", 200),
        ("after:prune=kill@3", 450),
        ("before:vacuum=kill@1", 450),
    ] {
        let mut world = World::new();
        std::thread::scope(|scope| {
            for number in 0..many {
                world.store().register(asked(&format!("r{number}")), |_| ());
                world.store().apply(id(&format!("r{number}")), Input::Cancel, NOON, |_| ());
            }
            scope.spawn(|| world.store().head().unwrap());
        });
        world.store = None;
        killed("forget", &world.folder(), plan);
        world.open();
        let head = world.store().head().unwrap();
        assert_eq!((head.pruned_through, head.head), (through, many), "{plan}");
        world.assert_sound();
        world.store().prune(everything(), NOON + 1).unwrap();
        assert_eq!(world.store().head().unwrap().pruned_through, many);
        world.assert_sound();
    }
}

#[test]
fn killed_around_the_note_of_a_process_it_is_noted_or_not() {
    for (when, is_noted) in [("before", false), ("after", true)] {
        let mut world = World::closed();
        killed("note", &world.folder(), &format!("{when}:incarnation=kill"));
        world.open();
        assert_eq!(world.store().incarnation("i").unwrap().is_some(), is_noted);
    }
}

#[test]
fn how_far_it_got_is_flushed_once_nobody_asks_for_anything_and_after_so_many_commits_although_somebody_does() {
    let mut world = World::closed();
    killed("idle", &world.folder(), "note_flush=kill@1");
    world.open();
    assert!(world.store().incarnation("i").unwrap().is_some(), "its own commit was told before");
    let mut world = World::closed();
    killed("busy", &world.folder(), "note_flush=kill@1");
    assert!(world.open().len() >= 3, "a commit each");
}

/// Registers until the disk takes nothing more, and leaves the names of what it was told is durable beside the store.
fn fill(world: &World, folder: &str) {
    let (mut told, mut refused) = (Vec::new(), 0);
    for number in 0..20_000 {
        let name = format!("r{number}");
        match world.register(&name) {
            Ok(_) => {
                told.push(name);
                refused = 0;
            }
            Err(error) => {
                assert!(error.is_trouble(), "{error}");
                refused += 1;
            }
        }
        if refused == 5 {
            std::fs::write(format!("{folder}.told"), told.join("\n")).unwrap();
            return;
        }
    }
    panic!("the disk is never full");
}

#[test]
fn scenario_78_84_on_a_disk_that_really_takes_no_more_what_was_told_is_there_and_the_store_is_sound() {
    let mut world = World::closed();
    let folder = world.folder();
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    // No file of the process may grow above that many blocks; the write fails instead of killing it.
    let part = format!("fill\n{}", folder.display());
    let status = child::run("crashes::the_part_of_a_child", &part, "", r#"trap "" XFSZ; ulimit -f 600"#);
    assert!(status.success());
    let told = std::fs::read_to_string(format!("{}.told", folder.display())).unwrap();
    assert!(told.lines().count() > 20, "{}", told.lines().count());
    world.open();
    for name in told.lines() {
        assert_eq!(world.get(name).state, State::Registered);
    }
    world.assert_sound();
    assert_eq!(world.complete("next").seq, 1);
}
