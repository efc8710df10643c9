//! The end of the model's history: the same with any window, and after an append what it was with one entry more.
#![no_main]

use std::path::Path;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::json;
use transcript::{
    Body, Classified, Durability, HISTORY_TAIL_ENTRIES, History, HistoryTail, Identity, Interruption, Transcript,
    Unreadable, Writer, classify,
};
use turnd_fuzz::plain::PlainFile;
use turnd_fuzz::{Trial, mutate, path, write};

fuzz_target!(|input: &[u8]| {
    let trial = Trial::of(input);
    let bytes = &trial.transcript(input);
    let path = path("s.jsonl");
    write(&path, bytes);
    let Some(transcript) = Transcript::open(&path).expect("a regular file is opened") else { return };
    let whole = history(&transcript, u64::MAX, true);
    assert_eq!(history(&transcript, u64::MAX, false), whole, "what is read beyond the end of the history is not in it");
    let is_tame = PlainFile::read(bytes).is_some_and(|plain| plain.is_tame());
    for window_bytes in trial.windows {
        let bounded = history(&transcript, window_bytes, true);
        assert!(!is_tame || bounded == whole, "window of {window_bytes}: {bounded:?} {whole:?}");
    }
    let Ok(before) = whole else { return };
    check_classified(&transcript, &before);
    for (index, body) in bodies().into_iter().enumerate() {
        write(&path, bytes);
        check_appended(&path, &before, index, &body);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

/// The end of the history. `stops` is whether the walk ends where nothing further back can change it.
fn history(transcript: &Transcript, window_bytes: u64, stops: bool) -> Result<History, Unreadable> {
    let mut branch = transcript.branch(window_bytes).expect("a regular file is read");
    let mut history = HistoryTail::default();
    while !(stops && history.is_complete()) {
        match branch.next_record().expect("a regular file is read") {
            Some(record) => history.push(&record),
            None => {
                history.reach_the_beginning();
                break;
            }
        }
    }
    assert_eq!(history.finish(), history.finish());
    history.finish()
}

/// With the parts or without them, the end of the history is called the same.
fn check_classified(transcript: &Transcript, history: &History) {
    assert!(history.entries.len() <= HISTORY_TAIL_ENTRIES && history.closed_by_goal <= history.entries.len());
    let parts = transcript.classified(&history.entries).expect("a regular file is read");
    let is_same = match (classify(&history.entries), parts) {
        (Interruption::None, Classified::None) => true,
        (Interruption::Prompt { entries }, Classified::Prompt { .. }) => !entries.is_empty(),
        (Interruption::Turn { calls }, Classified::Turn { calls: named }) => {
            !calls.is_empty() && calls.iter().map(|call| (call.call_id, call.name)).eq(named.iter().map(both))
        }
        _ => false,
    };
    assert!(is_same);
}

fn both((call_id, name): &(String, String)) -> (&str, &str) {
    (call_id, name)
}

/// An answer, a prompt and a call: each leaves the history in its own way.
fn bodies() -> [Body; 3] {
    let said = |part| Body::Assistant { model: None, parts: vec![part] };
    [
        said(json!({"text": "a"})),
        Body::User { prompt_id: None, parts: vec![json!({"text": "q"})] },
        said(json!({"functionCall": {"id": "a call that nobody made", "name": "f"}})),
    ]
}

fn check_appended(path: &Path, before: &History, index: usize, body: &Body) {
    let identity = Identity { session_id: "s1".to_owned(), cwd: "/ws".to_owned(), version: "0".to_owned() };
    let mut writer = Writer::open(path, identity, Durability::Process).expect("a regular file is opened");
    writer.append(1, body).expect("there is room");
    let transcript = Transcript::open(path).expect("a regular file is opened").expect("something was written");
    let after = history(&transcript, u64::MAX, true).expect("what was readable stays so");
    let (last, entries) = after.entries.split_last().expect("something was said");
    assert!(before.entries.ends_with(entries));
    assert_eq!(entries.len(), before.entries.len().min(HISTORY_TAIL_ENTRIES - 1));
    // Of a history without its beginning the oldest entry at hand may have held what kept a goal's end from closing it.
    let forgotten = before.entries.len() - entries.len();
    let is_closed_as_before = after.closed_by_goal == before.closed_by_goal.saturating_sub(forgotten);
    assert!(is_closed_as_before || before.closed_by_goal == 0 && before.entries.len() == HISTORY_TAIL_ENTRIES);
    let is_left_so = match (index, classify(&after.entries)) {
        (0, Interruption::None) => true,
        (1, Interruption::Prompt { entries }) => entries.last() == Some(last),
        (2, Interruption::Turn { calls }) => calls.len() == 1 && calls[0].name == "f",
        _ => false,
    };
    assert!(is_left_so);
}
