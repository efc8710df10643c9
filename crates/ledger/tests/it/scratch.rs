//! A folder for one test, removed with its last use.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use turnd_ledger::{Durability, Ledger};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("turnd-ledger-{}-{number}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A ledger that is not there yet.
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::new(self.path("s.ledger.jsonl"), Durability::Process)
    }

    /// A ledger that holds these bytes.
    pub(crate) fn ledger_of(&self, bytes: &[u8]) -> Ledger {
        let ledger = self.ledger();
        fs::write(ledger.path(), bytes).unwrap();
        ledger
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The ids of a ledger's records, in file order.
pub(crate) fn ids(ledger: &Ledger) -> Vec<String> {
    ledger.read().unwrap().records.into_iter().map(|record| record.prompt_id).collect()
}
