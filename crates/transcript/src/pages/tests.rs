use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Direction::{Backward, Forward};
use super::*;

/// A transcript in a folder of its own, the records one behind the other.
struct Sample {
    folder: TempDir,
}

impl Sample {
    fn of(records: &[Value]) -> Self {
        let sample = Self { folder: TempDir::new().unwrap() };
        sample.write(&records.iter().map(|record| record.to_string() + "\n").collect::<String>());
        sample
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    fn page(&self, direction: Direction, records_max: usize, cursor: Option<&str>) -> Result<Page, PageError> {
        page(&self.path(), PageRequest { direction, records_max, cursor })
    }

    /// The code of the error that a next page ends with.
    fn refused(&self, direction: Direction, cursor: &str) -> &'static str {
        self.page(direction, 1, Some(cursor)).unwrap_err().code()
    }

    /// All pages: how many records each had, and the texts of all frames as they were met, page by page.
    fn walk(&self, direction: Direction, records_max: usize, bounds: Bounds) -> (Vec<usize>, Vec<String>) {
        let (mut sizes, mut shown) = (Vec::new(), Vec::new());
        let mut cursor: Option<String> = None;
        loop {
            let request = PageRequest { direction, records_max, cursor: cursor.as_deref() };
            let page = read(&self.path(), request, bounds).unwrap();
            sizes.push(page.records);
            let texts = page.frames.iter().map(text);
            match direction {
                Forward => shown.extend(texts),
                Backward => drop(shown.splice(..0, texts)),
            }
            assert!(sizes.len() < 1_000, "pages without end");
            let Some(next) = page.next_cursor else { return (sizes, shown) };
            cursor = Some(next);
        }
    }
}

fn text(frame: &Frame) -> String {
    let update: Value = serde_json::from_str(&frame.update).unwrap();
    update["content"]["text"].as_str().unwrap().to_owned()
}

fn user(uuid: &str, parent: Option<&str>) -> Value {
    json!({
        "uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "user",
        "message": {"role": "user", "parts": [{"text": uuid}]},
    })
}

/// Records `r0`, `r1` and so on, each the parent of the next.
fn chain(count: usize) -> Vec<Value> {
    let link =
        |index: usize| user(&format!("r{index}"), index.checked_sub(1).map(|before| format!("r{before}")).as_deref());
    (0..count).map(link).collect()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("r{index}")).collect()
}

#[test]
fn a_transcript_that_is_not_there_has_an_empty_page() {
    let sample = Sample { folder: TempDir::new().unwrap() };
    for direction in [Backward, Forward] {
        assert_eq!(sample.page(direction, 5, None).unwrap(), Page::default());
    }
    sample.write("garbage\n");
    assert_eq!(sample.page(Backward, 5, None).unwrap(), Page::default());
}

#[test]
fn pages_hold_as_many_records_as_were_asked_for() {
    let sample = Sample::of(&chain(7));
    assert_eq!(sample.walk(Backward, 3, BOUNDS), (vec![3, 3, 1], names(7)));
    assert_eq!(sample.walk(Forward, 3, BOUNDS), (vec![3, 3, 1], names(7)));
    assert_eq!(sample.walk(Backward, 7, BOUNDS), (vec![7], names(7)));
    assert_eq!(sample.walk(Forward, 7, BOUNDS), (vec![7], names(7)));
    assert_eq!(sample.walk(Backward, 0, BOUNDS).0.len(), 7, "at least one");
    let many = Sample::of(&chain(501));
    assert_eq!(many.walk(Backward, 9_999, BOUNDS).0, [500, 1], "at most five hundred");
    assert_eq!(many.walk(Forward, 9_999, BOUNDS).0, [500, 1]);
}

#[test]
fn a_page_has_no_more_than_its_bytes() {
    let mut records = chain(5);
    for record in &mut records[1..4] {
        record["padding"] = json!("x".repeat(1_500_000));
    }
    let sample = Sample::of(&records);
    assert_eq!(sample.walk(Backward, 500, BOUNDS), (vec![3, 2], names(5)));
    assert_eq!(sample.walk(Forward, 500, BOUNDS), (vec![3, 2], names(5)));
}

#[test]
fn a_record_that_fills_no_page_is_an_error_and_not_an_end() {
    let mut records = chain(3);
    records[1]["padding"] = json!("x".repeat(4_200_000));
    let sample = Sample::of(&records);
    for direction in [Backward, Forward] {
        let first = sample.page(direction, 500, None).unwrap();
        assert_eq!(first.records, 1);
        assert_eq!(sample.refused(direction, &first.next_cursor.unwrap()), "transcript_page_too_large");
    }
}

