//! How much of some lines a file ends with already: what an append that was cut off has left there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How many of the first of `bytes` the file ends with, from the beginning of one of its lines on.
pub(crate) fn known(file: &File, bytes: &[u8]) -> io::Result<usize> {
    let len_bytes = file.metadata()?.len();
    // One byte more, which tells whether a line begins behind it.
    let window_bytes = len_bytes.min(bytes.len() as u64 + 1);
    let mut tail = vec![0; usize::try_from(window_bytes).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut tail, len_bytes - window_bytes)?;
    Ok(of(&tail, window_bytes == len_bytes, bytes))
}

/// The same for the last bytes of a file; `is_whole` when they are all of it.
pub(crate) fn of(tail: &[u8], is_whole: bool, bytes: &[u8]) -> usize {
    let behind_lines = tail.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let mut starts = is_whole.then_some(0).into_iter().chain(behind_lines);
    let found = starts.find(|start| bytes.starts_with(&tail[*start..]));
    found.map_or(0, |start| tail.len() - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_ends_with_is_counted_from_the_beginning_of_a_line() {
        for (tail, is_whole, bytes, expected) in [
            ("", true, "b1\n", 0),
            ("a1\n", true, "b1\n", 0),
            ("a1\nb", true, "b1\n", 1),
            ("a1\nb1\n", true, "b1\n", 3),
            ("a1\nb1\n", true, "b1\nb2\n", 3),
            ("b1\n", true, "b1\nb2\n", 3),
            ("b1\n", false, "b1\nb2\n", 0),
            ("ab", true, "b1\n", 0),
            ("b1\nb1\n", true, "b1\nb1\nb2\n", 6),
            ("b1\na", true, "b1\n", 0),
        ] {
            assert_eq!(of(tail.as_bytes(), is_whole, bytes.as_bytes()), expected, "{tail:?} {bytes:?}");
        }
    }
}
