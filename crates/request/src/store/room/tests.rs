use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn scenario_89_what_is_written_to_see_whether_there_is_room_is_for_its_owner_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::new(scratch.path());
    take(&place).unwrap();
    let mode = std::fs::metadata(place.room()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(is_there(&place) && !place.room().exists());
}
