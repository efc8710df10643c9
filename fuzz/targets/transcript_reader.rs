//! Whatever lies in a transcript's place: the walk along its branch with any window, what is looked up on it, what is shown
//! of it, and what a writer makes of it.
#![no_main]

use std::path::Path;

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::json;
use transcript::{Body, Durability, Identity, Record, Transcript, Writer, display, find_turn_result, tail_uuid};
use turnd_fuzz::plain::PlainFile;
use turnd_fuzz::{Trial, mutate, path, read, write};

/// Bounds of a replay that are tried, in bytes: a few updates, all.
const REPLAYS_BYTES_MAX: [usize; 2] = [1_000, usize::MAX];

fuzz_target!(|bytes: &[u8]| {
    let path = path("s.jsonl");
    write(&path, bytes);
    let plain = PlainFile::read(bytes);
    let branch = check_branches(&path, Trial::of(bytes).windows, plain.as_ref());
    check_look_ups(&path, &branch, plain.as_ref());
    check_replays(&path);
    check_appending(bytes, &path, &branch);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

/// The branch with this window, newest record first, and whether a parent is missing where it ends.
fn walk(transcript: &Transcript, window_bytes: u64) -> (Vec<Record>, bool) {
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
    (records, branch.is_cut())
}

/// Each record is the parent of the one behind it; the whole window finds what a plain reader finds, and so does every
/// other one in a file that is tame.
fn check_branches(path: &Path, windows: [u64; 2], plain: Option<&PlainFile>) -> Vec<Record> {
    let Some(transcript) = Transcript::open(path).expect("a regular file is opened") else { return Vec::new() };
    let (whole, is_cut) = walk(&transcript, u64::MAX);
    for window_bytes in windows {
        let (records, is_cut_too) = walk(&transcript, window_bytes);
        assert!(records.windows(2).all(|pair| pair[0].parent.as_ref() == Some(&pair[1].uuid)));
        assert!(records.iter().all(Record::is_on_branch));
        assert_eq!(records.first().map(|leaf| &leaf.uuid), whole.first().map(|leaf| &leaf.uuid));
        if plain.is_some_and(PlainFile::is_tame) {
            assert_eq!((&records, is_cut_too), (&whole, is_cut), "window of {window_bytes}");
        }
    }
    if let Some(plain) = plain {
        let expected = plain.branch();
        let is_same = expected.len() == whole.len() && expected.iter().zip(&whole).all(|(plain, read)| plain.is(read));
        assert!(is_same, "{expected:#?} {whole:#?}");
        assert_eq!(plain.is_cut(), is_cut);
        let first = transcript.first_record().expect("a regular file is read");
        assert_eq!(plain.first().map(|first| &first.uuid), first.as_ref().map(|first| &first.uuid));
    }
    whole
}

fn check_look_ups(path: &Path, branch: &[Record], plain: Option<&PlainFile>) {
    transcript::last_rewind_at_ms(path).expect("a regular file is read");
    if let Some(newest) = find_turn_result(path, None).expect("a regular file is read") {
        let same = find_turn_result(path, Some(&newest.prompt_id)).expect("a regular file is read");
        assert_eq!(same, Some(newest), "the newest of all is the newest of its prompt");
    }
    let unheard_of = find_turn_result(path, Some("a prompt that nobody sent")).expect("a regular file is read");
    assert!(unheard_of.is_none_or(|result| result.prompt_id == "a prompt that nobody sent"));
    let tail = tail_uuid(path);
    if plain.is_some() {
        assert_eq!(PlainFile::tail_uuid(&read(path)), tail);
    }
    if let Some(leaf) = branch.first() {
        let check = transcript::check(path, &leaf.session_id, leaf.cwd.as_deref().unwrap_or("/").as_ref());
        assert!(!matches!(check, Err(transcript::Absent::NoFile | transcript::Absent::Unreadable(_))));
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
    let (after, _) = walk(&transcript, u64::MAX);
    let ours: Vec<_> = after.iter().take(2).rev().map(|record| record.uuid.clone()).collect();
    assert_eq!(ours, uuids);
    assert_eq!(after[2..], *before);
    assert_eq!(tail_uuid(path), uuids.last().cloned());
}
