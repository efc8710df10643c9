//! Every place where a move can be cut off, and what the next call makes of it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;

use super::*;
use crate::chosen::Chosen;
use crate::options::Durability;

const SESSION: &str = "s1";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Archive,
    Unarchive,
    Delete,
}

use Act::{Archive, Delete, Unarchive};

/// All files below a folder, by name.
type Tree = BTreeMap<String, String>;

fn tree(folder: &Path) -> Tree {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

struct Store {
    folder: tempfile::TempDir,
    layout: Layout,
    /// Only where two copies are there from the beginning may they be made one.
    resolve: bool,
}

fn record(session: &str, uuid: &str) -> String {
    format!(
        "{{\"uuid\":\"{uuid}\",\"parentUuid\":null,\"sessionId\":\"{session}\",\"timestamp\":\"2026-11-30T00:00:00.000Z\",\"type\":\"user\",\"cwd\":\"/ws\",\
         \"message\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"x\"}}]}}}}\n"
    )
}

impl Store {
    fn new() -> Self {
        // In memory where that can be had: ledgers sync what they move, thousands of times here.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let layout = Layout::new(folder.path(), Path::new("/ws"));
        Self { folder, layout, resolve: false }
    }

    /// `kind` names the state that it begins with.
    fn begun(kind: &str) -> Self {
        let store = Self { resolve: kind == "both", ..Self::new() };
        // Others, whose ids are a beginning of this one's, or the other way round.
        for other in ["s", "s11", "s1.x"] {
            store.session(Place::Active, other, "o");
            store.session(Place::Archived, &format!("{other}a"), "o");
        }
        match kind {
            "active" => store.session(Place::Active, SESSION, "a"),
            "archived" => store.session(Place::Archived, SESSION, "a"),
            // Sidecars that an earlier move could not take along.
            "left in the archive" => {
                store.session(Place::Active, SESSION, "a");
                store.sidecars(Place::Archived, SESSION, "b");
            }
            "left behind" => {
                store.session(Place::Archived, SESSION, "a");
                store.sidecars(Place::Active, SESSION, "b");
            }
            "both" => {
                store.session(Place::Active, SESSION, "a");
                store.session(Place::Archived, SESSION, "b");
            }
            other => panic!("{other}"),
        }
        let chosen = Chosen::new(store.layout.clone(), Durability::Process);
        store.own(&chosen, "a", SESSION);
        store.own(&chosen, "o", "s");
        store
    }

    fn session(&self, place: Place, session: &str, mark: &str) {
        let path = self.layout.transcript_in(place, session);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, record(session, &format!("{mark}-1")) + &record(session, &format!("{mark}-2"))).unwrap();
        self.sidecars(place, session, mark);
    }

    fn sidecars(&self, place: Place, session: &str, mark: &str) {
        fs::create_dir_all(self.layout.folder(place)).unwrap();
        for sidecar in Sidecar::ALL {
            let text = match sidecar {
                Sidecar::Ledger => format!(
                    "{{\"v\":1,\"promptId\":\"{mark}\",\"state\":\"in_flight\",\"at\":1}}\n{{\"v\":1,\"promptId\":\"{mark}\",\"terminal\":\"cancelled\",\"at\":2}}\n"
                ),
                Sidecar::PromptIds => format!("{{\"v\":1,\"promptId\":\"{mark}\",\"content\":\"0\"}}\n"),
                // The same wherever it is, so that nothing has to be said of it.
                Sidecar::Worktree | Sidecar::PullRequests => format!("{session} of the peer"),
                other => format!("{mark} {other:?}"),
            };
            fs::write(self.layout.sidecar(place, sidecar, session), text).unwrap();
        }
    }

    fn own(&self, chosen: &Chosen, prompt: &str, session: &str) {
        let ledger = ledger::Ledger::new(self.folder.path().join("none"), ledger::Durability::Process);
        chosen.load(session, &ledger).unwrap();
        let _ = chosen.once(session, prompt, 0, || {
            Ok(bridge::Receipt { prompt_id: prompt.into(), last_event_id: 0, event_epoch: String::new() })
        });
    }

    fn act(&self, act: Act, pace: Pace<'_>) -> Result<Done, ShelfError> {
        let files =
            Files { layout: &self.layout, workspace: Path::new("/ws"), session: SESSION, is_synced: false, pace };
        let chosen = Chosen::new(self.layout.clone(), Durability::Process);
        match act {
            Archive => files.archive(self.resolve),
            Unarchive => files.unarchive(self.resolve),
            Delete => files.delete(&|| {
                pace()?;
                chosen.release(SESSION)
            }),
        }
    }

    fn whole(&self, act: Act) -> Done {
        self.act(act, &|| Ok(())).unwrap()
    }

    /// Acts until `steps` changes are made, and then does nothing more, as a process that is killed. Whether it was cut off.
    fn cut(&self, act: Act, steps: usize) -> bool {
        let (left, is_cut) = (Cell::new(steps), Cell::new(false));
        let _ = self.act(act, &|| {
            match left.get().checked_sub(1) {
                Some(fewer) => left.set(fewer),
                None => is_cut.set(true),
            }
            if is_cut.get() { Err(io::Error::other("killed")) } else { Ok(()) }
        });
        is_cut.get()
    }

    fn tree(&self) -> Tree {
        tree(self.folder.path())
    }

    /// How often each of some words stands anywhere.
    fn counts(&self, words: &[&str]) -> Vec<usize> {
        let tree = self.tree();
        words.iter().map(|word| tree.values().map(|text| text.matches(word).count()).sum()).collect()
    }
}

