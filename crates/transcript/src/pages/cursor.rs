//! Where a next page begins, as a text that its holder need not understand.

use std::ops::Range;

use super::Direction;
use crate::snapshot::Identity;

/// How many numbers a cursor holds, the check behind them included.
const NUMBERS: usize = 8;
/// Hexadecimal digits of a number.
const DIGITS: usize = 16;
/// How a cursor begins: what would be read otherwise would begin otherwise.
const VERSION: char = '1';

/// Where a page ended, in a certain snapshot of a certain file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) identity: Identity,
    /// Length of the file when its first page was read, in bytes.
    pub(super) length: u64,
    /// A hash of the last bytes before that length.
    pub(super) mark: u64,
    pub(super) place: Place,
}

/// The place between two pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// On the way back, within the window: so many records from the end were given.
    Given(u64),
    /// On the way back, behind the window: the parent of the record at `child` is looked for before `from`.
    Behind {
        /// Where the record that was given last stands, in bytes.
        child: Range<u64>,
        /// Where reading goes on, in bytes.
        from: u64,
    },
    /// On the way forward: behind the record that begins here, in bytes.
    After(u64),
}

impl Place {
    /// The way on which this place is met.
    pub(super) fn direction(&self) -> Direction {
        match self {
            Self::Given(_) | Self::Behind { .. } => Direction::Backward,
            Self::After(_) => Direction::Forward,
        }
    }
}

impl Cursor {
    /// The text that is given out. It is checked against accidents and not signed: who makes one up reads no more than a
    /// file that he may read anyway.
    pub(super) fn to_text(&self) -> String {
        let (letter, numbers) = match &self.place {
            Place::Given(records) => ('g', [*records, 0, 0]),
            Place::Behind { child, from } => ('b', [child.start, child.end, *from]),
            Place::After(start) => ('a', [*start, 0, 0]),
        };
        let Identity { device, inode } = self.identity;
        let numbers = [device, inode, self.length, self.mark].into_iter().chain(numbers);
        let text = numbers.fold(format!("{VERSION}{letter}"), |text, number| format!("{text}{number:016x}"));
        format!("{text}{:016x}", hash(text.as_bytes()))
    }

    /// Reads a text; none when it was not made here, or when its places lie beyond its own snapshot.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(VERSION)?.get(1..).filter(|digits| digits.len() == NUMBERS * DIGITS)?;
        let (told, check) = text.split_at_checked(text.len() - DIGITS)?;
        let is_lower_hex = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_lower_hex || check != format!("{:016x}", hash(told.as_bytes())) {
            return None;
        }
        let number = |index: usize| u64::from_str_radix(digits.get(index * DIGITS..(index + 1) * DIGITS)?, 16).ok();
        let [device, inode, length, mark] = [number(0)?, number(1)?, number(2)?, number(3)?];
        let (first, second, third) = (number(4)?, number(5)?, number(6)?);
        let place = match text.as_bytes()[1] {
            b'g' => Place::Given(first),
            b'b' if first < second && second <= length && third <= second => {
                Place::Behind { child: first..second, from: third }
            }
            b'a' if first < length => Place::After(first),
            _ => return None,
        };
        Some(Self { identity: Identity { device, inode }, length, mark, place })
    }
}

/// Tells bytes apart that were changed by accident (FNV-1a).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursors() -> [Cursor; 3] {
        [Place::Given(7), Place::Behind { child: 3..9, from: 2 }, Place::After(5)].map(|place| Cursor {
            identity: Identity { device: 1, inode: u64::MAX },
            length: 100,
            mark: 17,
            place,
        })
    }

    #[test]
    fn a_cursor_is_read_back() {
        for cursor in cursors() {
            assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor));
        }
    }

    #[test]
    fn a_cursor_that_was_changed_anywhere_is_none() {
        for text in cursors().map(|cursor| cursor.to_text()) {
            for at in 0..text.len() {
                for letter in ["0", "f", "b", "", "00", "é", "F"] {
                    let changed = format!("{}{letter}{}", &text[..at], &text[at + 1..]);
                    assert!(changed == text || Cursor::parse(&changed).is_none(), "{changed}");
                }
            }
            assert_eq!(Cursor::parse(&format!("{text}0")), None);
            assert_eq!(Cursor::parse(""), None);
        }
    }

    #[test]
    fn a_place_beyond_its_snapshot_is_none() {
        let [given, ..] = cursors();
        for place in [
            Place::Behind { child: 3..101, from: 2 },
            Place::Behind { child: 9..9, from: 2 },
            Place::Behind { child: 3..9, from: 10 },
            Place::After(100),
        ] {
            assert_eq!(Cursor::parse(&Cursor { place, ..given.clone() }.to_text()), None);
        }
    }
}
