//! The terminal stream as its readers see it: returns 2.12.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use turnd_request::store::{Entry, Filter, List, Page, PageError, Registered, StoreError};
use turnd_request::{Cursor, NotThere, Position, Registration, State, TerminalEvent};

use crate::world::{NOON, World, asked, id, settled, wait};

fn page(world: &World, page: &Page) -> Result<(Vec<u64>, u64), PageError> {
    let page = world.store().events(page)?;
    Ok((page.events.iter().map(|event| event.seq).collect(), page.next_after))
}

#[test]
fn scenario_68_what_commits_between_a_read_and_the_wait_is_not_missed() {
    let world = World::new();
    let latest = Arc::new((Mutex::new(0), Condvar::new()));
    let told = Arc::clone(&latest);
    // Registered before the read: returns 2.12.
    world.store().on_commit(Arc::new(move |newest| {
        *told.0.lock().unwrap() = newest;
        told.1.notify_all();
    }));
    let (seen, _) = page(&world, &Page::after(Position::Number(0))).unwrap();
    assert!(seen.is_empty());
    world.complete("x");
    let guard = latest.0.lock().unwrap();
    let guard = latest.1.wait_while(guard, |newest| *newest == 0).unwrap();
    assert_eq!(*guard, 1);
    drop(guard);
    assert_eq!(page(&world, &Page::after(Position::Number(0))).unwrap(), (vec![1], 1));
}

#[test]
fn a_commit_tells_the_newest_number_once_and_only_when_it_has_one() {
    let world = World::new();
    let told: Arc<Mutex<Vec<u64>>> = Arc::default();
    let listener = Arc::clone(&told);
    world.store().on_commit(Arc::new(move |newest| listener.lock().unwrap().push(newest)));
    world.submit("x");
    assert!(told.lock().unwrap().is_empty());
    world.apply("x", settled("t")).unwrap();
    world.apply("x", settled("late")).unwrap();
    assert_eq!((told.lock().unwrap().clone(), world.store().newest()), (vec![1], 1));
}

#[test]
fn the_event_is_there_for_whoever_was_told_of_the_end() {
    let world = World::new();
    world.submit("x");
    let store = Arc::clone(world.store());
    let found = wait(|reply| {
        let reader = Arc::clone(&store);
        store.apply(id("x"), settled("t"), world.now, move |_| {
            reply(reader.events(&Page::after(Position::Number(0))).unwrap().events.len());
        });
    });
    assert_eq!(found, 1);
}

#[test]
fn scenario_69_readers_at_different_places_each_get_all_that_follows_in_order() {
    let world = World::new();
    let events: Vec<TerminalEvent> = (0..30).map(|number| world.complete(&format!("r{number}"))).collect();
    for begin in [0, 7, 29, 30] {
        let (mut after, mut read) = (Position::Number(begin), Vec::new());
        loop {
            let page = world.store().events(&Page { limit: 4, ..Page::after(after) }).unwrap();
            if page.events.is_empty() {
                break;
            }
            after = Position::Cursor(page.next_cursor);
            read.extend(page.events);
        }
        assert_eq!(read, events[usize::try_from(begin).unwrap()..], "after {begin}");
    }
}

#[test]
fn an_event_is_the_same_bytes_however_it_is_read_and_says_its_place() {
    let world = World::new();
    let event = world.complete("x");
    assert_eq!(world.store().event_of(&id("x")).unwrap(), Some(event.clone()));
    assert_eq!(world.events(), std::slice::from_ref(&event));
    let body: serde_json::Value = serde_json::from_str(&event.payload).unwrap();
    assert_eq!((body["final_message"].as_str(), body["state"].as_str()), (Some("answer of x"), Some("completed")));
    let place = Position::parse(body["cursor"].as_str().unwrap()).unwrap();
    assert_eq!(world.store().events(&Page::after(place)).unwrap().next_after, 1);
    world.complete("y");
    assert_eq!(world.store().event_of(&id("x")).unwrap(), Some(event));
}

#[test]
fn a_page_is_bounded_by_events_and_by_bytes_and_never_empty_for_a_large_one() {
    let world = World::new();
    for number in 0..5 {
        world.complete(&format!("r{number}"));
    }
    let all = Page::after(Position::Number(0));
    assert_eq!(page(&world, &Page { limit: 2, ..all.clone() }).unwrap(), (vec![1, 2], 2));
    let two = world.events()[..2].iter().map(|event| event.payload.len()).sum();
    assert_eq!(page(&world, &Page { bytes: two, ..all.clone() }).unwrap(), (vec![1, 2], 2));
    assert_eq!(page(&world, &Page { bytes: two - 1, ..all.clone() }).unwrap(), (vec![1], 1));
    assert_eq!(page(&world, &Page { bytes: 0, limit: 0, ..all }).unwrap(), (vec![1], 1));
}

