//! Whatever lies in a transcript's place: the walk along its branch with any window, whose it is, what is looked up on it,
//! what is shown of it, and what a writer makes of it.
#![no_main]

use std::path::Path;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::json;
use transcript::{
    Absent, Body, Durability, Identity, Record, Transcript, Writer, display, find_turn_result, last_rewind_at_ms,
    tail_uuid,
};
use turnd_fuzz::plain::PlainFile;
use turnd_fuzz::{Trial, mutate, path, read, write};

/// Bounds of a replay that are tried, in bytes: a few updates, all.
const REPLAYS_BYTES_MAX: [usize; 2] = [1_000, usize::MAX];

fuzz_target!(|bytes: &[u8]| {
    let path = path("s.jsonl");
    write(&path, bytes);
    let plain = PlainFile::read(bytes);
    let windows = Trial::of(bytes).windows;
    let branch = check_branches(&path, windows, plain.as_ref());
    check_undisputed(&path, windows, plain.as_ref());
    check_origin(&path, plain.as_ref());
    check_look_ups(&path, plain.as_ref());
    check_replays(&path);
    check_appending(bytes, &path, &branch);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

/// What a walk along the branch gives.
#[derive(Debug, PartialEq)]
struct Walk {
    /// Newest record first.
    records: Vec<Record>,
    /// Whether a parent is missing where it ends.
    is_cut: bool,
    /// The newest prompt before such a cut, by its id, and what it is stamped with.
    prompt_before_cut: Option<(String, Option<String>)>,
    is_mixed: bool,
    is_disputed: bool,
}

impl Walk {
    fn along(transcript: &Transcript, window_bytes: u64) -> Self {
        let mut branch = transcript.branch(window_bytes).expect("a regular file is read");
        let mut records = Vec::new();
        while let Some(wanted) = branch.wanted().map(str::to_owned) {
            match branch.next_record().expect("a regular file is read") {
                Some(record) => {
                    assert_eq!(record.uuid, wanted);
                    records.push(record);
                }
                None => assert!(branch.wanted().is_none(), "a walk that is over stays over"),
            }
        }
        assert!(records.windows(2).all(|pair| pair[0].parent.as_ref() == Some(&pair[1].uuid)));
        assert!(records.iter().all(Record::is_on_branch));
        let before_cut = branch.prompt_before_cut();
        assert!(before_cut.is_none_or(Record::is_real_prompt));
        Self {
            is_cut: branch.is_cut(),
            prompt_before_cut: before_cut.map(|prompt| (prompt.uuid.clone(), prompt.prompt_id.clone())),
            is_mixed: branch.is_mixed(),
            is_disputed: branch.is_disputed(),
            records,
        }
    }
}

/// Each record is the parent of the one behind it; the whole window finds what a plain reader finds, and so does every
/// other one in a file that is tame. The branch, newest record first.
fn check_branches(path: &Path, windows: [u64; 2], plain: Option<&PlainFile>) -> Vec<Record> {
    let Some(transcript) = Transcript::open(path).expect("a regular file is opened") else { return Vec::new() };
    let whole = check_windows(&transcript, windows, plain);
    if let Some(plain) = plain {
        assert_eq!(plain.is_of_one_session(), !whole.is_mixed);
        assert_eq!(plain.is_disputed(), whole.is_disputed);
        let first = transcript.first_record().expect("a regular file is read");
        assert_eq!(plain.first().map(|first| &first.uuid), first.as_ref().map(|first| &first.uuid));
    }
    whole.records
}

/// The same of the file as a reader sees it who does not find disputed records.
fn check_undisputed(path: &Path, windows: [u64; 2], plain: Option<&PlainFile>) {
    let Some(transcript) = Transcript::open(path).expect("a regular file is opened") else { return };
    let plain = plain.cloned().map(PlainFile::leaving_out_disputed);
    let whole = check_windows(&transcript.leaving_out_disputed(), windows, plain.as_ref());
    assert!(whole.records.iter().all(|record| !record.is_disputed));
}

fn check_windows(transcript: &Transcript, windows: [u64; 2], plain: Option<&PlainFile>) -> Walk {
    let whole = Walk::along(transcript, u64::MAX);
    for window_bytes in windows {
        let bounded = Walk::along(transcript, window_bytes);
        assert_eq!(bounded.records.first().map(|leaf| &leaf.uuid), whole.records.first().map(|leaf| &leaf.uuid));
        if plain.is_some_and(PlainFile::is_tame) {
            // What lies where nothing was read is disputed by nobody.
            let bounded = Walk { is_disputed: whole.is_disputed, ..bounded };
            assert_eq!(bounded, whole, "window of {window_bytes}");
        }
    }
    if let Some(plain) = plain {
        let expected = plain.branch();
        let is_same = expected.len() == whole.records.len()
            && expected.iter().zip(&whole.records).all(|(plain, read)| plain.is_read_as(read));
        assert!(is_same, "{expected:#?} {whole:#?}");
        assert!(whole.records.iter().all(|read| plain.allows_time_of(read)), "{plain:#?} {whole:#?}");
        assert_eq!(plain.is_cut(), whole.is_cut);
    }
    whole
}

/// It loads where its first object says that it was begun, if that says so and there is a record, and nowhere else.
fn check_origin(path: &Path, plain: Option<&PlainFile>) {
    let Some(plain) = plain else { return };
    let head = plain.head.clone().unwrap_or_default();
    let (session_id, cwd) = (head.session_id.as_deref(), head.cwd.as_deref());
    let opened = |session_id: &str, cwd: &str| transcript::open(path, session_id, cwd.as_ref());
    let is_begun_here = session_id.is_some() && cwd.is_some() && plain.first().is_some();
    let (session_id, cwd) = (session_id.unwrap_or("s1"), cwd.unwrap_or("/ws"));
    assert_eq!(opened(session_id, cwd).is_ok(), is_begun_here);
    assert!(opened(session_id, "/somewhere else").is_err());
    assert!(opened("a session that nobody began", cwd).is_err());
    let checked = transcript::check(path, session_id, cwd.as_ref());
    assert_eq!(checked.is_ok(), is_begun_here && plain.records.iter().all(|record| record.session_id == session_id));
    assert!(!matches!(checked, Err(Absent::Unreadable(_))));
}

/// What is looked up is one session's, or it is said that it is not.
fn check_look_ups(path: &Path, plain: Option<&PlainFile>) {
    let tail = tail_uuid(path);
    if plain.is_some() {
        assert_eq!(PlainFile::tail_uuid(&read(path)), tail);
    }
    let newest = find_turn_result(path, None);
    let rewind = last_rewind_at_ms(path);
    if let Some(plain) = plain {
        assert_eq!((newest.is_ok(), rewind.is_ok()), (plain.is_of_one_session(), plain.is_of_one_session()));
    }
    let newest = match newest {
        Ok(newest) => newest,
        Err(error) => return assert_eq!(error.code(), "transcript_snapshot_unavailable"),
    };
    let of_prompt = |prompt_id: &str| find_turn_result(path, Some(prompt_id)).expect("one session's file is read");
    if let Some(newest) = &newest {
        assert_eq!(
            of_prompt(&newest.prompt_id).as_ref(),
            Some(newest),
            "the newest of all is the newest of its prompt"
        );
    }
    assert_eq!(of_prompt("a prompt that nobody sent"), None);
    let Some(plain) = plain else { return };
    assert_eq!(newest, plain.turn_result(None));
    for prompt_id in plain.records.iter().filter_map(|record| record.payload["promptId"].as_str()) {
        assert_eq!(of_prompt(prompt_id), plain.turn_result(Some(prompt_id)));
    }
}

/// What is shown fits its bound, and what is shown in less room is the end of what is shown in more.
fn check_replays(path: &Path) {
    let mut before = usize::MAX;
    for bytes_max in REPLAYS_BYTES_MAX.into_iter().rev() {
        let replay = display::replay(path, bytes_max).expect("a regular file is read");
        let bytes: usize = replay.frames.iter().map(|frame| frame.update.to_string().len()).sum();
        assert!(bytes <= bytes_max, "{bytes} bytes in {bytes_max}");
        assert!(replay.frames.len() <= before);
        before = replay.frames.len();
    }
}

/// Whatever is there stays, and what is appended is the end of the branch.
fn check_appending(bytes: &[u8], path: &Path, before: &[Record]) {
    let session_id = before.first().map_or("s1", |leaf| &leaf.session_id).to_owned();
    let identity = Identity { session_id, cwd: "/ws".to_owned(), version: "0".to_owned() };
    let mut writer = Writer::open(path, identity, Durability::Process).expect("a regular file is opened");
    assert_eq!(writer.parent(), before.first().map(|leaf| leaf.uuid.as_str()));
    let asked = Body::User { prompt_id: Some("p1".to_owned()), parts: vec![json!({"text": "q"})] };
    let said = Body::Assistant { model: None, parts: vec![json!({"text": "a"})] };
    let uuids = writer.append_all(&[(1, asked), (2, said)]).expect("there is room");
    let written = read(path);
    assert!(written.starts_with(bytes) && written.ends_with(b"\n"));
    let transcript = Transcript::open(path).expect("a regular file is opened").expect("something was written");
    let after = Walk::along(&transcript, u64::MAX).records;
    let ours: Vec<_> = after.iter().take(2).rev().map(|record| record.uuid.clone()).collect();
    assert_eq!(ours, uuids);
    assert_eq!(after[2..], *before);
    assert_eq!(tail_uuid(path), uuids.last().cloned());
}
