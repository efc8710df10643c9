//! Where the store lies: the folder, its files, and who may read them.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::limits::{LOCK_PAUSE, LOCK_TRIES};

/// Readable by the owner only, whatever the umask says.
const FOLDER_MODE: u32 = 0o700;
pub(super) const FILE_MODE: u32 = 0o600;

/// The database with its log and index.
pub(super) const TRIO: [&str; 3] = ["requests.db", "requests.db-wal", "requests.db-shm"];

/// The store's folder and the names in it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    folder: PathBuf,
}

impl Place {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The database.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.join("requests.db")
    }

    /// The database while it is made.
    pub(super) fn draft(&self) -> PathBuf {
        self.folder.join("requests.db.new")
    }

    /// Whether there was a database here that is not there any more: its log, the note of how far it got, or outcomes that it did not take
    /// are. An empty store in its place would take each id again that the lost one knew.
    ///
    /// # Errors
    /// When that cannot be looked at.
    pub(super) fn has_traces(&self) -> io::Result<bool> {
        for path in [self.folder.join(TRIO[1]), self.watermark(), self.lines()] {
            match std::fs::metadata(path) {
                Ok(trace) if trace.len() > 0 => return Ok(true),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Bytes kept so that outcomes fit on a full disk.
    pub(super) fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }

    /// Outcomes that a corrupt database did not take.
    pub(super) fn lines(&self) -> PathBuf {
        self.folder.join("outcomes.jsonl")
    }

    /// How far the database got, as it was noted beside it.
    pub(super) fn watermark(&self) -> PathBuf {
        self.folder.join("requests.watermark")
    }

    /// How far a new database got, while it is made.
    pub(super) fn watermark_draft(&self) -> PathBuf {
        self.folder.join("requests.watermark.new")
    }

    /// What is written to see whether the disk has room.
    pub(super) fn room(&self) -> PathBuf {
        self.folder.join("room")
    }

    /// The copy that is made before a migration from `version`.
    pub(super) fn copy(&self, version: i32, now_ms: u64) -> PathBuf {
        self.folder.join(format!("requests.v{version}.{now_ms}.db"))
    }

    /// The same while it is made.
    pub(super) fn copy_draft(&self) -> PathBuf {
        self.folder.join("requests.copy.new")
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder, for its owner only, and everything above it that is missing.
    ///
    /// # Errors
    /// When it cannot be made, or is not ours to close to others.
    pub(super) fn make(&self) -> io::Result<()> {
        if !self.folder.is_dir() {
            create_folder(&self.folder)?;
            if let Some(parent) = self.folder.parent() {
                flush_folder(parent)?;
            }
        }
        std::fs::set_permissions(&self.folder, Permissions::from_mode(FOLDER_MODE))
    }

    /// Takes the lock for as long as the returned file is open. None when somebody else has it. A process that a dying daemon was just
    /// starting has it too, until it is another program: that is waited out.
    ///
    /// # Errors
    /// When the lock file cannot be made.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let file = create(&self.folder.join("requests.lock"))?;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Puts the database, its log and its index aside, together, so that nothing of the evidence is lost and nothing is made in their
    /// place. Says where.
    ///
    /// # Errors
    /// When they cannot be moved; they are where they were then.
    pub(super) fn set_aside(&self, now_ms: u64) -> io::Result<PathBuf> {
        let aside = self.fresh("aside", now_ms)?;
        match self.finish(&aside) {
            Ok(()) => Ok(aside),
            Err(error) => {
                self.put_back(&aside)?;
                Err(error)
            }
        }
    }

    /// Puts back what was set aside just now, the database first, so that what is left in between is finished like a kill. Nothing lies in
    /// its place.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub(super) fn put_back(&self, aside: &Path) -> io::Result<()> {
        for name in TRIO {
            match std::fs::rename(aside.join(name), self.folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::remove_dir(aside)?;
        flush_folder(&self.folder)
    }

    /// Moves what is still to be moved: a kill may have come in between. The database goes last, so that without it the rest is missing
    /// too, and with it nothing is.
    ///
    /// # Errors
    /// When they cannot be moved.
    pub(super) fn finish(&self, aside: &Path) -> io::Result<()> {
        if aside.join(TRIO[0]).exists() {
            return Ok(());
        }
        for name in TRIO.iter().rev() {
            match std::fs::rename(self.folder.join(name), aside.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        flush_folder(aside)?;
        flush_folder(&self.folder)
    }

    /// What was set aside and has not been decided about, the newest first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn aside(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with("aside-") {
                found.push(entry.path());
            }
        }
        found.sort();
        found.reverse();
        Ok(found)
    }

    /// Keeps what was set aside, now that it is decided about, under another name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub(super) fn decide(&self, aside: &Path) -> io::Result<PathBuf> {
        let name = aside.file_name().unwrap_or_default();
        let name = name.to_string_lossy().replacen("aside-", "kept-", 1);
        let mut kept = self.folder.join(&name);
        let mut number = 0_u64;
        while kept.exists() {
            number += 1;
            kept = self.folder.join(format!("{name}-{number}"));
        }
        std::fs::rename(aside, &kept)?;
        flush_folder(&self.folder)?;
        Ok(kept)
    }

    /// Puts what lay beside a database, if there is any, to what is kept: the lines of outcomes, which are in the new store, and how far the
    /// old one got.
    ///
    /// # Errors
    /// When it cannot be moved.
    pub(super) fn put_away(&self, kept: &Path) -> io::Result<()> {
        for path in [self.lines(), self.watermark()] {
            match std::fs::rename(&path, kept.join(path.file_name().unwrap_or_default())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        flush_folder(&self.folder)
    }

    /// A new folder for files that are kept, named after the time, and after nothing else that is there already.
    fn fresh(&self, word: &str, now_ms: u64) -> io::Result<PathBuf> {
        for number in 0.. {
            let path = self.folder.join(format!("{word}-{now_ms:013}-{number}"));
            match DirBuilder::new().mode(FOLDER_MODE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| path),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Makes a folder that may be there, and everything above it that is missing, for their owner only.
///
/// # Errors
/// When it cannot be made.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Opens a file for appending and reading, made for its owner only when it is not there.
///
/// # Errors
/// When it cannot be opened, or is not ours to close to others.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Makes what was created, renamed or removed in a folder last.
///
/// # Errors
/// When the folder cannot be flushed.
pub(super) fn flush_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether a folder lies on a file system of another machine, where neither locks nor flushes can be relied on.
///
/// # Errors
/// When the file system does not say.
#[cfg(target_os = "linux")]
pub(super) fn is_remote(folder: &Path) -> io::Result<bool> {
    // No test can bring another machine's disk along.
    #[cfg(test)]
    if let Some(kind) = tests::KIND.get() {
        return Ok(is_remote_kind(kind));
    }
    Ok(is_remote_kind(i128::from(rustix::fs::statfs(folder)?.f_type)))
}

/// Whether the kernel's number of a file system is that of one of another machine.
#[cfg(target_os = "linux")]
fn is_remote_kind(kind: i128) -> bool {
    /// NFS, SMB, CIFS, SMB2, AFS, Coda, NCP, Ceph, 9p, Lustre, as the kernel numbers them.
    const REMOTE: [u32; 10] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x7375_7245,
        0x564c,
        0x00c3_6400,
        0x0102_1997,
        0x0bd0_0bd0,
    ];
    REMOTE.iter().any(|remote| i128::from(*remote) == kind)
}

/// Elsewhere nobody is asked.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub(super) fn is_remote(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests;
