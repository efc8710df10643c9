//! `turnd request store`: what is done with the files of a daemon that is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use request::store::{Options, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use transcript::layout;

use crate::commands::{stdout, turnd};
use crate::requests::stderr;

/// A store of a workspace, and the commands that look after it.
struct Place {
    base: TempDir,
}

impl Place {
    /// A store that a daemon made and closed.
    fn new() -> Self {
        let place = Self { base: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.path("workspace")).unwrap();
        place.open().close(1_000).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().canonicalize().unwrap().join(name)
    }

    fn folder(&self) -> PathBuf {
        layout::chats_dir(&self.path("store"), &self.path("workspace")).with_file_name("turnd-requests")
    }

    fn database(&self) -> PathBuf {
        self.folder().join("requests.db")
    }

    fn open(&self) -> Store {
        Store::open(&self.folder(), Options::default(), 1_000).unwrap().0
    }

    fn run(&self, words: &[&str]) -> Output {
        let (store, workspace) = (self.path("store"), self.path("workspace"));
        let place = ["--store", store.to_str().unwrap(), "--workspace", workspace.to_str().unwrap()];
        turnd(&[&["request", "store"], words, &place].concat())
    }

    /// Runs it, and demands a status; what it printed.
    fn demand(&self, words: &[&str], status: i32) -> Value {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {}{}", stdout(&output), stderr(&output));
        serde_json::from_str(&stdout(&output)).unwrap_or(Value::Null)
    }
}

fn spoil(database: &Path) {
    let mut bytes = fs::read(database).unwrap();
    for byte in &mut bytes[4_096..12_288] {
        *byte = !*byte;
    }
    fs::write(database, bytes).unwrap();
}

#[test]
fn a_sound_store_is_found_sound_and_left_alone() {
    let place = Place::new();
    let before = fs::read(place.database()).unwrap();
    let report = place.demand(&["verify"], 0);
    assert_eq!((&report["sound"], &report["head"], &report["requests"]), (&true.into(), &0.into(), &0.into()));
    assert_eq!(report["notes"], serde_json::json!([]));
    assert!(stderr(&place.run(&["recover"])).contains("--anyway"));
    place.demand(&["recover"], 5);
    place.demand(&["recover", "--empty"], 5);
    assert_eq!(fs::read(place.database()).unwrap(), before);
}

#[test]
fn a_store_beside_which_nothing_says_how_far_it_got_is_sound_and_that_is_said() {
    let place = Place::new();
    fs::remove_file(place.folder().join("requests.watermark")).unwrap();
    let report = place.demand(&["verify"], 0);
    assert_eq!(report["sound"], true);
    assert!(report["notes"][0].as_str().unwrap().contains("how far it got"), "{report}");
}

#[test]
fn a_store_that_a_daemon_has_is_looked_at_and_not_taken_from_it() {
    let place = Place::new();
    let _daemon = place.open();
    place.demand(&["verify"], 0);
    let target = place.path("copy.db");
    for words in [&["export", target.to_str().unwrap()][..], &["recover", "--anyway"]] {
        let output = place.run(words);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(8), ""), "{words:?}");
        assert!(stderr(&output).starts_with("turnd: store_locked: "), "{}", stderr(&output));
    }
    assert!(!target.exists());
}

#[test]
fn an_exported_store_goes_on_elsewhere_and_nowhere_twice() {
    let place = Place::new();
    let stream = place.open().head().unwrap().stream_id;
    let target = place.path("copy.db");
    fs::write(&target, "mine").unwrap();
    place.demand(&["export", target.to_str().unwrap()], 2);
    assert_eq!(fs::read(&target).unwrap(), b"mine");
    fs::remove_file(&target).unwrap();
    place.demand(&["export", target.to_str().unwrap()], 0);
    assert!(Store::open(&place.folder(), Options::default(), 1_000).is_err(), "it is closed here");
    let told: Value = serde_json::from_str(&stdout(&place.run(&["verify"]))).unwrap();
    let note = "it was exported: it goes on where its copy is, and takes nothing here";
    assert_eq!((&told["sound"], &told["notes"]), (&json!(true), &json!([note])));
    let recovered = place.run(&["recover"]);
    let said = stderr(&recovered);
    assert!(recovered.status.code() == Some(8) && said.starts_with("turnd: store_exported: "), "{said}");
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::rename(&target, other.join("requests.db")).unwrap();
    assert_eq!(Store::open(&other, Options::default(), 1_000).unwrap().0.head().unwrap().stream_id, stream);
}

