use std::io::Write;

use proptest::prelude::*;

use super::*;

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn backward(bytes: &[u8]) -> Vec<Vec<u8>> {
    let file = file_of(bytes);
    let mut lines = Backward::new(&file, bytes.len() as u64);
    let mut found = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        let place = usize::try_from(line.span.start).unwrap()..usize::try_from(line.span.end).unwrap();
        if let Some(held) = line.held {
            assert_eq!(held, &bytes[place.clone()]);
        }
        found.push(bytes[place].to_vec());
    }
    assert_eq!(lines.read_from(), 0);
    found.reverse();
    found
}

/// The lines that hold something, without the white space at their ends.
fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_floor_is_the_end_of_all_lines_that_end_at_it_or_before() {
    let bytes = b"aa\nbb\n\n\ncc\n";
    let file = file_of(bytes);
    let found = |floor| {
        let mut lines = Backward::new(&file, bytes.len() as u64).down_to(floor);
        let mut found = 0;
        while lines.next().unwrap().is_some() {
            found += 1;
        }
        (found, lines.is_at_floor())
    };
    for (floor, expected) in [
        (0, (3, false)),
        (1, (3, true)),
        (2, (2, true)),
        (4, (2, true)),
        (5, (1, true)),
        (9, (1, true)),
        (10, (0, true)),
    ] {
        assert_eq!(found(floor), expected, "floor at {floor}");
    }
}

#[test]
fn lines_end_at_lf_cr_and_crlf() {
    for bytes in [&b""[..], b"\n\r\n", b"a", b"a\n", b"a\r\nb\rc\nd", b"\n\na\n \n\tb\r\r"] {
        assert_eq!(backward(bytes), split(bytes), "{bytes:?}");
    }
}

#[test]
fn a_line_longer_than_any_block_is_held_whole() {
    let long = vec![b'x'; 700_001];
    let bytes = [b"first\n", &long[..], b"\nlast"].concat();
    assert_eq!(backward(&bytes), split(&bytes));
}

#[test]
fn a_line_too_long_to_be_held_is_known_by_its_place() {
    let long = vec![b'x'; usize::try_from(HELD_BYTES_MAX).unwrap() + 1];
    let bytes = [b"first\n", &long[..], b"\nlast\n"].concat();
    let file = file_of(&bytes);
    let mut lines = Backward::new(&file, bytes.len() as u64);
    assert!(lines.next().unwrap().unwrap().held.is_some());
    let middle = lines.next().unwrap().unwrap();
    assert_eq!((middle.span, middle.held), (6..7 + HELD_BYTES_MAX, None));
    assert_eq!(lines.next().unwrap().unwrap().held, Some(&b"first"[..]));
    assert!(lines.next().unwrap().is_none());
}

#[test]
fn a_line_too_long_to_be_held_moves_the_floor() {
    let long = vec![b'x'; usize::try_from(HELD_BYTES_MAX).unwrap() + 10];
    let bytes = [b"first\nsecond\n", &long[..], b"\nlast\n"].concat();
    let file = file_of(&bytes);
    let found = |floor| {
        let mut lines = Backward::new(&file, bytes.len() as u64).down_to(floor);
        std::iter::from_fn(|| lines.next().unwrap().map(|_| ())).count()
    };
    assert_eq!([14, 15, 21, 22].map(found), [4, 3, 3, 2]);
}

#[test]
fn lines_from_the_beginning_are_the_same_lines() {
    let long = vec![b'x'; 200_001];
    let bytes = [b"a\r\n\n", &long[..], b"\rb"].concat();
    let file = file_of(&bytes);
    let mut lines = Forward::new(&file, bytes.len() as u64);
    let mut found = Vec::new();
    while let Some(span) = lines.next().unwrap() {
        let line = &bytes[usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap()];
        found.extend((!line.trim_ascii().is_empty()).then(|| line.to_vec()));
    }
    assert_eq!(found, split(&bytes));
}

proptest! {
    #[test]
    fn backward_lines_are_forward_lines(bytes in prop::collection::vec(prop::sample::select(b"ab \n\r".to_vec()), 0..200)) {
        prop_assert_eq!(backward(&bytes), split(&bytes));
    }
}
