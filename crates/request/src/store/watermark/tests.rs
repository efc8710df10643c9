use super::*;
use crate::Hash;

fn meta(commit_no: u64, head_seq: u64) -> Meta {
    Meta {
        stream_id: "stream".into(),
        daemon_epoch: 3,
        head_seq,
        head_chain: Hash([0; 32]),
        pruned_through: 0,
        pruned_chain: Hash([0; 32]),
        tombstone_floor: 0,
        clean_shutdown: false,
        last_wall_ms: 0,
        commit_no,
        closed_at: None,
    }
}

#[test]
fn a_file_that_says_less_than_was_noted_has_lost_something_and_one_that_says_more_has_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watermark");
    assert!(Levels::read(&path).missing(&meta(0, 0)).is_none(), "nothing is noted");
    let mut watermark = Watermark::begin(&path, &meta(5, 2)).unwrap();
    watermark.note(6, None, 0);
    watermark.note(7, Some(3), 0);
    let levels = Levels::read(&path);
    assert!(levels.missing(&meta(6, 2)).is_some());
    assert!(levels.missing(&meta(7, 3)).is_none());
    assert!(levels.missing(&meta(8, 3)).is_none(), "the note is not flushed, so that it may be behind");
    assert!(levels.missing(&Meta { stream_id: "other".into(), ..meta(1, 0) }).is_none(), "another store lies there");
    assert_eq!(levels.daemon_epoch(), 3);
}

#[test]
fn no_number_is_above_the_bound_that_is_on_disk_before_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watermark");
    assert_eq!(Levels::read(&path).bound(), None);
    let mut watermark = Watermark::begin(&path, &meta(5, 10)).unwrap();
    let bound = || Levels::read(&path).bound().unwrap();
    assert_eq!(bound(), 10 + NUMBERS_STEP);
    watermark.reserve(bound()).unwrap();
    assert_eq!(bound(), 10 + NUMBERS_STEP, "there is room");
    watermark.reserve(bound() + 1).unwrap();
    assert_eq!(bound(), 11 + 2 * NUMBERS_STEP);
    // Whichever slot is lost, the other one says it too once a commit was noted.
    watermark.note(6, Some(11 + NUMBERS_STEP), 0);
    for slot in 0..SLOTS {
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[slot * SLOT_BYTES + 40] ^= 1;
        std::fs::write(folder.path().join("torn"), bytes).unwrap();
        assert_eq!(Levels::read(&folder.path().join("torn")).bound(), Some(11 + 2 * NUMBERS_STEP), "slot {slot}");
    }
    watermark.end();
    assert_eq!(bound(), 11 + NUMBERS_STEP, "closed in order it is exact");
}

#[test]
fn what_is_no_note_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watermark");
    for bytes in ["", "{}", "{} 0123456789abcdef", &" ".repeat(2 * SLOT_BYTES), &"\n".repeat(5_000)] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Levels::read(&path).bound(), None);
    }
}
