//! One id, one run: in one life, over a restart, and when the admission is refused.

use std::path::{Path, PathBuf};

use super::*;

struct World {
    chosen: Chosen,
    store: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let store = tempfile::tempdir().unwrap();
        let world = Self { chosen: Self::life(store.path()), store };
        world.load();
        world
    }

    fn life(store: &Path) -> Chosen {
        Chosen::new(Layout::new(store, Path::new("/ws")), Durability::Process)
    }

    fn ledger(&self) -> Ledger {
        Ledger::new(Layout::new(self.store.path(), Path::new("/ws")).ledger("s"), ledger::Durability::Process)
    }

    fn load(&self) {
        self.chosen.load("s", &self.ledger()).unwrap();
        let other = Ledger::new(self.layout().ledger("t"), ledger::Durability::Process);
        self.chosen.load("t", &other).unwrap();
    }

    fn layout(&self) -> Layout {
        Layout::new(self.store.path(), Path::new("/ws"))
    }

    /// The files that an admission writes to, in the order in which it does: the claim, its owner, the admission.
    fn files(&self) -> Vec<PathBuf> {
        let owners = std::fs::read_dir(self.layout().prompt_id_owners()).into_iter().flatten();
        let owners = owners.map(|entry| entry.unwrap().path());
        let (claim, admission) = (self.layout().prompt_ids("s"), self.layout().ledger("s"));
        [claim].into_iter().chain(owners).chain([admission]).collect()
    }

    /// Writes a transcript that cannot be seen whole.
    fn cut_transcript(&self) {
        let path = self.layout().transcript("s");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let cut =
            r#"{"uuid":"u","parentUuid":"lost","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#;
        std::fs::write(path, format!("{cut}\n")).unwrap();
    }

    fn restart(&mut self) {
        self.chosen = Self::life(self.store.path());
        self.load();
    }

    /// Asks for an id with a content, as a short word. What is admitted is in the ledger.
    fn ask(&self, id: &str, content: &str, admit: Result<Receipt, AdmitError>) -> String {
        let admitted = admit.is_ok();
        let said = self.ask_in("s", id, content, admit);
        if admitted && said.starts_with("admitted") {
            self.ledger().append(&ledger::Record::in_flight(id, None, 1)).unwrap();
        }
        said
    }

    /// The same in any session, without the ledger.
    fn ask_in(&self, session: &str, id: &str, content: &str, admit: Result<Receipt, AdmitError>) -> String {
        match self.chosen.once(session, id, fingerprint(&[content]), || admit) {
            Ok(Once::Admitted(receipt)) => format!("admitted {}", receipt.last_event_id),
            Ok(Once::Repeated(Some(receipt))) => format!("repeated {}", receipt.last_event_id),
            Ok(Once::Repeated(None)) => "repeated".to_owned(),
            Err(OnceError::Taken) => "taken".to_owned(),
            Err(OnceError::Unwritable(_)) => "unwritable".to_owned(),
            Err(OnceError::Refused(_)) => "refused".to_owned(),
        }
    }
}

fn receipt(last_event_id: u64) -> Result<Receipt, AdmitError> {
    Ok(Receipt { prompt_id: "a".into(), last_event_id, event_epoch: "e".into() })
}

fn full() -> Result<Receipt, AdmitError> {
    Err(AdmitError::QueueFull { limit: 5, pending: 5 })
}

#[test]
fn a_repetition_gets_the_first_receipt_and_other_content_none() {
    let world = World::new();
    assert_eq!(world.ask("a", "x", receipt(7)), "admitted 7");
    assert_eq!(world.ask("a", "x", receipt(8)), "repeated 7");
    assert_eq!(world.ask("a", "y", receipt(8)), "taken");
    assert_eq!(world.ask("b", "y", receipt(9)), "admitted 9");
}

#[test]
fn an_id_is_known_in_the_next_life() {
    let mut world = World::new();
    world.ask("a", "x", receipt(7));
    world.restart();
    assert_eq!(world.ask("a", "x", receipt(8)), "repeated");
    assert_eq!(world.ask("a", "y", receipt(8)), "taken");
}

#[test]
fn a_refused_id_is_free_again_now_and_later() {
    let mut world = World::new();
    assert_eq!(world.ask("a", "x", full()), "refused");
    assert_eq!(world.ask("a", "x", full()), "refused");
    world.restart();
    assert_eq!(world.ask("a", "y", receipt(1)), "admitted 1");
    world.restart();
    assert_eq!(world.ask("a", "y", receipt(2)), "repeated");
}

#[test]
fn an_id_that_only_the_ledger_knows_cannot_be_chosen() {
    let mut world = World::new();
    world.ledger().append(&ledger::Record::in_flight("server-made", None, 1)).unwrap();
    world.restart();
    assert_eq!(world.ask("server-made", "x", receipt(1)), "taken");
    assert_eq!(world.ask("server-made", "x", full()), "taken");
    world.chosen.note("s", "noted");
    assert_eq!(world.ask("noted", "x", receipt(1)), "taken");
    assert!(world.chosen.is_taken("s", "noted") && !world.chosen.is_taken("t", "noted"));
}

#[test]
fn what_cannot_be_written_down_is_not_admitted() {
    let world = World::new();
    std::fs::create_dir_all(Layout::new(world.store.path(), Path::new("/ws")).prompt_ids("s")).unwrap();
    assert_eq!(world.ask("a", "x", receipt(1)), "unwritable");
    let fresh = World::life(world.store.path());
    assert!(fresh.load("s", &world.ledger()).is_err(), "nothing may be called new then");
}

