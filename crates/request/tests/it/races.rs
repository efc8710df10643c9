//! Two ends of one request come in one instant, from two threads: whichever the writer takes first is the end, and the other changes nothing.

use std::sync::{Arc, Barrier};
use std::thread;

use turnd_request::store::Applied;
use turnd_request::{Input, LateKind, State};

use crate::world::{World, asked, dispatched, id, settled};

const RUNS: usize = 1_000;

/// Requests that are brought on their way before one of them is waited for.
const AT_ONCE: usize = 100;

/// The outcome, and what comes in the same instant, in the order of [`race`]'s threads.
const OUTCOME: usize = 0;
const RIVAL: usize = 1;

/// What each side was told of each request.
type Told = [Vec<Applied>; 2];

fn name(run: usize) -> String {
    format!("r{run}")
}

fn answer(run: usize) -> String {
    format!("answer of r{run}")
}

/// A world with so many requests whose prompts are with the agent.
fn running() -> World {
    let world = World::new();
    let store = world.store();
    for first in (0..RUNS).step_by(AT_ONCE) {
        for run in first..first + AT_ONCE {
            store.register(asked(&name(run)), |registered| drop(registered.unwrap()));
            store.apply(id(&name(run)), Input::Admitted, world.now, |applied| drop(applied.unwrap()));
            store.apply(id(&name(run)), dispatched(), world.now, |applied| drop(applied.unwrap()));
            store.apply(id(&name(run)), Input::Written, world.now, |applied| drop(applied.unwrap()));
        }
        // Behind a refusable one, so that none of those is refused for want of room.
        let last = world.apply(&name(first + AT_ONCE - 1), Input::Admitted).unwrap().request;
        assert_eq!(last.state, State::Submitted);
    }
    world
}

/// Hands outcome and rival of each request over in one instant. Of the first two requests each has its side forced to be the first. What is
/// told of every other one is waited for before the next, so that a pair is sometimes alone in its commit and sometimes not.
fn race(world: &World, rival: &Input) -> Told {
    let (store, now, start) = (world.store(), world.now, &Barrier::new(2));
    let side = |side: usize| {
        let store = Arc::clone(store);
        move || {
            let mut replies = Vec::new();
            for run in 0..RUNS {
                let input = if side == OUTCOME { settled(&answer(run)) } else { rival.clone() };
                start.wait();
                if run < 2 && run != side {
                    start.wait();
                }
                let (sender, reply) = std::sync::mpsc::channel();
                store.apply(id(&name(run)), input, now, move |applied| sender.send(applied.unwrap()).unwrap());
                let told = (run < 2 || run % 2 == 0).then(|| reply.recv().unwrap());
                if run == side {
                    start.wait();
                }
                replies.push((told, reply));
            }
            replies.into_iter().map(|(told, reply)| told.unwrap_or_else(|| reply.recv().unwrap())).collect()
        }
    };
    thread::scope(|scope| [side(OUTCOME), side(RIVAL)].map(|side| scope.spawn(side)).map(|side| side.join().unwrap()))
}

/// Holds what both sides were told, what is on record and what the stream says against each other.
fn one_end_each(rival: &Input, lost: State) {
    let mut world = running();
    let told = race(&world, rival);
    let events = world.events();
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=RUNS as u64).collect::<Vec<_>>());
    let mut wins = [0; 2];
    for run in 0..RUNS {
        let sides = [&told[OUTCOME][run], &told[RIVAL][run]];
        let ended: Vec<usize> = (0..2).filter(|side| sides[*side].event.is_some()).collect();
        let [winner] = ended[..] else { panic!("r{run} was ended by {ended:?}") };
        wins[winner] += 1;
        let (expected, text) = if winner == OUTCOME { (State::Completed, Some(answer(run))) } else { (lost, None) };
        let request = world.get(&name(run));
        assert_eq!((request.state, &request.final_message), (expected, &text), "r{run}");
        assert!(sides.iter().all(|told| told.request.state == expected), "r{run}: both were told the same");
        let seq = request.terminal_seq.unwrap();
        let event = &events[usize::try_from(seq).unwrap() - 1];
        assert_eq!((&event.request_id, sides[winner].event.as_ref()), (request.id(), Some(event)));
        let late: Vec<_> = world.store().late(request.id()).unwrap().iter().map(|late| late.late.kind).collect();
        let kept = if winner == OUTCOME { vec![] } else { vec![LateKind::Outcome] };
        assert_eq!(
            late, kept,
            "r{run}: an answer that came too late is kept beside the end, and an end that did is none"
        );
        if run < 2 {
            assert_eq!(winner, run, "this order was forced");
        }
    }
    assert_eq!(wins.iter().sum::<usize>(), RUNS);
    world.assert_sound();
    assert!(world.open().is_empty(), "none is open in the next life");
    assert_eq!(world.events(), events);
}

#[test]
fn scenario_56_of_an_outcome_and_a_deadline_in_one_instant_exactly_one_wins_a_thousand_times() {
    one_end_each(&Input::Deadline, State::TimedOut);
}

#[test]
fn scenario_58_of_an_outcome_and_a_cancel_in_one_instant_exactly_one_wins_a_thousand_times() {
    one_end_each(&Input::Cancel, State::Cancelled);
}
