use proptest::prelude::*;

use super::*;

const LIMIT: usize = 8;

/// The frames of a stream in a short notation: text, or `!` for one that was too long.
fn frames<'a>(limit_bytes: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut reader = FrameReader::new(limit_bytes);
    let mut frames = Vec::new();
    let mut note = |frame: Result<Bytes, FrameError>| {
        frames.push(frame.map_or("!".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned()));
    };
    for chunk in chunks {
        reader.push(chunk);
        while let Some(frame) = reader.next_frame() {
            note(frame);
        }
    }
    while let Some(frame) = reader.finish() {
        note(frame);
    }
    frames
}

fn check(stream: &str, expected: &[&str]) {
    assert_eq!(frames(LIMIT, [stream.as_bytes()]), expected, "{stream:?} at once");
    assert_eq!(frames(LIMIT, stream.as_bytes().chunks(1)), expected, "{stream:?} byte by byte");
}

#[test]
fn a_stream_is_cut_at_its_line_feeds() {
    check("", &[]);
    check("a\nbc\n", &["a", "bc"]);
    check("a\r\nb\r\n", &["a", "b"]);
    check("a\rb\n", &["a\rb"]);
}

#[test]
fn a_last_line_without_a_line_feed_is_a_line() {
    check("a\nb", &["a", "b"]);
    check("b\r", &["b"]);
}

#[test]
fn empty_lines_are_counted_and_not_given_out() {
    check("\n\r\na\n\n", &["a"]);
    let mut reader = FrameReader::default();
    reader.push(b"\n\r\na\n\n");
    assert_eq!(reader.counts(), FrameCounts { frames: 1, empty_lines: 3, too_long: 0 });
}

#[test]
fn a_line_over_the_limit_is_reported_once_and_skipped_to_its_end() {
    check("12345678\n", &["12345678"]);
    check("123456789\nb\n", &["!", "b"]);
    check("123456789 and much more\n\nb", &["!", "b"]);
    check("123456789", &["!"]);
    check("a\n123456789\n123456789\nb\n", &["a", "!", "!", "b"]);
}

#[test]
fn the_report_names_the_limit_and_does_not_wait_for_the_line_to_end() {
    let mut reader = FrameReader::new(LIMIT);
    reader.push(b"123456789");
    let error = reader.next_frame().unwrap().unwrap_err();
    assert_eq!(error, FrameError::TooLong { limit_bytes: LIMIT, was_answer: false });
    assert_eq!(error.to_string(), "a line is longer than the limit of 8 bytes");
    assert_eq!(reader.counts().too_long, 1);
}

#[test]
fn the_default_limit_is_the_published_one() {
    assert_eq!(FrameReader::default().limit_bytes, 64 * 1024 * 1024);
    assert_eq!(FrameReader::default().capacity(), 0);
}

#[test]
fn two_hundred_megabytes_without_a_line_feed_stay_within_the_limit() {
    const LIMIT_BYTES: usize = 1024 * 1024;
    let chunk = [b'x'; 64 * 1024];
    let mut reader = FrameReader::new(LIMIT_BYTES);
    let mut reports = 0;
    for _ in 0..200 * 1024 * 1024 / chunk.len() {
        reader.push(&chunk);
        reports += std::iter::from_fn(|| reader.next_frame()).count();
        assert!(reader.capacity() <= LIMIT_BYTES);
    }
    assert_eq!((reports, reader.capacity()), (1, 0));
    reader.push(b"\nnext\n");
    assert_eq!(reader.next_frame(), Some(Ok(Bytes::from_static(b"next"))));
}

#[test]
fn a_long_line_gives_its_memory_back() {
    let mut reader = FrameReader::default();
    for _ in 0..40 {
        reader.push(&[b'x'; 50_000]);
    }
    assert!(reader.capacity() >= 2_000_000);
    reader.push(b"\n");
    assert_eq!(reader.next_frame().unwrap().unwrap().len(), 2_000_000);
    assert_eq!(reader.capacity(), 0);
}

proptest! {
    #[test]
    fn how_a_stream_is_split_changes_nothing(
        stream in "[ab\r\n]{0,80}",
        mut cuts in prop::collection::vec(0_usize..80, 0..8),
    ) {
        let bytes = stream.as_bytes();
        cuts.push(0);
        cuts.push(bytes.len());
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(frames(LIMIT, chunks), frames(LIMIT, [bytes]));
    }

    #[test]
    fn memory_for_one_line_never_exceeds_the_limit(
        limit in 1_usize..300,
        pieces in prop::collection::vec((1_usize..100, any::<bool>()), 0..40),
    ) {
        let mut reader = FrameReader::new(limit);
        for (length, ends) in pieces {
            reader.push(&vec![b'x'; length]);
            prop_assert!(reader.capacity() <= limit);
            if ends {
                reader.push(b"\n");
            }
            while let Some(frame) = reader.next_frame() {
                prop_assert!(frame.is_ok_and(|frame| frame.len() <= limit) || reader.counts().too_long > 0);
            }
        }
    }

    #[test]
    fn short_lines_come_out_as_they_went_in(lines in prop::collection::vec("[a-z]{1,8}", 0..20)) {
        let stream: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(frames(LIMIT, [stream.as_bytes()]), lines);
    }
}

#[test]
fn a_lost_answer_is_told_from_a_lost_message() {
    for (head, expected) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"method":""#, true),
        (r#"{"id":"x","error":{"message":""#, true),
        (r#"{"jsonrpc":"2.0","method":"session/update","params":{"result":""#, false),
        (r#"{"params":{"error":""#, false),
        ("noise without a name ", false),
    ] {
        let mut reader = FrameReader::new(64);
        reader.push(head.as_bytes());
        reader.push(&[b'x'; 80]);
        reader.push(b"\n");
        let lost = FrameError::TooLong { limit_bytes: 64, was_answer: expected };
        assert_eq!(reader.next_frame(), Some(Err(lost)), "{head}");
    }
}
