//! Whether the disk takes bytes, asked before a prompt is admitted: an admission that cannot be recorded must not be given.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sync::lock;

/// One block. A full disk refuses it; an in-flight line with its terminal needs less.
const PROBE_BYTES: usize = 4096;

/// A file that keeps one block and is grown by another for each look: only growth shows whether there is room, and a block that
/// the file has already proves nothing. The one it keeps is given up for a line that has to be written all the same.
pub(crate) struct Room {
    path: PathBuf,
    file: Mutex<Option<File>>,
    /// Whether the last look was refused.
    was_refused: AtomicBool,
}

impl Room {
    /// A probe at `path`. Nothing is touched before it is asked.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: Mutex::default(), was_refused: AtomicBool::new(false) }
    }

    /// Whether one more block fits.
    pub(crate) fn probe(&self) -> bool {
        let outcome = self.with_file(|file| {
            file.seek(SeekFrom::Start(0))?;
            let grown = file.write_all(&[0; 2 * PROBE_BYTES]);
            // Also what a full disk gave of the other block.
            file.set_len(PROBE_BYTES as u64)?;
            grown
        });
        let was_refused = self.was_refused.swap(outcome.is_err(), Ordering::Relaxed);
        match &outcome {
            // The first of a row; the rest would only repeat it.
            Err(error) if !was_refused => {
                tracing::warn!(%error, path = %self.path.display(), "the store takes no more bytes");
            }
            Ok(()) if was_refused => tracing::info!(path = %self.path.display(), "the store takes bytes again"),
            _ => {}
        }
        outcome.is_ok()
    }

    /// Whether a look was refused and another one would be: nothing is looked at before an admission met with it.
    pub(crate) fn is_refused(&self) -> bool {
        self.was_refused.load(Ordering::Relaxed) && !self.probe()
    }

    /// Gives up the block that is kept. The next look takes it again.
    pub(crate) fn give_up(&self) {
        if let Err(error) = self.with_file(|file| file.set_len(0)) {
            tracing::warn!(%error, path = %self.path.display(), "the block that was kept cannot be given up");
        }
    }

    /// Works on the file. Behind a failure it is opened anew, and what it holds stays: of two that ask at once, the one that is refused
    /// takes nothing from the other.
    fn with_file(&self, work: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let mut slot = lock(&self.file);
        let file = match &mut *slot {
            Some(file) => file,
            None => slot.insert(self.open()?),
        };
        let outcome = work(file);
        if outcome.is_err() {
            *slot = None;
        }
        outcome
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)?;
        // One that an earlier version made was as open as the umask had it. A device is nobody's to close.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_can_be_written_has_room() {
        let store = tempfile::tempdir().unwrap();
        let room = Room::new(store.path().join("deep/.room"));
        assert!(room.probe());
        assert!(room.probe());
    }

    #[test]
    fn a_path_that_cannot_exist_has_none_and_may_recover() {
        let store = tempfile::tempdir().unwrap();
        let blocker = store.path().join("file");
        std::fs::write(&blocker, "").unwrap();
        let room = Room::new(blocker.join(".room"));
        assert!(!room.probe());
        std::fs::remove_file(&blocker).unwrap();
        assert!(room.probe());
    }

    #[test]
    fn what_it_makes_is_for_its_owner_only_also_what_an_earlier_version_made() {
        let store = tempfile::tempdir().unwrap();
        let mode = |name: &str| std::fs::metadata(store.path().join(name)).unwrap().permissions().mode() & 0o777;
        let (path, probe) = (store.path().join("deep/.room"), |path: &PathBuf| Room::new(path.clone()).probe());
        assert!(probe(&path));
        assert_eq!((mode("deep"), mode("deep/.room")), (0o700, 0o600));
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert!(probe(&path));
        assert_eq!(mode("deep/.room"), 0o600);
    }

    #[test]
    fn one_block_is_kept_until_it_is_given_up() {
        let store = tempfile::tempdir().unwrap();
        let path = store.path().join(".room");
        let room = Room::new(path.clone());
        let length = || std::fs::metadata(&path).unwrap().len();
        assert!(room.probe());
        assert_eq!(length(), PROBE_BYTES as u64);
        room.give_up();
        assert_eq!(length(), 0);
        assert!(room.probe());
        assert_eq!(length(), PROBE_BYTES as u64);
    }

    #[test]
    fn what_is_kept_can_be_given_up_behind_a_look_that_was_refused() {
        let store = tempfile::tempdir().unwrap();
        let path = store.path().join(".room");
        let room = Room::new(path.clone());
        assert!(room.probe());
        // As a full disk does.
        room.with_file(|_| Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        room.with_file(|_| Ok(())).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), PROBE_BYTES as u64);
        room.give_up();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_has_none() {
        assert!(!Room::new("/dev/full".into()).probe());
    }
}
