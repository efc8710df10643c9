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
