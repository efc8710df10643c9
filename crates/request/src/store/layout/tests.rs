//! Every file of a version has one of the lists that are known, whatever became of it.

use std::path::Path;

use super::*;
use crate::store::place::Place;
use crate::store::schema::{Beginning, VERSION, copy, draft};

#[test]
fn a_new_file_a_kept_one_and_a_copy_have_a_list_that_is_known_and_their_pages_fit_only_that_one() {
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::new(scratch.path());
    let [made, copied] = Layout::known(VERSION).unwrap();
    assert!(made != copied);
    let new = draft(&place, &Beginning::fresh(5)).unwrap();
    crate::store::connection::checkpoint(&new).unwrap();
    let size: usize = new.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    assert_eq!(size, PAGE_BYTES);
    copy(&new, &scratch.path().join("copy"), &place).unwrap();
    let again = Connection::open(scratch.path().join("copy")).unwrap();
    copy(&again, &scratch.path().join("again"), &place).unwrap();
    let kept = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests").join(name);
    for (path, version, is_copy) in [
        (place.draft(), VERSION, false),
        (kept("v2.db"), 2, false),
        (kept("v1.db"), 1, false),
        (scratch.path().join("copy"), VERSION, true),
        (scratch.path().join("again"), VERSION, true),
    ] {
        let bytes = scratch.path().join("bytes");
        std::fs::copy(&path, &bytes).unwrap();
        let [made, copied] = Layout::known(version).unwrap();
        let (expected, other) = if is_copy { (copied, made) } else { (made, copied) };
        let file = File::open(&bytes).unwrap();
        assert!(expected.fits(&file).unwrap() && !other.fits(&file).unwrap(), "{}", path.display());
        assert_eq!(Layout::of(&Connection::open(&bytes).unwrap()).unwrap(), expected, "{}", path.display());
    }
}

#[test]
fn what_was_added_or_removed_by_hand_is_another_list_and_pages_that_moved_do_not_fit() {
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::new(scratch.path());
    let [made, copied] = Layout::known(VERSION).unwrap();
    for (sql, fits) in [
        ("CREATE INDEX mine ON request (owner)", true),
        // The last page at which something began takes the free place.
        ("DROP INDEX request_open", false),
        ("DROP TABLE consumer", false),
    ] {
        let conn = draft(&place, &Beginning::fresh(5)).unwrap();
        conn.execute_batch(&format!("PRAGMA foreign_keys = 0; {sql}")).unwrap();
        crate::store::connection::checkpoint(&conn).unwrap();
        let found = Layout::of(&conn).unwrap();
        assert!(found != made && found != copied, "{sql}");
        assert_eq!(made.fits(&File::open(place.draft()).unwrap()).unwrap(), fits, "{sql}");
    }
}

#[test]
fn what_is_no_store_fits_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("x");
    for bytes in [vec![], vec![0; 200_000], vec![0xa5; 200_000], vec![0x0d; 200_000], vec![0x0a; 200_000]] {
        std::fs::write(&path, bytes).unwrap();
        for layout in Layout::known(VERSION).unwrap() {
            assert!(!layout.fits(&File::open(&path).unwrap()).unwrap());
        }
    }
}