#[test]
fn a_record_whose_updates_fill_no_page_keeps_its_place() {
    let mut records = chain(3);
    records[1]["message"]["parts"] = json!(vec![json!({"text": "x"}); 100_000]);
    let sample = Sample::of(&records);
    for direction in [Backward, Forward] {
        let (sizes, shown) = sample.walk(direction, 500, BOUNDS);
        assert_eq!((sizes.len(), shown.len()), (2, 3), "{sizes:?}");
        assert!(shown[1].contains("left out"), "{}", shown[1]);
    }
}

#[test]
fn a_large_file_is_paged_back_and_not_forward() {
    let sample = Sample::of(&chain(2));
    let mut record = user("large", Some("r1"));
    record["padding"] = json!("x".repeat(usize::try_from(SNAPSHOT_BYTES_MAX).unwrap()));
    let whole = Sample::of(&[chain(2), vec![record, user("last", Some("large"))]].concat());
    let refused = whole.page(Forward, 1, None).unwrap_err();
    assert!(matches!(refused, PageError::OversizedSnapshot { bytes_max: SNAPSHOT_BYTES_MAX, .. }), "{refused}");
    assert_eq!(whole.page(Backward, 1, None).unwrap().records, 1);
    assert!(sample.page(Forward, 1, None).is_ok());
}

#[test]
fn what_is_appended_between_two_pages_is_not_seen() {
    for direction in [Backward, Forward] {
        let sample = Sample::of(&chain(4));
        let first = sample.page(direction, 2, None).unwrap();
        let more = std::fs::read_to_string(sample.path()).unwrap() + &user("r4", Some("r1")).to_string();
        sample.write(&more);
        let second = sample.page(direction, 9, first.next_cursor.as_deref()).unwrap();
        let expected = if direction == Forward { ["r2", "r3"] } else { ["r0", "r1"] };
        assert_eq!(second.frames.iter().map(text).collect::<Vec<_>>(), expected);
        assert!(!second.has_more());
    }
}

#[test]
fn a_file_that_is_not_the_same_is_no_snapshot() {
    let unavailable = "transcript_snapshot_unavailable";
    for direction in [Backward, Forward] {
        let sample = Sample::of(&chain(4));
        let cursor = sample.page(direction, 2, None).unwrap().next_cursor.unwrap();
        let whole = std::fs::read_to_string(sample.path()).unwrap();
        sample.write(&whole[..whole.len() - 1]);
        assert_eq!(sample.refused(direction, &cursor), unavailable, "shorter");
        sample.write(&whole.replace("r3", "x3"));
        assert_eq!(sample.refused(direction, &cursor), unavailable, "as long, and another end");
        sample.write(&whole);
        assert!(sample.page(direction, 1, Some(&cursor)).is_ok());
        let copy = sample.folder.path().join("copy");
        std::fs::write(&copy, &whole).unwrap();
        std::fs::rename(&copy, sample.path()).unwrap();
        assert_eq!(sample.refused(direction, &cursor), unavailable, "another file");
        std::fs::remove_file(sample.path()).unwrap();
        assert_eq!(sample.refused(direction, &cursor), unavailable, "gone");
    }
}

#[test]
fn two_sessions_are_no_snapshot() {
    let mut records = chain(4);
    records[1]["sessionId"] = json!("other");
    let sample = Sample::of(&records);
    for direction in [Backward, Forward] {
        assert_eq!(sample.page(direction, 9, None).unwrap_err().code(), "transcript_snapshot_unavailable");
    }
}

#[test]
fn a_cursor_is_for_one_way_and_for_nothing_else() {
    let sample = Sample::of(&chain(4));
    for (direction, other) in [(Backward, Forward), (Forward, Backward)] {
        let cursor = sample.page(direction, 2, None).unwrap().next_cursor.unwrap();
        assert_eq!(sample.refused(other, &cursor), "invalid_transcript_cursor");
    }
    for text in ["", "1", "nonsense", "\u{1F9EA}"] {
        assert_eq!(sample.refused(Backward, text), "invalid_transcript_cursor");
    }
    // One that is well formed, and points to where no record is.
    let transcript = Transcript::open(&sample.path()).unwrap().unwrap();
    let made_up = |place| Cursor {
        identity: transcript.identity().unwrap(),
        length: transcript.len_bytes(),
        mark: transcript.mark().unwrap(),
        place,
    };
    let refused = |direction, place| sample.refused(direction, &made_up(place).to_text());
    assert_eq!(refused(Backward, Place::Given(99)), "invalid_transcript_cursor");
    assert_eq!(refused(Backward, Place::Behind { child: 1..9, from: 0 }), "invalid_transcript_cursor");
    assert_eq!(refused(Forward, Place::After(1)), "transcript_snapshot_unavailable");
}