#[test]
fn scenario_72_a_place_that_is_not_in_this_history_is_named_as_what_it_is() {
    let world = World::new();
    let first = world.complete("x");
    world.complete("y");
    let head = world.store().head().unwrap();
    let at = |after| world.store().events(&Page::after(after)).map(|page| page.next_after);
    assert_eq!(at(Position::Number(2)), Ok(2));
    assert_eq!(at(Position::Number(3)), Err(NotThere::Ahead { head: 2 }.into()));
    let here = Cursor::new(&head.stream_id, 1, &first.chain);
    assert_eq!(at(Position::Cursor(here.clone())), Ok(2));
    let foreign = Cursor { stream_id: "other".into(), ..here.clone() };
    assert_eq!(at(Position::Cursor(foreign)), Err(NotThere::Changed { stream_id: head.stream_id.clone() }.into()));
    let other = Cursor { chain: [0; 8], ..here };
    assert_eq!(at(Position::Cursor(other)), Err(NotThere::Diverged { seq: 1 }.into()));
    assert_eq!(at(Position::Cursor(head.cursor)), Ok(2));
}

#[test]
fn scenario_75_a_filter_passes_over_what_it_leaves_out() {
    let world = World::new();
    for number in 0..12 {
        let name = format!("r{number}");
        let session_id = if number % 3 == 0 { "s" } else { "t" }.to_owned();
        let asked = Registration { session_id, ..asked(&name) };
        assert!(matches!(world.ask(asked).unwrap(), Registered::New(_)));
        world.apply(&name, turnd_request::Input::Cancel).unwrap();
    }
    let filter = Filter { session_id: Some("s".into()), ..Filter::default() };
    let all = Page { filter, ..Page::after(Position::Number(0)) };
    assert_eq!(page(&world, &all).unwrap(), (vec![1, 4, 7, 10], 12));
    assert_eq!(page(&world, &Page { limit: 2, ..all.clone() }).unwrap(), (vec![1, 4], 6));
    let none = Filter { state: Some(State::Completed), ..Filter::default() };
    assert_eq!(page(&world, &Page { filter: none, ..all.clone() }).unwrap(), (vec![], 12));
    let theirs = Filter { owner: Some("b".into()), ..Filter::default() };
    assert_eq!(page(&world, &Page { filter: theirs, ..all }).unwrap(), (vec![], 12));
}

#[test]
fn scenario_76_a_consumer_moves_forward_only_and_not_above_the_head() {
    let world = World::new();
    for number in 0..12 {
        world.complete(&format!("r{number}"));
    }
    assert_eq!(world.consume("c", 10, Some(true)).unwrap().acked_seq, 10);
    let after = world.consume("c", 7, None).unwrap();
    assert_eq!((after.acked_seq, after.protect), (10, true));
    assert_eq!(world.consume("c", 17, None), Err(StoreError::Ahead { asked: 17, head: 12 }));
    assert_eq!(world.store().consumers().unwrap(), [after]);
}

