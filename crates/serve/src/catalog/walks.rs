//! The lists that readers are in the middle of, each as it stood when its walk began. A walk that is forgotten goes on by time alone:
//! nothing is shown twice then either, but a session that was used meanwhile may be missed.

use std::collections::VecDeque;
use std::sync::Arc;

use super::cursor::Cursor;
use super::row::Row;
use crate::limits::{WALK_ROWS_MAX, WALKS_MAX};

/// The walks of one workspace, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Walks {
    begun: u64,
    walks: VecDeque<Walk>,
}

#[derive(Debug)]
struct Walk {
    number: u64,
    rows: Arc<[Row]>,
}

/// A walk that is gone on with.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) number: u64,
    pub(super) rows: Arc<[Row]>,
    /// The row that comes next.
    pub(super) from: usize,
}

impl Walks {
    /// Remembers a list; the number of its walk.
    pub(super) fn begin(&mut self, rows: Arc<[Row]>) -> u64 {
        self.begun += 1;
        self.walks.push_back(Walk { number: self.begun, rows });
        while self.walks.len() > 1 && (self.walks.len() > WALKS_MAX || self.remembered() > WALK_ROWS_MAX) {
            self.walks.pop_front();
        }
        self.begun
    }

    /// The walk that a cursor belongs to; none when it is forgotten, or was another life's under the same number.
    pub(super) fn resume(&mut self, cursor: &Cursor) -> Option<Resumed> {
        let place = self.walks.iter().position(|walk| walk.number == cursor.walk)?;
        let walk = self.walks.remove(place)?;
        let row = cursor.at.checked_sub(1).and_then(|last| walk.rows.get(last));
        let is_of_walk = row.is_some_and(|row| row.at_ms == cursor.at_ms && *row.id == *cursor.id);
        let resumed = Resumed { number: walk.number, rows: Arc::clone(&walk.rows), from: cursor.at };
        self.walks.push_back(walk);
        is_of_walk.then_some(resumed)
    }

    fn remembered(&self) -> usize {
        self.walks.iter().map(|walk| walk.rows.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sidecar::Place;

    fn rows(count: usize) -> Arc<[Row]> {
        (0..count).map(|number| Row { id: format!("s{number}").into(), at_ms: 9 }).collect()
    }

    fn cursor(walk: u64, at: usize) -> Cursor {
        Cursor { place: Place::Active, walk, at, at_ms: 9, id: format!("s{}", at - 1) }
    }

    #[test]
    fn a_walk_goes_on_where_its_page_ended() {
        let mut walks = Walks::default();
        let number = walks.begin(rows(5));
        assert_eq!(walks.resume(&cursor(number, 2)).map(|walk| (walk.number, walk.from)), Some((number, 2)));
        assert_eq!(walks.resume(&cursor(number, 5)).map(|walk| walk.from), Some(5));
        assert!(walks.resume(&cursor(number, 6)).is_none(), "there is no such row");
        assert!(walks.resume(&Cursor { at_ms: 8, ..cursor(number, 2) }).is_none(), "another life's walk");
        assert!(walks.resume(&Cursor { at: 0, ..cursor(number, 1) }).is_none());
        assert!(walks.resume(&cursor(number + 1, 2)).is_none());
    }

    #[test]
    fn the_walk_that_rested_longest_is_forgotten() {
        let mut walks = Walks::default();
        let first = walks.begin(rows(2));
        let second = walks.begin(rows(2));
        for _ in 2..WALKS_MAX {
            walks.begin(rows(2));
        }
        assert!(walks.resume(&cursor(first, 1)).is_some());
        walks.begin(rows(2));
        assert!(walks.resume(&cursor(first, 1)).is_some() && walks.resume(&cursor(second, 1)).is_none());
    }

    #[test]
    fn long_lists_are_remembered_in_smaller_number_and_the_last_one_always() {
        let mut walks = Walks::default();
        let first = walks.begin(rows(WALK_ROWS_MAX / 2));
        let second = walks.begin(rows(WALK_ROWS_MAX / 2));
        assert!(walks.resume(&cursor(first, 1)).is_some());
        let third = walks.begin(rows(WALK_ROWS_MAX));
        assert!(walks.resume(&cursor(first, 1)).is_none() && walks.resume(&cursor(second, 1)).is_none());
        assert!(walks.resume(&cursor(third, 1)).is_some());
    }
}
