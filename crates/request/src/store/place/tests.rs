#[cfg(target_os = "linux")]
use std::cell::Cell;

use super::*;
#[cfg(target_os = "linux")]
use crate::store::{OpenError, Options, Store, export, recover, reset};

#[cfg(target_os = "linux")]
thread_local! {
    /// The kind of file system on which every folder lies, where a test says that.
    pub(super) static KIND: Cell<Option<i128>> = const { Cell::new(None) };
}

#[test]
fn what_was_set_aside_and_is_put_back_lies_where_it_lay() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path());
    for name in &TRIO[..2] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let aside = place.set_aside(7).unwrap();
    assert!(!place.file().exists() && place.aside().unwrap() == std::slice::from_ref(&aside));
    place.put_back(&aside).unwrap();
    assert_eq!(place.aside().unwrap(), Vec::<PathBuf>::new());
    for name in &TRIO[..2] {
        assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), *name);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn file_systems_of_other_machines_are_known_by_their_numbers_and_those_of_this_one_are_none() {
    // NFS, CIFS, Ceph, 9p, Lustre.
    for kind in [0x6969, 0xff53_4d42, 0x00c3_6400, 0x0102_1997, 0x0bd0_0bd0] {
        assert!(is_remote_kind(kind), "{kind:x}");
    }
    // ext4, XFS, btrfs, tmpfs, overlayfs.
    for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
        assert!(!is_remote_kind(kind), "{kind:x}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_done_with_a_store_on_the_disk_of_another_machine() {
    let scratch = tempfile::tempdir().unwrap();
    let (folder, target) = (scratch.path().join("turnd-requests"), scratch.path().join("moved.db"));
    let opened = || Store::open(&folder, Options { ballast_bytes: 0, ..Options::default() }, 7).map(drop);
    KIND.set(Some(0x6969));
    let told =
        [opened(), recover(&folder, 0, 7).map(drop), reset(&folder, 0, 7).map(drop), export(&folder, &target, 7)];
    assert!(told.iter().all(|told| matches!(told, Err(OpenError::Remote))), "{told:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "not even a lock");
    KIND.set(Some(0xef53));
    opened().unwrap();
}