#[test]
fn a_damaged_store_is_said_to_be_and_what_can_be_read_goes_on_as_another_stream_above_all_that_was_seen() {
    for (words, is_started) in
        [(&["recover", "--above", "41"][..], false), (&["recover", "--above", "41", "--empty"], true)]
    {
        let place = Place::new();
        let stream = place.open().head().unwrap().stream_id;
        spoil(&place.database());
        let output = place.run(&["verify"]);
        assert_eq!(output.status.code(), Some(8), "{}", stdout(&output));
        assert!(stderr(&output).starts_with("turnd: store_corrupt: "), "{}", stderr(&output));
        if is_started {
            // A daemon that finds it so puts it aside and makes no other one.
            assert!(Store::open(&place.folder(), Options::default(), 1_000).is_err());
            assert!(!place.database().exists());
            place.demand(&["verify"], 3);
        }
        let rescue = place.demand(words, 0);
        assert_eq!((&rescue["head"], &rescue["after"]), (&41.into(), &41.into()), "{rescue}");
        assert!(Path::new(rescue["files"].as_str().unwrap()).is_dir(), "the evidence is kept");
        let head = place.open().head().unwrap();
        assert_eq!((head.head, head.stream_id.as_str()), (41, rescue["stream_id"].as_str().unwrap()));
        assert_ne!(head.stream_id, stream);
        place.demand(&["verify"], 0);
    }
}

#[test]
fn a_store_of_which_nothing_can_be_read_is_made_anew_and_said_to_be_lost_and_how_far_its_numbers_may_have_gone() {
    for (words, has_watermark, said) in [
        (
            &["recover"][..],
            true,
            &["store_lost: nothing of the old store could be read, and no outcome", "version 7"][..],
        ),
        (&["recover"], false, &["nothing of the old store", "nothing tells how far its numbers went; --above"]),
        (&["recover", "--empty"], false, &["store_lost: nothing tells how far its numbers went"]),
    ] {
        let place = Place::new();
        fs::write(place.database(), "no database").unwrap();
        if !has_watermark {
            fs::remove_file(place.folder().join("requests.watermark")).unwrap();
        }
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(12), "{words:?}: {}", stderr(&output));
        let told = stderr(&output);
        let told = told.lines().last().unwrap();
        assert!(said.iter().all(|said| told.contains(said)), "{told}");
        let rescue: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!((&rescue["unreadable"], &rescue["numbers_known"]), (&true.into(), &has_watermark.into()));
        place.demand(&["verify"], 0);
    }
}

#[test]
fn a_store_of_a_version_that_is_not_known_is_said_to_be_one_and_left_alone() {
    for (version, code) in [("99", "store_newer"), ("0", "store_version_unknown")] {
        let place = Place::new();
        let mut bytes = fs::read(place.database()).unwrap();
        bytes[60..64].copy_from_slice(&version.parse::<u32>().unwrap().to_be_bytes());
        fs::write(place.database(), &bytes).unwrap();
        let target = place.path("copy.db");
        for words in [&["verify"][..], &["recover"], &["recover", "--anyway"], &["export", target.to_str().unwrap()]] {
            let output = place.run(words);
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(8), ""), "{words:?}");
            assert!(stderr(&output).starts_with(&format!("turnd: {code}: ")), "{}", stderr(&output));
        }
        assert_eq!(fs::read(place.database()).unwrap(), bytes);
    }
}

#[test]
fn where_there_is_no_store_none_is_made() {
    let base = tempfile::tempdir().unwrap();
    let (store, workspace) = (base.path().join("store"), base.path().to_str().unwrap());
    for words in [&["verify"][..], &["export", "copy.db"], &["recover"]] {
        let place = ["--store", store.to_str().unwrap(), "--workspace", workspace];
        let output = turnd(&[&["request", "store"], words, &place].concat());
        assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(3), 1), "{words:?}");
    }
    assert!(!store.exists() && !Path::new("copy.db").exists());
    let nowhere = ["request", "store", "verify", "--workspace", "/nowhere"];
    assert_eq!(turnd(&nowhere).status.code(), Some(2));
}
