//! One id, one run: in one life, over a restart, and when the admission is refused.

use std::path::Path;

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
    }

    fn restart(&mut self) {
        self.chosen = Self::life(self.store.path());
        self.load();
    }

    /// Asks for an id with a content, as a short word.
    fn ask(&self, id: &str, content: &str, admit: Result<Receipt, AdmitError>) -> String {
        match self.chosen.once("s", id, digest(&[content]), || admit) {
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

#[test]
fn a_digest_keeps_its_parts_apart() {
    assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    assert_ne!(digest(&[""]), digest(&[]));
    assert_eq!(format!("{:032x}", digest(&[])), "6c62272e07bb014262b821756295c58d");
}
