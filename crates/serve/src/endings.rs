//! What loads tell of how the last prompts of a live session ended, kept so that an attach does not read the same lines again.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::value::RawValue;

use crate::sync::lock;

/// Terminals as a load gives them out, oldest first.
pub(crate) type Terminals = Arc<[Box<RawValue>]>;

/// The last terminals of live sessions.
#[derive(Default)]
pub(crate) struct Endings {
    sessions: Mutex<HashMap<String, (Look, Terminals)>>,
}

/// What a ledger looked like when it was read. Whoever appends to one makes it longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    bytes: u64,
    changed_ns: (i64, i64),
}

impl Look {
    /// None where there is no ledger, or none that can be looked at.
    fn at(ledger: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(ledger).ok()?;
        Some(Self {
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed_ns: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Endings {
    /// The terminals of a session, as they were read when its ledger last looked like this; otherwise as `read` finds them now. Blocks.
    pub(crate) fn of(&self, session: &str, ledger: &Path, read: impl FnOnce() -> Vec<Box<RawValue>>) -> Terminals {
        // Looked at before it is read: what is appended in between is read again next time.
        let look = Look::at(ledger);
        let kept = lock(&self.sessions).get(session).filter(|(then, _)| Some(*then) == look).cloned();
        if let Some((_, terminals)) = kept {
            return terminals;
        }
        let terminals: Terminals = read().into();
        if let Some(look) = look {
            lock(&self.sessions).insert(session.to_owned(), (look, Arc::clone(&terminals)));
        }
        terminals
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Box<RawValue>> {
        vec![RawValue::from_string(text.to_owned()).unwrap()]
    }

    #[test]
    fn a_ledger_is_read_again_only_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let (ledger, endings) = (folder.path().join("s.ledger.jsonl"), Endings::default());
        let told = |read: &str| endings.of("s", &ledger, || lines(read))[0].get().to_owned();
        assert_eq!(told("1"), "1");
        assert_eq!(told("2"), "2", "nothing is kept of a ledger that is not there");
        std::fs::write(&ledger, "a\n").unwrap();
        assert_eq!(told("3"), "3");
        assert_eq!(told("4"), "3");
        std::fs::write(&ledger, "a\nb\n").unwrap();
        assert_eq!(told("5"), "5");
        std::fs::rename(&ledger, folder.path().join("away")).unwrap();
        std::fs::write(&ledger, "c\nd\n").unwrap();
        assert_eq!(told("6"), "6", "another file of the same length");
        endings.retain(|_| false);
        assert_eq!(told("7"), "7");
    }
}
