//! Mutations that know of lines and of strings.
//!
//! A flipped byte mostly makes a line that is no JSON any more, and what becomes of those is soon found out. The states
//! worth reaching are those of whole lines in another order and of ids that point elsewhere.

use libfuzzer_sys::fuzzer_mutate;

/// Changes an input of `size` bytes in place, by bytes or by lines, and says how long it is then; at most `max_size`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut chance = Chance(u64::from(seed) | 1 << 40);
    let changed = match chance.below(8) {
        0..=2 => return fuzzer_mutate(data, size, max_size),
        3 | 4 => with_lines_moved(&data[..size], &mut chance),
        _ => with_string_replaced(&data[..size], &mut chance),
    };
    let length = changed.len().min(max_size);
    data[..length].copy_from_slice(&changed[..length]);
    length
}

/// A line left out, put elsewhere, or written again elsewhere.
fn with_lines_moved(data: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = data.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let from = chance.below(lines.len());
    match chance.below(3) {
        0 => drop(lines.remove(from)),
        1 => {
            let line = lines.remove(from);
            lines.insert(chance.below(lines.len() + 1), line);
        }
        _ => lines.insert(chance.below(lines.len() + 1), lines[from]),
    }
    lines.concat()
}

/// A string of the input in the place of another one.
fn with_string_replaced(data: &[u8], chance: &mut Chance) -> Vec<u8> {
    let quotes: Vec<usize> = (0..data.len()).filter(|at| data[*at] == b'"').collect();
    if quotes.len() < 2 {
        return data.to_vec();
    }
    let string = |index: usize| quotes[index] + 1..quotes[index + 1];
    let (from, to) = (string(chance.below(quotes.len() - 1)), string(chance.below(quotes.len() - 1)));
    [&data[..to.start], &data[from], &data[to.end..]].concat()
}

/// Numbers that look like chance and follow from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(usize::MAX) % bound.max(1)
    }
}