#[test]
fn many_who_write_get_every_number_once() {
    let world = World::new();
    let highest = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (world, highest) = (&world, &highest);
            scope.spawn(move || {
                for number in 0..20 {
                    let event = world.complete(&format!("r{thread}-{number}"));
                    highest.fetch_max(event.seq, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(highest.load(Ordering::Relaxed), 160);
    assert_eq!(world.events().iter().map(|event| event.seq).collect::<Vec<_>>(), (1..=160).collect::<Vec<_>>());
    world.assert_sound();
}

#[test]
fn scenario_36_77_in_the_next_life_an_event_has_the_same_number_and_bytes() {
    let mut world = World::new();
    world.complete("x");
    let before = world.events();
    world.open();
    assert_eq!(world.events(), before);
    assert_eq!(world.complete("y").seq, 2);
    assert_eq!(world.events()[0], before[0]);
}

#[test]
fn scenario_64_a_clock_that_is_set_back_changes_no_order() {
    let mut world = World::new();
    world.complete("x");
    world.now -= 3_600_000;
    world.complete("y");
    world.open();
    assert_eq!(world.store().clock_behind_ms(world.now), 3_600_000);
    world.complete("z");
    let order: Vec<(u64, String)> =
        world.events().into_iter().map(|event| (event.seq, event.request_id.to_string())).collect();
    assert_eq!(order, [(1, "x".into()), (2, "y".into()), (3, "z".into())]);
    world.assert_sound();
}

#[test]
fn of_what_comes_after_an_end_only_so_much_is_kept() {
    let world = World::new();
    world.complete("x");
    for number in 0..20 {
        world.apply("x", settled(&format!("late {number}"))).unwrap();
    }
    assert_eq!(world.store().late(&id("x")).unwrap().len(), turnd_request::limits::LATE_MAX);
}

#[test]
fn a_list_goes_from_the_newest_to_the_oldest_page_by_page() {
    let world = World::new();
    for number in 0..7 {
        world.new_request(&format!("r{number}"));
    }
    world.apply("r3", turnd_request::Input::Cancel).unwrap();
    let names = |list: &List| {
        let page = world.store().list(list).unwrap();
        let names: Vec<String> = page.requests.iter().map(|request| request.id().to_string()).collect();
        (names.join(" "), page.before)
    };
    let all = List { limit: 3, ..List::default() };
    let (first, before) = names(&all);
    let (second, next) = names(&List { before, ..all.clone() });
    let (third, end) = names(&List { before: next, ..all.clone() });
    assert_eq!((&*first, &*second, &*third, end), ("r6 r5 r4", "r3 r2 r1", "r0", None));
    assert_eq!(names(&List { is_open: true, ..all.clone() }).0, "r6 r5 r4");
    assert_eq!(names(&List { state: Some(State::Cancelled), ..all.clone() }), ("r3".into(), None));
    assert_eq!(names(&List { state: Some(State::Registered), limit: 9, ..all.clone() }).0, "r6 r5 r4 r2 r1 r0");
    assert_eq!(names(&List { owner: Some("b".into()), ..all.clone() }).0, "");
    assert_eq!(names(&List { session_id: Some("s".into()), limit: 1, ..all }).0, "r6");
}

#[test]
fn the_newest_ends_are_those_since_a_time_and_no_more_than_are_asked_for() {
    let world = World::new();
    for (name, at_ms) in [("a", 5_000), ("b", 6_000), ("c", 7_000), ("d", 8_000)] {
        world.new_request(name);
        if name != "c" {
            world.apply_at(name, turnd_request::Input::Cancel, NOON + at_ms).unwrap();
        }
    }
    let names = |since_ms, most| {
        let ended = world.store().ended_since(NOON + since_ms, most).unwrap();
        ended.iter().map(|request| request.id().to_string()).collect::<String>()
    };
    assert_eq!(
        [names(0, 9), names(6_000, 9), names(6_001, 9), names(0, 2), names(8_001, 9)],
        ["dba", "db", "d", "db", ""]
    );
}

/// A page of a thousand requests would else hold a thousand answers.
#[test]
fn a_request_is_read_without_its_answer_which_its_event_has() {
    let world = World::new();
    let event = world.complete("x");
    assert!(event.payload.contains("answer of x"));
    let Some(Entry::Request(one)) = world.store().get(&id("x")).unwrap() else { panic!() };
    let Registered::Known(again) = world.register("x").unwrap() else { panic!() };
    let late = world.apply("x", settled("another answer")).unwrap().request;
    let listed = world.store().list(&List { limit: 9, ..List::default() }).unwrap().requests;
    let ended = world.store().ended_since(0, 9).unwrap();
    for request in [*one, *again, late].iter().chain(&listed).chain(&ended) {
        let told = (request.state, &request.final_message, request.final_bytes);
        assert_eq!(told, (State::Completed, &None, Some("answer of x".len() as u64)));
        assert!(request.final_sha256.is_some());
    }
    assert_eq!((listed.len(), ended.len()), (1, 1));
    world.assert_sound();
}

#[test]
fn a_sessions_list_is_in_order_whatever_states_its_requests_are_in() {
    let world = World::new();
    for number in 0..9 {
        world.new_request(&format!("r{number}"));
        if number % 3 == 0 {
            world.apply(&format!("r{number}"), turnd_request::Input::Cancel).unwrap();
        }
        if number % 3 == 1 {
            world.complete(&format!("c{number}"));
        }
    }
    let names = |list: &List| {
        let page = world.store().list(list).unwrap();
        (page.requests.iter().map(|request| request.id().to_string()).collect::<Vec<_>>().join(" "), page.before)
    };
    let of = List { session_id: Some("s".into()), limit: 5, ..List::default() };
    let (first, before) = names(&of);
    let (second, next) = names(&List { before, ..of.clone() });
    assert_eq!((&*first, &*second), ("r8 c7 r7 r6 r5", "c4 r4 r3 r2 c1"));
    assert_eq!(names(&List { before: next, ..of.clone() }), ("r1 r0".into(), None));
    assert_eq!(names(&List { is_open: true, ..of.clone() }).0, "r8 r7 r5 r4 r2");
    assert_eq!(names(&List { owner: Some("b".into()), ..of.clone() }), (String::new(), None));
    assert_eq!(names(&List { session_id: Some("t".into()), ..of }), (String::new(), None));
}

#[test]
fn a_state_is_looked_for_among_so_many_requests_at_a_time_and_every_one_of_it_is_found() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.new_request(name);
        world.apply(name, turnd_request::Input::Cancel).unwrap();
    }
    world.store = None;
    let conn = rusqlite::Connection::open(world.file()).unwrap();
    // As if ever so many others had come in between.
    conn.execute("UPDATE request SET rowid = 25000 WHERE request_id = 'c'", []).unwrap();
    drop(conn);
    world.open();
    let mut list = List { state: Some(State::Cancelled), limit: 2, ..List::default() };
    let mut pages = Vec::new();
    loop {
        let page = world.store().list(&list).unwrap();
        pages.push(page.requests.iter().map(|request| request.id().to_string()).collect::<String>());
        list.before = page.before;
        if list.before.is_none() {
            break;
        }
    }
    assert_eq!(pages, ["c", "", "ba"]);
}
