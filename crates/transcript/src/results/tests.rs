use std::fmt::Write as _;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;

/// Three pages of four records or 2,000 bytes.
const SMALL: Reach = Reach { pages: 3, page_records: 4, page_bytes: 2_000 };

/// A transcript in short notation, one word a record: `t` followed by a number is the result that ended at that time, `w` a
/// rewind, `u` a short prompt, `x` and a number a prompt of so many bytes in all, `-` a note beside the branch.
fn transcript(words: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    let mut text = String::new();
    let mut parent = None;
    for (index, word) in words.split_whitespace().enumerate() {
        let (kind, rest) = word.split_at(1);
        let uuid = format!("r{index:04}");
        let number = || rest.parse::<usize>().unwrap();
        let mut record = json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "system"});
        match kind {
            "t" => {
                record["subtype"] = json!("turn_result");
                record["systemPayload"] = json!({"promptId": "p", "state": "completed", "endedAt": number()});
            }
            "w" => record["subtype"] = json!("rewind"),
            "-" => record["subtype"] = json!("session_artifact_event"),
            _ => record["type"] = json!("user"),
        }
        if kind == "x" {
            record["text"] = json!("");
            let padding = number() - record.to_string().len();
            record["text"] = json!("x".repeat(padding));
        }
        writeln!(text, "{record}").unwrap();
        if kind != "-" {
            parent = Some(uuid);
        }
    }
    std::fs::write(file.path(), text).unwrap();
    file
}

fn found(words: &str) -> Option<u64> {
    find_result(transcript(words).path(), Some("p"), SMALL).unwrap().map(|result| result.ended_at)
}

/// The code of the error that a search ends with.
fn refused(words: &str) -> &'static str {
    find_result(transcript(words).path(), Some("p"), SMALL).unwrap_err().code()
}

#[test]
fn the_newest_result_wins_on_every_page() {
    for (words, expected) in [
        ("", None),
        ("u", None),
        ("t1", Some(1)),
        ("t1 t2", Some(2)),
        ("t1 u u u u t2 u u u u", Some(2)),
        ("t1 u u u u u u", Some(1)),
    ] {
        assert_eq!(found(words), expected, "{words}");
    }
}

#[test]
fn the_reach_ends_with_the_last_record_of_the_last_page() {
    assert_eq!(found(&("t1 ".to_owned() + &"u ".repeat(11))), Some(1));
    assert_eq!(found(&("t1 ".to_owned() + &"u ".repeat(12))), None);
}

#[test]
fn a_page_is_full_with_its_last_byte() {
    // Two records fill a page to the byte, or are a byte too long for it.
    assert_eq!(found(&("t1 ".to_owned() + &"x1000 ".repeat(5))), Some(1));
    assert_eq!(found(&("t1 ".to_owned() + &"x1000 ".repeat(6))), None);
    assert_eq!(found(&("t1 ".to_owned() + &"x1001 ".repeat(2))), Some(1));
    assert_eq!(found(&("t1 ".to_owned() + &"x1001 ".repeat(3))), Some(1));
    assert_eq!(found(&("t1 ".to_owned() + &"x1001 ".repeat(4))), None);
}

#[test]
fn a_record_larger_than_a_page_has_one_for_itself() {
    assert_eq!(found("t1 x3000 x3000"), Some(1));
    assert_eq!(refused("t1 x3000 x3000 x3000"), "transcript_page_too_large");
    assert_eq!(refused("x2001"), "transcript_page_too_large");
    assert_eq!(found("x2000"), None);
    // Further back than the last page nobody looks.
    assert_eq!(found(&("x3000 ".to_owned() + &"u ".repeat(12))), None);
}

#[test]
fn what_lies_beside_the_branch_is_on_no_page() {
    assert_eq!(found(&("t1 ".to_owned() + &"- ".repeat(20))), Some(1));
}

#[test]
fn a_file_is_read_no_further_than_every_page_twice() {
    assert_eq!(SMALL.file_bytes(), 12_000);
    let beside = |count: usize| "t1 ".to_owned() + &"- ".repeat(count);
    assert_eq!(found(&beside(80)), Some(1));
    assert_eq!(refused(&beside(200)), "transcript_too_large");
    assert_eq!(refused(&("t1 u ".to_owned() + &"- ".repeat(200))), "transcript_too_large");
    assert_eq!(refused(&("t1 ".to_owned() + &"- ".repeat(200) + "u u")), "transcript_too_large");
    assert_eq!(Reach { pages: usize::MAX, ..SMALL }.file_bytes(), u64::MAX);
}

#[test]
fn a_rewind_is_looked_for_as_far_back_as_a_result() {
    let rewound = |words: &str| {
        let file = transcript(words);
        let opened = Transcript::open(file.path()).unwrap().unwrap();
        let found = find(&opened, file.path(), SMALL, |record, _| Ok(record.is_note("rewind").then_some(())));
        matches!(found, Ok(Found::Thing(())))
    };
    assert!(rewound(&("w ".to_owned() + &"u ".repeat(11))));
    assert!(!rewound(&("w ".to_owned() + &"u ".repeat(12))));
}

#[test]
fn a_payload_beyond_its_bound_is_no_result_and_hides_none() {
    let large = "x".repeat(usize::try_from(PAYLOAD_BYTES_MAX).unwrap());
    let result = |uuid: &str, parent: Option<&str>, payload: Value| {
        json!({
            "uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "system", "subtype": "turn_result",
            "systemPayload": payload,
        })
    };
    let whole = json!({"promptId": "p", "state": "completed", "endedAt": 1});
    let huge = json!({"promptId": "p", "state": "completed", "endedAt": 2, "x": large});
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{}\n{}\n", result("a", None, whole), result("b", Some("a"), huge))).unwrap();
    let found = find_turn_result(file.path(), Some("p")).unwrap();
    assert_eq!(found.map(|result| result.ended_at), Some(1));
}

#[test]
fn an_error_names_the_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let message = find_turn_result(folder.path(), None).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot read {}: ", folder.path().display())), "{message}");
    assert!(last_rewind_at_ms(folder.path()).is_err());
}
