//! The rows of a list: newest first, and of those of one instant by their ids, so that they stand the same whoever asks.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

/// A session's place in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: Arc<str>,
    /// When its transcript was written to last; of a session that has none, when it last settled or was made. Epoch milliseconds.
    pub(crate) at_ms: u64,
}

impl Row {
    fn rank(&self) -> (Reverse<u64>, &str) {
        (Reverse(self.at_ms), &self.id)
    }
}

/// Sessions on disk and live ones as one list, the newest `rows_max` of them. What is both stands where its file puts it.
pub(super) fn merged(mut files: Vec<Row>, live: Vec<Row>, rows_max: usize) -> Vec<Row> {
    let known: HashSet<Arc<str>> = if live.is_empty() { HashSet::new() } else { ids(&files) };
    files.extend(live.into_iter().filter(|row| !known.contains(&row.id)));
    newest(&mut files, rows_max);
    files
}

/// Sorts the rows and keeps the newest.
pub(super) fn newest(rows: &mut Vec<Row>, rows_max: usize) {
    rows.sort_unstable_by(|one, other| one.rank().cmp(&other.rank()));
    rows.truncate(rows_max);
}

/// Where the rows begin that come behind this place, whether anything stands there or not.
pub(super) fn behind(rows: &[Row], at_ms: u64, id: &str) -> usize {
    rows.partition_point(|row| row.rank() <= (Reverse(at_ms), id))
}

fn ids(rows: &[Row]) -> HashSet<Arc<str>> {
    rows.iter().map(|row| Arc::clone(&row.id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Row> {
        let row = |word: &str| {
            let (id, at_ms) = word.split_once('@').unwrap();
            Row { id: id.into(), at_ms: at_ms.parse().unwrap() }
        };
        text.split_whitespace().map(row).collect()
    }

    fn told(rows: &[Row]) -> String {
        rows.iter().map(|row| format!("{}@{}", row.id, row.at_ms)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_lives_stands_where_its_file_puts_it_and_otherwise_where_it_was_made() {
        for (files, live, expected) in [
            ("", "", ""),
            ("a@1 b@3 c@2", "", "b@3 c@2 a@1"),
            ("b@1 a@1", "", "a@1 b@1"),
            ("a@1 b@3", "c@2", "b@3 c@2 a@1"),
            ("a@1 b@3", "a@9 c@2", "b@3 c@2 a@1"),
            ("", "a@1 b@2", "b@2 a@1"),
        ] {
            assert_eq!(told(&merged(rows(files), rows(live), 10)), expected, "{files} and {live}");
        }
        assert_eq!(told(&merged(rows("a@1 b@3 c@2"), rows("d@4"), 2)), "d@4 b@3", "the newest are kept");
    }

    #[test]
    fn a_place_is_found_whether_anything_stands_there_or_not() {
        let list = merged(rows("a@5 b@5 c@3 d@1"), Vec::new(), 10);
        for (at_ms, id, expected) in
            [(9, "x", 0), (5, "a", 1), (5, "aa", 1), (5, "b", 2), (4, "x", 2), (3, "c", 3), (1, "d", 4), (0, "x", 4)]
        {
            assert_eq!(behind(&list, at_ms, id), expected, "{id}@{at_ms}");
        }
    }
}
