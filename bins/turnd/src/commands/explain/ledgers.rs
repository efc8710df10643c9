//! Every ledger below a folder, in an order that stays the same. Holds the names of one folder at a time and which folders
//! were seen, so that links may lead in circles, but not out of the folder.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ledger::sidecar;

/// The ledgers below a folder, those of a folder before those of the folders in it, each by name. A link to a ledger is
/// left out, for the session and the lock that guards it lie where the link leads; so is a link to a folder that lies
/// elsewhere, for it was not asked about. Both are counted.
#[derive(Debug)]
pub(super) struct Ledgers {
    ready: VecDeque<PathBuf>,
    /// Folders to be looked into, the next one last.
    folders: Vec<PathBuf>,
    seen: HashSet<(u64, u64)>,
    /// The folder that everything must lie in; none when it cannot be told.
    root: Option<PathBuf>,
    links_left_out: usize,
}

impl Ledgers {
    pub(super) fn below(folder: &Path) -> Self {
        Self {
            ready: VecDeque::new(),
            folders: vec![folder.to_owned()],
            seen: HashSet::new(),
            root: folder.canonicalize().ok(),
            links_left_out: 0,
        }
    }

    /// How many links were passed by so far, to ledgers or out of the folder.
    pub(super) fn links_left_out(&self) -> usize {
        self.links_left_out
    }

    fn is_inside(&self, path: &Path) -> bool {
        let place = path.canonicalize();
        self.root.as_ref().is_some_and(|root| place.is_ok_and(|place| place.starts_with(root)))
    }

    fn look_into(&mut self, folder: &Path) -> io::Result<()> {
        let metadata = fs::metadata(folder)?;
        if !self.seen.insert((metadata.dev(), metadata.ino())) {
            return Ok(());
        }
        let mut inside = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let is_ledger = sidecar::is_ledger(&path);
            let is_left_out = kind.is_symlink() && (is_ledger || path.is_dir() && !self.is_inside(&path));
            if is_left_out {
                self.links_left_out += 1;
            } else if is_ledger {
                self.ready.push_back(path);
            } else if kind.is_dir() || kind.is_symlink() && path.is_dir() {
                inside.push(path);
            }
        }
        self.ready.make_contiguous().sort_unstable();
        inside.sort_unstable_by(|a, b| b.cmp(a));
        self.folders.append(&mut inside);
        Ok(())
    }
}

impl Iterator for Ledgers {
    /// A ledger, or a folder that could not be looked into.
    type Item = Result<PathBuf, (PathBuf, io::Error)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ledger) = self.ready.pop_front() {
                return Some(Ok(ledger));
            }
            let folder = self.folders.pop()?;
            if let Err(error) = self.look_into(&folder) {
                return Some(Err((folder, error)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn ledgers_come_folder_by_folder_and_by_name() {
        let base = tempfile::tempdir().unwrap();
        for file in ["c/d/4.ledger.jsonl", "2.ledger.jsonl", "b/3.ledger.jsonl", "1.ledger.jsonl", "1.jsonl", "1.lock"]
        {
            let path = base.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        symlink(base.path(), base.path().join("c/up")).unwrap();
        symlink("nowhere", base.path().join("c/broken")).unwrap();
        symlink(base.path().join("1.ledger.jsonl"), base.path().join("c/9.ledger.jsonl")).unwrap();
        symlink(base.path().join("c/d"), base.path().join("again")).unwrap();
        let found: Vec<_> = Ledgers::below(base.path()).map(Result::unwrap).collect();
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(base.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["1.ledger.jsonl", "2.ledger.jsonl", "again/4.ledger.jsonl", "b/3.ledger.jsonl"]);
    }

    #[test]
    fn a_folder_that_is_gone_is_said_and_stops_nothing() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("a")).unwrap();
        fs::create_dir(base.path().join("b")).unwrap();
        fs::write(base.path().join("b/s.ledger.jsonl"), "").unwrap();
        let mut ledgers = Ledgers::below(base.path());
        ledgers.look_into(base.path()).unwrap();
        fs::remove_dir(base.path().join("a")).unwrap();
        let (gone, error) = ledgers.next().unwrap().unwrap_err();
        assert_eq!((gone, error.kind()), (base.path().join("a"), io::ErrorKind::NotFound));
        assert_eq!(ledgers.next().unwrap().unwrap(), base.path().join("b/s.ledger.jsonl"));
    }
}