/// A store for each number of steps after which an act can be cut off, the last one whole.
fn cuts(kind: &str, act: Act) -> impl Iterator<Item = (usize, Store)> {
    let mut is_cut = true;
    (0..STEPS_MAX).map_while(move |steps| {
        let store = Store::begun(kind);
        let was_cut = std::mem::replace(&mut is_cut, store.cut(act, steps));
        assert!(steps + 1 < STEPS_MAX, "there are more steps than are looked at");
        was_cut.then_some((steps, store))
    })
}

const KINDS: [&str; 5] = ["active", "archived", "left in the archive", "left behind", "both"];
/// More changes than any act makes.
const STEPS_MAX: usize = 60;

/// The store behind these acts, none of them cut off.
fn after(kind: &str, acts: &[Act]) -> Tree {
    let store = Store::begun(kind);
    for act in acts {
        store.whole(*act);
    }
    store.tree()
}

#[test]
fn an_act_that_is_cut_off_anywhere_is_finished_by_the_same_act_to_the_last_byte() {
    for (kind, act) in KINDS.into_iter().flat_map(|kind| [Archive, Unarchive, Delete].map(|act| (kind, act))) {
        let expected = after(kind, &[act]);
        for (steps, store) in cuts(kind, act) {
            store.whole(act);
            assert_eq!(store.tree(), expected, "{act:?} of {kind}, cut after {steps} steps");
        }
    }
}

#[test]
fn an_act_that_is_cut_off_anywhere_can_be_followed_by_the_opposite_one() {
    for (kind, act, opposite) in
        KINDS.into_iter().flat_map(|kind| [(kind, Archive, Unarchive), (kind, Unarchive, Archive)])
    {
        let expected = after(kind, &[act, opposite]);
        let lines = |tree: &Tree| -> BTreeMap<String, Vec<String>> {
            let sorted = |text: &String| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort_unstable();
                lines
            };
            tree.iter().map(|(name, text)| (name.clone(), sorted(text))).collect()
        };
        for (steps, store) in cuts(kind, act) {
            store.whole(opposite);
            let got = store.tree();
            // Where both places had lines before, their order says which way they were put together, and nothing else differs.
            if kind == "active" || kind == "archived" {
                assert_eq!(got, expected, "{act:?} of {kind}, cut after {steps} steps");
            }
            assert_eq!(lines(&got), lines(&expected), "{act:?} of {kind}, cut after {steps} steps");
        }
    }
}

