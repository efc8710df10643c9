//! Whatever is in a file, reading it ends, and with something that can be said.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;
use transcript::display::replay;
use transcript::{PageError, Transcript, check, find_turn_result, last_rewind_at_ms, tail_uuid};

use crate::sample::{Sample, chain};

/// Reads everything that can be read of a file, and gives the number of records on its branch.
fn read_all(bytes: &[u8]) -> usize {
    let sample = Sample::of(bytes);
    let path = sample.path();
    let _ = check(path, "s1", Path::new("/ws"));
    let _ = tail_uuid(path);
    // What was damaged may name another session.
    let is_said = |refused: PageError| assert_eq!(refused.code(), "transcript_snapshot_unavailable", "{refused}");
    find_turn_result(path, None).map_or_else(is_said, drop);
    last_rewind_at_ms(path).map_or_else(is_said, drop);
    replay(path, 1_000_000).unwrap();
    let Some(transcript) = Transcript::open(path).unwrap() else { return 0 };
    transcript.first_record().unwrap();
    let mut branch = transcript.branch(0).unwrap();
    let mut records = 0;
    while branch.next_record().unwrap().is_some() {
        records += 1;
    }
    records
}

/// Pieces that damaged files are made of.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "{\"uuid\":\"a\",\"parentUuid\":null,\"sessionId\":\"s1\",\"type\":\"user\",\"cwd\":\"/ws\",\"message\":",
        "{\"uuid\":\"b\",\"parentUuid\":\"a\",\"sessionId\":\"s1\",\"type\":\"assistant\",\"message\":",
        "{\"uuid\":\"t\",\"parentUuid\":\"b\",\"sessionId\":\"s1\",\"type\":\"system\",\"subtype\":\"turn_result\",\"systemPayload\":",
        "{\"uuid\":\"z\",\"parentUuid\":\"t\",\"sessionId\":\"s1\",\"type\":\"system\",\"subtype\":\"chat_compression\",\"systemPayload\":",
        "{\"uuid\":\"c\",\"parentUuid\":\"z\",\"sessionId\":\"s1\",\"type\":\"system\",\"subtype\":\"slash_command\",\"systemPayload\":",
        "{\"role\":\"user\",\"parts\":[{\"text\":\"q\"},{\"functionCall\":{\"id\":\"c1\",\"name\":\"ls\",\"args\":",
        "{\"promptId\":\"p\",\"state\":\"cancelled\",\"endedAt\":1,\"cancelledAt\":2",
        "{\"compressedHistory\":[{\"role\":\"user\",\"parts\":[",
        "{\"phase\":\"result\",\"rawCommand\":\"q\",\"outputHistoryItems\":[{\"type\":\"assistant\",\"text\":\"a\"",
        "}",
        "}}",
        "}]}}",
        "]}}\n",
        "}\n",
        "\n",
        "\r",
        "{",
        "[",
        "]",
        "\"",
        "\\",
        "\\ud800",
        "null",
        "1e999",
        ",",
        ":",
        "\u{feff}",
        "\0",
    ];
    let word = prop_oneof![
        8 => prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn no_bytes_are_too_damaged_to_be_read(bytes in pieces()) {
        read_all(&bytes);
    }

    /// One byte costs its own record, and cuts the branch there at most: what stands behind it is there.
    #[test]
    fn a_flipped_byte_costs_no_record_behind_it(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = Sample::of_lines(&chain("user assistant tool_result note assistant turn_result")).bytes();
        let at = at.index(bytes.len());
        let behind = bytes[at..].iter().filter(|byte| **byte == b'\n').count() - 1;
        bytes[at] = byte;
        prop_assert!((behind..=6).contains(&read_all(&bytes)));
    }

    #[test]
    fn a_replay_within_a_bound_is_the_end_of_the_whole(kinds in prop::collection::vec(0..4_usize, 0..30), bytes_max in 0..9_000_usize) {
        let words = ["user", "assistant", "tool_result", "note"];
        let kinds: Vec<_> = kinds.into_iter().map(|kind| words[kind]).collect();
        let sample = Sample::of_lines(&chain(&kinds.join(" ")));
        let whole = replay(sample.path(), usize::MAX).unwrap();
        let part = replay(sample.path(), bytes_max).unwrap();
        prop_assert!(whole.frames.ends_with(&part.frames));
        prop_assert_eq!(part.is_truncated, part.frames.len() < whole.frames.len());
        let bytes: usize = part.frames.iter().map(|frame| frame.update.len()).sum();
        prop_assert!(bytes <= bytes_max);
    }
}

#[test]
fn a_file_that_is_no_file_is_an_error() {
    let folder = Sample::new();
    assert!(Transcript::open(folder.folder()).is_err());
    assert!(Transcript::open(folder.path()).unwrap().is_none());
}

#[test]
fn what_is_beyond_a_value_s_bound_is_not_read() {
    let sample = Sample::of_lines(&chain("user"));
    let transcript = Transcript::open(sample.path()).unwrap().unwrap();
    let span = sample.branch()[0].span.clone();
    let bytes = span.end - span.start;
    assert!(transcript.value(&span, bytes - 1).unwrap().is_none());
    assert_eq!(transcript.value(&span, bytes).unwrap().as_ref().and_then(|value| value["uuid"].as_str()), Some("r0"));
    assert!(transcript.value(&(0..bytes + 9), u64::MAX).is_err());
    assert!(transcript.value(&(0..1), 9).unwrap().is_none_or(|value| value == Value::Null));
}