/// Where the transcript leaves open what ran, a claim that is left would be taken for a prompt that did.
#[test]
fn a_claim_whose_owner_cannot_be_written_down_is_taken_back() {
    let mut world = World::new();
    let owners = world.layout().prompt_id_owners();
    std::fs::create_dir_all(owners.parent().unwrap()).unwrap();
    // Nothing is to be read there, and nothing can be written.
    std::os::unix::fs::symlink("nowhere", &owners).unwrap();
    assert_eq!(world.ask("a", "x", receipt(1)), "unwritable");
    std::fs::remove_file(&owners).unwrap();
    world.cut_transcript();
    world.restart();
    assert_eq!(world.ask("a", "x", receipt(2)), "admitted 2");
}

#[test]
fn an_id_of_another_session_is_not_claimed_at_all() {
    let world = World::new();
    assert_eq!(world.ask_in("t", "a", "x", receipt(7)), "admitted 7");
    assert_eq!(world.ask("a", "x", receipt(8)), "taken");
    assert!(!world.layout().prompt_ids("s").exists());
}

#[test]
fn a_fingerprint_keeps_its_parts_apart() {
    assert_ne!(fingerprint(&["ab", "c"]), fingerprint(&["a", "bc"]));
    assert_ne!(fingerprint(&[""]), fingerprint(&[]));
    assert_eq!(format!("{:032x}", fingerprint(&[])), "6c62272e07bb014262b821756295c58d");
}

#[test]
fn an_id_is_one_prompts_in_the_workspace_also_when_its_session_is_not_live() {
    let mut world = World::new();
    assert_eq!(world.ask_in("t", "a", "x", receipt(7)), "admitted 7");
    assert_eq!(world.ask("a", "x", receipt(8)), "taken");
    world.chosen.retain(|session| session == "s");
    assert_eq!(world.ask("a", "x", receipt(8)), "taken", "its session is not live");
    world.restart();
    assert_eq!(world.ask("a", "x", receipt(8)), "taken", "nobody asked for its session in this life");
    assert_eq!(world.ask("b", "x", full()), "refused");
    assert_eq!(world.ask_in("t", "b", "y", receipt(9)), "admitted 9", "an id that was refused is free for all");
}

#[test]
fn wherever_a_crash_cuts_an_admission_the_prompt_runs_once() {
    let whole = World::new();
    whole.ask("a", "x", receipt(7));
    let written: Vec<Vec<u8>> = whole.files().iter().map(|path| std::fs::read(path).unwrap()).collect();
    let names: Vec<PathBuf> =
        whole.files().iter().map(|path| path.strip_prefix(whole.store.path()).unwrap().to_owned()).collect();
    let all: usize = written.iter().map(Vec::len).sum();
    assert!(written.len() == 3 && all > 100, "the claim, its owner, the admission");
    for cut in 0..=all {
        let mut world = World::new();
        let mut left = cut;
        for (name, bytes) in names.iter().zip(&written) {
            let kept = left.min(bytes.len());
            left -= kept;
            if kept > 0 {
                let path = world.store.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, &bytes[..kept]).unwrap();
            }
        }
        world.restart();
        let was_admitted = world.ledger().read().unwrap().records.len() == 1;
        let owned = cut + 1 >= written[0].len() + written[1].len();
        assert_eq!(world.ask_in("t", "a", "x", full()), if owned { "taken" } else { "refused" }, "cut at {cut}");
        let expected = if was_admitted { "repeated" } else { "admitted 8" };
        assert_eq!(world.ask("a", "x", receipt(8)), expected, "cut at {cut}");
        assert_eq!(world.ask("a", "y", receipt(9)), "taken", "cut at {cut}");
        world.restart();
        assert_eq!(world.ask("a", "x", receipt(9)), "repeated", "cut at {cut}");
    }
}

#[test]
fn a_claim_whose_admission_the_disk_refused_is_not_run_again_when_the_transcript_shows_its_turn() {
    for (stamp, expected) in [("a", "repeated"), ("b", "admitted 8")] {
        let mut world = World::new();
        world.ask_in("s", "a", "x", receipt(7));
        let line = format!(
            r#"{{"uuid":"u","parentUuid":null,"sessionId":"s","type":"user","daemonPromptId":"{stamp}","message":{{"role":"user","parts":[{{"text":"x"}}]}}}}"#
        );
        let path = world.layout().transcript("s");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, line + "\n").unwrap();
        world.restart();
        assert_eq!(world.ask("a", "x", receipt(8)), expected, "{stamp}");
    }
}

#[test]
fn a_transcript_that_cannot_be_seen_whole_leaves_a_claim_taken() {
    let mut world = World::new();
    world.ask_in("s", "a", "x", receipt(7));
    world.cut_transcript();
    world.restart();
    assert_eq!(world.ask("a", "x", receipt(8)), "repeated");
}

#[test]
fn what_is_known_can_be_asked_without_admitting() {
    let world = World::new();
    let known = |id: &str, content: &str| world.chosen.known("s", id, fingerprint(&[content]));
    assert!(matches!(known("a", "x"), Ok(None)));
    world.ask("a", "x", receipt(7));
    assert!(matches!(known("a", "x"), Ok(Some(Once::Repeated(Some(_))))));
    assert!(matches!(known("a", "y"), Err(OnceError::Taken)));
}