#[test]
fn what_cannot_be_read_is_an_error_of_its_own() {
    let folder = TempDir::new().unwrap();
    let refused = page(folder.path(), PageRequest { direction: Backward, records_max: 1, cursor: None }).unwrap_err();
    assert_eq!(refused.code(), "transcript_unreadable");
    assert!(refused.to_string().contains(folder.path().to_str().unwrap()), "{refused}");
}

#[test]
fn a_lost_beginning_is_said_on_the_page_that_comes_to_it() {
    let sample = Sample::of(&chain(5)[1..]);
    for records_max in [1, 2, 3, 4, 5] {
        for direction in [Backward, Forward] {
            let (_, shown) = sample.walk(direction, records_max, BOUNDS);
            assert!(shown[0].starts_with("⚠️ History gap"), "{shown:?}");
            assert_eq!(shown[1..], ["r1", "r2", "r3", "r4"]);
        }
    }
}

#[test]
fn a_page_that_looks_through_much_beside_the_branch_ends_early() {
    let mut records = chain(2);
    records.extend((0..50).map(|index| user(&format!("beside{index}"), Some("r1"))));
    records.push(user("r2", Some("r1")));
    let sample = Sample::of(&records);
    let bounds = Bounds { window_bytes: 0, reach_bytes: 2_000 };
    let (sizes, shown) = sample.walk(Backward, 500, bounds);
    assert_eq!(shown, names(3));
    assert!(sizes.contains(&0) && sizes.len() > 3, "{sizes:?}");
    let lost = Sample::of(&[&chain(1)[..], &vec![json!({"no": "record"}); 500]].concat());
    let request = PageRequest { direction: Backward, records_max: 1, cursor: None };
    let refused = read(&lost.path(), request, bounds).unwrap_err();
    assert_eq!(refused.code(), "transcript_too_large");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any number of records on a page, any window and any reach: the pages together are the branch.
    #[test]
    fn pages_together_are_the_branch(
        backs in prop::collection::vec(1..4_usize, 1..40),
        glue in prop::collection::vec(prop::sample::select(vec!["\n", "", "\r\n", "\n{\"torn\n", "\n\n"]), 40),
        records_max in 1..9_usize,
        window_bytes in 0..3_000_u64,
        reach_bytes in 600..9_000_u64,
    ) {
        let mut bytes = String::new();
        for (index, (back, glue)) in backs.iter().zip(&glue).enumerate() {
            let parent = index.checked_sub(*back).map(|before| format!("r{before}"));
            bytes += &user(&format!("r{index}"), parent.as_deref()).to_string();
            bytes += glue;
        }
        let mut expected = Vec::new();
        let mut at = Some(backs.len() - 1);
        while let Some(index) = at {
            expected.insert(0, format!("r{index}"));
            at = index.checked_sub(backs[index]);
        }
        let sample = Sample { folder: TempDir::new().unwrap() };
        sample.write(&bytes);
        let bounds = Bounds { window_bytes, reach_bytes };
        prop_assert_eq!(sample.walk(Backward, records_max, bounds).1, expected.clone(), "{}", bytes);
        prop_assert_eq!(sample.walk(Forward, records_max, bounds).1, expected, "{}", bytes);
    }
}

/// A replay does not show it; a page does, as the peer's own pages were seen to (wire, section 13.8).
#[test]
fn a_page_shows_how_long_a_call_of_the_model_took() {
    let note = |uuid: &str, parent: &str, name: &str| {
        let event = json!({"event.name": name, "event.timestamp": "2026-11-29T18:33:09.322Z", "duration_ms": 399, "ttft_ms": 376,
            "response_id": "c-1", "prompt_id": "s########1", "model": "fake", "response_text": "said", "subagent_id": null});
        json!({"uuid": uuid, "parentUuid": parent, "sessionId": "s", "type": "system", "subtype": "ui_telemetry",
            "systemPayload": {"uiEvent": event}})
    };
    let records =
        [user("r0", None), note("r1", "r0", "qwen-code.api_response"), note("r2", "r1", "qwen-code.tool_call")];
    let sample = Sample::of(&records);
    let page = sample.page(Backward, 10, None).unwrap();
    let updates: Vec<Value> = page.frames.iter().map(|frame| serde_json::from_str(&frame.update).unwrap()).collect();
    assert_eq!((page.records, updates.len()), (3, 2));
    assert_eq!(
        (&updates[1]["sessionUpdate"], &updates[1]["content"]["text"]),
        (&json!("agent_message_chunk"), &json!(""))
    );
    let timing = json!({"kind": "request", "status": "ok", "durationMs": 399, "ttftMs": 376, "responseId": "c-1",
        "promptId": "s########1", "model": "fake", "startedAt": 1_795_977_188_923_u64});
    assert_eq!(updates[1]["_meta"]["timing"], timing);
    assert_eq!(crate::display::replay(&sample.path(), 1_000_000).unwrap().frames.len(), 1);
}
