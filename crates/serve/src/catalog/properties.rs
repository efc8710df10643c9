//! Walks through a catalog that does not stand still.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::cursor::Cursor;
use super::fill::Bounds;
use super::paging::{Asked, page};
use super::row::{Row, merged};
use super::walks::Walks;
use crate::sidecar::Place;

/// Something that happens between two pages.
#[derive(Debug, Clone)]
enum Change {
    /// A session comes, or is used.
    Touch(u8),
    /// A session is removed, or put away.
    Remove(u8),
    /// It is there, without a file.
    Live(u8),
    /// The daemon starts anew, and remembers no walk.
    Restart,
}

/// What is on disk and what lives, and when each was used last.
#[derive(Debug, Default, Clone)]
struct World {
    files: BTreeMap<u8, u64>,
    live: BTreeMap<u8, u64>,
    now_ms: u64,
}

impl World {
    fn change(&mut self, change: &Change, walks: &Mutex<Walks>) {
        // Several things may happen within one millisecond.
        self.now_ms += u64::from(self.files.len().is_multiple_of(2));
        match *change {
            Change::Touch(id) => drop(self.files.insert(id, self.now_ms)),
            Change::Live(id) => drop(self.live.insert(id, self.now_ms)),
            Change::Remove(id) => {
                self.files.remove(&id);
                self.live.remove(&id);
            }
            Change::Restart => {
                self.live.clear();
                *walks.lock().unwrap() = Walks::default();
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let rows = |of: &BTreeMap<u8, u64>| {
            of.iter().map(|(id, at_ms)| Row { id: name(*id), at_ms: *at_ms }).collect::<Vec<_>>()
        };
        merged(rows(&self.files), rows(&self.live), 1_000)
    }

    fn has(&self, id: &str) -> bool {
        let id = id.parse().unwrap();
        self.files.contains_key(&id) || self.live.contains_key(&id)
    }

    fn ids(&self) -> BTreeSet<String> {
        self.files.keys().chain(self.live.keys()).map(|id| name(*id).to_string()).collect()
    }
}

fn name(id: u8) -> Arc<str> {
    id.to_string().into()
}

/// What a walk showed, and what was there from its beginning to its end.
struct Walked {
    pages: Vec<Vec<String>>,
    constant: BTreeSet<String>,
}

/// Walks to the end, a page of `size` and then some changes at a time. The cursor travels as text.
fn walk(mut world: World, size: usize, looks_max: usize, changes: &[Vec<Change>]) -> Walked {
    let walks = Mutex::new(Walks::default());
    let (mut pages, mut constant) = (Vec::new(), world.ids());
    let mut cursor: Option<Cursor> = None;
    let mut changes = changes.iter();
    loop {
        let asked = Asked { place: Place::Active, cursor: cursor.as_ref(), bounds: Bounds { size, looks_max } };
        let look = |row: &Row| world.has(&row.id).then(|| row.id.to_string());
        let (filled, next) = page(&walks, &asked, || Ok::<_, Infallible>(world.rows()), look).unwrap();
        pages.push(filled.entries);
        let Some(next) = next else { return Walked { pages, constant } };
        cursor = Cursor::parse(&next.to_text(), Place::Active);
        assert_eq!(cursor, Some(next));
        for change in changes.next().into_iter().flatten() {
            world.change(change, &walks);
            constant = constant.intersection(&world.ids()).cloned().collect();
        }
    }
}

fn change(can_restart: bool) -> impl Strategy<Value = Change> {
    let id = || 0..24_u8;
    prop_oneof![
        4 => id().prop_map(Change::Touch),
        2 => id().prop_map(Change::Remove),
        1 => id().prop_map(Change::Live),
        u32::from(can_restart) => Just(Change::Restart),
    ]
}

fn world() -> impl Strategy<Value = World> {
    prop::collection::vec(change(false), 0..60).prop_map(|changes| {
        let mut world = World::default();
        for change in &changes {
            world.change(change, &Mutex::default());
        }
        world
    })
}

fn changes(can_restart: bool) -> impl Strategy<Value = Vec<Vec<Change>>> {
    prop::collection::vec(prop::collection::vec(change(can_restart), 0..6), 0..12)
}

fn shown(walked: &Walked) -> Vec<&String> {
    walked.pages.iter().flatten().collect()
}

proptest! {
    #[test]
    fn a_walk_shows_no_session_twice_and_misses_none_that_was_there_all_the_time(
        world in world(), size in 1..6_usize, looks_max in 1..9_usize, changes in changes(false),
    ) {
        let walked = walk(world, size, looks_max, &changes);
        let distinct: BTreeSet<_> = shown(&walked).into_iter().cloned().collect();
        prop_assert_eq!(distinct.len(), shown(&walked).len(), "{:?}", walked.pages);
        prop_assert!(walked.constant.is_subset(&distinct), "{:?} of {:?}", walked.pages, walked.constant);
        prop_assert!(walked.pages.iter().all(|page| page.len() <= size));
    }

    #[test]
    fn a_walk_that_outlives_its_daemon_still_shows_no_session_twice(
        world in world(), size in 1..6_usize, changes in changes(true),
    ) {
        let walked = walk(world, size, 100, &changes);
        let distinct: BTreeSet<_> = shown(&walked).into_iter().collect();
        prop_assert_eq!(distinct.len(), shown(&walked).len(), "{:?}", walked.pages);
    }

    #[test]
    fn while_nothing_changes_every_page_but_the_last_is_full_and_the_order_is_that_of_time(
        world in world(), size in 1..6_usize,
    ) {
        let expected: Vec<_> = world.rows().iter().map(|row| row.id.to_string()).collect();
        let walked = walk(world, size, 100, &[]);
        let (last, full) = walked.pages.split_last().unwrap();
        prop_assert!(full.iter().all(|page| page.len() == size) && last.len() <= size);
        prop_assert_eq!(shown(&walked), expected.iter().collect::<Vec<_>>());
    }
}
