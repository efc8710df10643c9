//! One page of a list: as many sessions as it holds, looked for from one place on.

use super::row::Row;

/// What a page is bounded by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Sessions of a page.
    pub(super) size: usize,
    /// Rows that are looked at for one page, those that turn out not to count included.
    pub(super) looks_max: usize,
}

/// A page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filled<T> {
    pub(super) entries: Vec<T>,
    /// The row that was looked at last, when there are more behind it.
    pub(super) last: Option<usize>,
    /// Whether it is not full although there are more.
    pub(super) is_truncated: bool,
}

/// Fills a page from `from` on with what `look` finds.
pub(super) fn fill<T>(rows: &[Row], from: usize, bounds: Bounds, mut look: impl FnMut(&Row) -> Option<T>) -> Filled<T> {
    let mut entries = Vec::new();
    let mut next = from.min(rows.len());
    let looked_until = rows.len().min(next.saturating_add(bounds.looks_max));
    while next < looked_until && entries.len() < bounds.size {
        entries.extend(look(&rows[next]));
        next += 1;
    }
    let last = next.checked_sub(1).filter(|_| next < rows.len());
    Filled { is_truncated: last.is_some() && entries.len() < bounds.size, entries, last }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a page of three, in at most five looks, out of the letters; small ones do not count.
    fn check(letters: &str, from: usize, expected: (&str, Option<usize>, bool)) {
        let rows: Vec<_> = letters.chars().map(|id| Row { id: id.to_string().into(), at_ms: 0 }).collect();
        let look = |row: &Row| row.id.chars().next().filter(char::is_ascii_uppercase);
        let filled = fill(&rows, from, Bounds { size: 3, looks_max: 5 }, look);
        let entries: String = filled.entries.iter().collect();
        assert_eq!((entries.as_str(), filled.last, filled.is_truncated), expected, "{letters} from {from}");
    }

    #[test]
    fn a_page_holds_what_it_is_asked_for_and_says_when_that_was_too_much_to_look_for() {
        check("", 0, ("", None, false));
        check("ABC", 0, ("ABC", None, false));
        check("ABCD", 0, ("ABC", Some(2), false));
        check("AbCdEF", 0, ("ACE", Some(4), false));
        check("AbcdeF", 0, ("A", Some(4), true));
        check("AbcdeF", 5, ("F", None, false));
        check("ABC", 9, ("", None, false));
        check("abcd", 0, ("", None, false));
    }
}