#[test]
fn no_record_and_no_line_is_lost_at_any_moment_of_a_move_or_doubled_behind_it() {
    let words = [
        "\"a-1\"",
        "\"a-2\"",
        "\"b-1\"",
        "\"a\",\"state\"",
        "\"b\",\"state\"",
        "\"a\",\"content\"",
        "\"b\",\"content\"",
    ];
    for (kind, act) in KINDS.into_iter().flat_map(|kind| [Archive, Unarchive].map(|act| (kind, act))) {
        let before = Store::begun(kind).counts(&words);
        for (steps, store) in cuts(kind, act) {
            for (word, (now, before)) in words.iter().zip(store.counts(&words).into_iter().zip(&before)) {
                assert!(now >= *before, "{word} is lost: {act:?} of {kind}, cut after {steps} steps");
            }
            store.whole(act);
            assert_eq!(store.counts(&words), before, "{act:?} of {kind}, cut after {steps} steps");
        }
    }
}

#[test]
fn a_removed_session_leaves_nothing_and_takes_nothing_of_another_along() {
    for kind in KINDS {
        let store = Store::begun(kind);
        assert_eq!(store.whole(Delete), Done::Now { resolved: false });
        let empty = {
            let others = Store::begun(kind);
            let mut tree = others.tree();
            tree.retain(|name, _| !name.rsplit('/').next().unwrap().starts_with("s1.") || name.contains("s1.x"));
            tree
        };
        let mut got = store.tree();
        for (name, text) in &mut got {
            assert!(!text.contains("\"s1\""), "{name} still names the session: {text}");
        }
        let index = |name: &str| name.contains("turnd-prompt-ids");
        let files = |tree: &Tree| -> Vec<(String, String)> {
            tree.iter().filter(|(name, _)| !index(name)).map(|(name, text)| (name.clone(), text.clone())).collect()
        };
        assert_eq!(files(&got), files(&empty), "{kind}");
        assert_eq!(got.keys().filter(|name| index(name)).count(), 1, "the ids of others stay owned");
        assert_eq!(store.whole(Delete), Done::NotFound);
    }
}

#[test]
fn a_session_that_can_be_loaded_has_all_its_sidecars_at_every_moment() {
    for (kind, act) in [("active", Archive), ("archived", Unarchive), ("active", Delete)] {
        for (steps, store) in cuts(kind, act) {
            if store.layout.transcript(SESSION).exists() {
                for sidecar in [Sidecar::Ledger, Sidecar::PromptIds, Sidecar::HostNote] {
                    let path = store.layout.sidecar(Place::Active, sidecar, SESSION);
                    assert!(path.exists(), "{sidecar:?}: {act:?} cut after {steps} steps");
                }
            }
        }
    }
}

#[test]
fn two_copies_that_differ_stay_two_unless_it_is_asked_that_they_become_one() {
    let store = Store::begun("both");
    let before = store.tree();
    for resolve in [false, true] {
        let files = Files {
            layout: &store.layout,
            workspace: Path::new("/ws"),
            session: SESSION,
            is_synced: false,
            pace: &|| Ok(()),
        };
        if resolve {
            assert_eq!(files.archive(true).unwrap(), Done::Now { resolved: true });
            let text = fs::read_to_string(store.layout.archived_transcript(SESSION)).unwrap();
            let order: Vec<usize> = ["b-1", "b-2", "a-1", "a-2"].map(|uuid| text.find(uuid).unwrap()).to_vec();
            assert!(order.is_sorted(), "{text}");
        } else {
            assert!(matches!(files.archive(false), Err(ShelfError::Conflict)));
            assert!(matches!(files.unarchive(false), Err(ShelfError::Conflict)));
            assert_eq!(store.tree(), before);
        }
    }
}

