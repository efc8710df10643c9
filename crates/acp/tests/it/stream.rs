//! Recorded traffic as a stream: however it is cut, the same messages come out.

use acp::{FrameReader, Message, Skipped};
use proptest::prelude::*;

use crate::recorded_lines;

/// What lies between the lines of a real stream and is no message.
const NOISE: [&str; 7] =
    ["", "\r", "[]", "{}", "Goodbye!", "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":", "\u{1b}[31mred"];

fn read(chunks: &[&[u8]]) -> (Vec<String>, Skipped) {
    let mut reader = FrameReader::default();
    let (mut messages, mut skipped) = (Vec::new(), Skipped::default());
    let mut note = |frame: Result<bytes::Bytes, acp::FrameError>| match Message::parse(frame.unwrap()) {
        Ok(message) => messages.push(String::from_utf8(message.raw().to_vec()).unwrap()),
        Err(reason) => skipped.add(reason),
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
    (messages, skipped)
}

#[test]
fn noise_between_messages_is_skipped_and_counted() {
    let lines = recorded_lines();
    let stream: String =
        lines.iter().zip(NOISE.iter().cycle()).map(|((_, line), noise)| format!("{noise}\n{line}\r\n")).collect();
    let (messages, skipped) = read(&[stream.as_bytes()]);
    assert_eq!(messages, lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>());
    assert!(skipped.not_json > 0 && skipped.not_an_object > 0 && skipped.no_envelope > 0, "{skipped:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_messages(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let stream: String = recorded_lines().iter().map(|(_, line)| format!("{line}\n")).collect();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&chunks), read(&[bytes]));
    }

    #[test]
    fn any_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let (messages, skipped) = read(&[&bytes]);
        prop_assert!(messages.len() as u64 + skipped.total() <= bytes.len() as u64);
    }
}
