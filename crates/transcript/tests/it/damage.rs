//! What happens to files: by a torn write, by a bad disk, by an editor that means well.

use proptest::prelude::*;
use proptest::sample::Index;

/// One thing that happened to a file.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    /// Bytes are gone.
    Cut(Index, usize),
    /// A byte is another one.
    Flip(Index, u8),
    /// A line end is gone, so that two lines are one.
    Fused(Index),
    /// A line stands there twice, if it holds one record: the fragments of several would not be neighbours.
    Twice(Index),
    /// Lines end otherwise.
    Ends(&'static str),
    /// A byte-order mark stands before a line.
    Mark(Index),
    /// A run of NUL bytes stands in the place of others.
    Nuls(Index, usize),
}

pub(crate) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let damage = prop_oneof![
        3 => (any::<Index>(), 1..200_usize).prop_map(|(at, count)| Damage::Cut(at, count)),
        3 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        2 => any::<Index>().prop_map(Damage::Fused),
        2 => any::<Index>().prop_map(Damage::Twice),
        1 => prop::sample::select(vec!["\r\n", "\r", "\n\n", " \n"]).prop_map(Damage::Ends),
        1 => any::<Index>().prop_map(Damage::Mark),
        2 => (any::<Index>(), 1..200_usize).prop_map(|(at, count)| Damage::Nuls(at, count)),
    ];
    prop::collection::vec(damage, 1..5)
}

/// The file after all of it.
pub(crate) fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let run = |at: &Index, count: &usize, bytes: &[u8]| {
            let start = at.index(bytes.len());
            start..(start + count).min(bytes.len())
        };
        match damage {
            Damage::Cut(at, count) => drop(bytes.drain(run(at, count, &bytes))),
            Damage::Flip(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Fused(line) => with_lines(&mut bytes, line, |line| line.truncate(line.len() - 1)),
            Damage::Twice(line) => with_lines(&mut bytes, line, |line| {
                if String::from_utf8_lossy(line).matches("\"uuid\"").count() == 1 {
                    line.extend_from_within(..);
                }
            }),
            Damage::Ends(end) => {
                let lines = bytes.split(|byte| *byte == b'\n').collect::<Vec<_>>();
                bytes = lines.join(end.as_bytes());
            }
            Damage::Mark(line) => with_lines(&mut bytes, line, |line| drop(line.splice(..0, *b"\xef\xbb\xbf"))),
            Damage::Nuls(at, count) => {
                let run = run(at, count, &bytes);
                bytes[run].fill(0);
            }
        }
    }
    bytes
}

/// Changes one of the lines, its end included.
fn with_lines(bytes: &mut Vec<u8>, which: &Index, change: impl FnOnce(&mut Vec<u8>)) {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(is_end).map(<[u8]>::to_vec).collect();
    change(which.get_mut(&mut lines));
    *bytes = lines.concat();
}

/// The text with ids that no damage makes another's: each `"rN"` becomes a long one.
pub(crate) fn with_long_ids(text: &str) -> String {
    let mut pieces = text.split("\"r");
    let mut long = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.find('"').unwrap_or_default();
        match piece[..digits].parse::<u64>() {
            Ok(number) => {
                long += &format!("\"{:016x}{:016x}{}", scattered(number), scattered(!number), &piece[digits..])
            }
            Err(_) => long += &format!("\"r{piece}"),
        }
    }
    long
}

/// A number that differs in half of its bits from that of any other number.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (mixed >> 31)
}