#[test]
fn a_session_of_another_workspace_that_shares_the_folder_is_not_found() {
    let store = Store::begun("active");
    let before = store.tree();
    let files = Files {
        layout: &store.layout,
        workspace: Path::new("/w/s"),
        session: SESSION,
        is_synced: false,
        pace: &|| Ok(()),
    };
    assert_eq!(files.archive(true).unwrap(), Done::NotFound);
    assert_eq!(files.unarchive(true).unwrap(), Done::NotFound);
    assert_eq!(files.delete(&|| Ok(())).unwrap(), Done::NotFound);
    assert_eq!(store.tree(), before);
}

#[test]
fn a_sidecar_that_does_not_follow_keeps_nothing_else_back() {
    let store = Store::begun("active");
    let ledger = store.layout.sidecar(Place::Archived, Sidecar::Ledger, SESSION);
    fs::create_dir_all(&ledger).unwrap();
    assert_eq!(store.whole(Archive), Done::Now { resolved: false });
    assert!(store.layout.archived_transcript(SESSION).exists());
    assert!(store.layout.sidecar(Place::Archived, Sidecar::PromptIds, SESSION).exists());
    assert!(store.layout.ledger(SESSION).exists(), "it stays where it was, whole");
    fs::remove_dir(&ledger).unwrap();
    assert_eq!(store.whole(Archive), Done::Already);
    assert_eq!(store.tree(), after("active", &[Archive]), "the next call takes it along");
}

#[test]
fn different_files_of_the_peer_both_stay_and_go_with_their_session() {
    let store = Store::begun("active");
    let pr = |place| store.layout.sidecar(place, Sidecar::PullRequests, SESSION);
    fs::write(pr(Place::Archived), "another").unwrap();
    store.whole(Archive);
    assert!(pr(Place::Active).exists() && pr(Place::Archived).exists());
    store.whole(Delete);
    assert!(!pr(Place::Active).exists() && !pr(Place::Archived).exists());
}

/// The same with a process that is really killed, by itself and before a change that is counted: no timing is in it.
#[test]
fn a_daemon_that_is_killed_before_any_change_of_a_move_is_healed_by_the_next_call() {
    for (act, opposite) in [(Archive, Unarchive), (Unarchive, Archive)] {
        let kind = if act == Archive { "active" } else { "archived" };
        let (same, back) = (after(kind, &[act]), after(kind, &[act, opposite]));
        let mut killed = true;
        let mut steps = 0;
        while killed {
            let store = Store::begun(kind);
            let order = format!("{}|{act:?}|{steps}", store.folder.path().display());
            killed = !child(&order).success();
            let next = if steps % 2 == 0 { act } else { opposite };
            store.whole(next);
            assert_eq!(&store.tree(), if next == act { &same } else { &back }, "{act:?} killed before change {steps}");
            steps += 1;
        }
        assert!(steps > 5, "{act:?} ended before it was killed");
    }
}

/// Another process that does what its order says.
fn child(order: &str) -> std::process::ExitStatus {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shelf::files::tests::be_killed", "--ignored"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{order}").unwrap();
    child.wait().unwrap()
}

#[test]
#[ignore = "not a test: the process that is killed"]
fn be_killed() {
    let Some(Ok(order)) = io::stdin().lines().next() else { return };
    let [folder, act, steps] = order.split('|').collect::<Vec<_>>().try_into().unwrap();
    let layout = Layout::new(Path::new(folder), Path::new("/ws"));
    let left = Cell::new(steps.parse::<usize>().unwrap());
    let pace = || {
        if left.get() == 0 {
            let me = std::process::id().to_string();
            std::process::Command::new("kill").args(["-KILL", &me]).status().unwrap();
        }
        left.set(left.get() - 1);
        Ok(())
    };
    let files = Files { layout: &layout, workspace: Path::new("/ws"), session: SESSION, is_synced: false, pace: &pace };
    let done = if act == "Archive" { files.archive(false) } else { files.unarchive(false) };
    done.unwrap();
}
