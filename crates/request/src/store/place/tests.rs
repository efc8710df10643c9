use super::*;

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
