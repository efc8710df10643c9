//! Where a page ended, as clients carry it. They are to see no meaning in it; there is nothing in it that they do not know.

use crate::identity::is_file_id;
use crate::sidecar::Place;

/// The end of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) place: Place,
    /// The walk it belongs to.
    pub(crate) walk: u64,
    /// How many rows of the walk lie before the next page.
    pub(crate) at: usize,
    /// The last of those, with which the place is found when the walk is forgotten: its time, in epoch milliseconds, and its session.
    pub(crate) at_ms: u64,
    pub(crate) id: String,
}

impl Cursor {
    /// The cursor as text.
    pub(crate) fn to_text(&self) -> String {
        let Self { place, walk, at, at_ms, id } = self;
        format!("{}.{walk}.{at}.{at_ms}.{id}", letter(*place))
    }

    /// What a client sent; none when it was never given out for this part of the sessions.
    pub(crate) fn parse(text: &str, place: Place) -> Option<Self> {
        let mut pieces = text.splitn(5, '.');
        let is_of_part = pieces.next()? == letter(place);
        let (walk, at, at_ms) =
            (pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?);
        let id = pieces.next().filter(|id| is_of_part && is_file_id(id))?.to_owned();
        Some(Self { place, walk, at, at_ms, id })
    }
}

fn letter(place: Place) -> &'static str {
    match place {
        Place::Active => "a",
        Place::Archived => "r",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_out_is_understood_and_nothing_else_is() {
        let cursor = Cursor { place: Place::Active, walk: 7, at: 20, at_ms: 1_795_977_960_540, id: "a.b-c".into() };
        assert_eq!(cursor.to_text(), "a.7.20.1795977960540.a.b-c");
        assert_eq!(Cursor::parse(&cursor.to_text(), Place::Active), Some(cursor.clone()));
        assert_eq!(Cursor::parse(&cursor.to_text(), Place::Archived), None, "the other list's");
        for wrong in
            ["", "a", "a.1.2.3", "a.1.2.3.", "a.x.2.3.id", "a.1.-2.3.id", "b.1.2.3.id", "a.1.2.3.../x", "a.1.2.3.a/b"]
        {
            assert_eq!(Cursor::parse(wrong, Place::Active), None, "{wrong}");
        }
    }
}
