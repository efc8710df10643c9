//! Opening a ledger to append to it: its folder, its file, and their modes.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a ledger's file: its owner reads and writes, nobody else sees it.
const FILE_MODE: u32 = 0o600;

/// The mode of a folder that has to be made for a ledger, before the process's mask.
const FOLDER_MODE: u32 = 0o700;

/// How often a file is looked for again while others make and remove it. Each round that is lost was won by somebody
/// else; this many in a row mean that the file cannot be had, as behind a link that leads nowhere.
pub(crate) const ATTEMPTS_MAX: u32 = 1_000;

/// A ledger's file, open for appending and for a look at its last byte.
pub(crate) struct Opened {
    /// The file.
    pub(crate) file: File,
    /// The folders that were made for it, outermost first.
    pub(crate) made_folders: Vec<PathBuf>,
}

/// The file at `path`, if there is one.
pub(crate) fn existing(path: &Path) -> io::Result<Option<Opened>> {
    match OpenOptions::new().read(true).append(true).open(path) {
        Ok(file) => Ok(Some(Opened { file, made_folders: Vec::new() })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The file at `path`, made with its folder when it is missing.
pub(crate) fn existing_or_new(path: &Path) -> io::Result<Opened> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(opened) = existing(path)? {
            return Ok(opened);
        }
        let made_folders = make_folder(folder_of(path))?;
        match new(path) {
            Ok(file) => return Ok(Opened { file, made_folders }),
            // Somebody else was faster, or took the folder away again.
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    Err(comes_and_goes())
}

/// The error of [`ATTEMPTS_MAX`] attempts.
pub(crate) fn comes_and_goes() -> io::Error {
    io::Error::other("the file comes and goes")
}

/// The folder that names the file at `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// IMPORTANT: syncing a file does not sync the entry that names it; a file whose folder was not synced may be gone after
/// a power cut. `made_folders` are named by their own folders in turn.
pub(crate) fn sync_folders(path: &Path, made_folders: &[PathBuf]) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()?;
    for made in made_folders.iter().rev() {
        File::open(folder_of(made))?.sync_all()?;
    }
    Ok(())
}

/// Makes `folder` and what is missing above it; tells which folders were missing.
pub(crate) fn make_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let missing = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    Ok(missing)
}

fn new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create_new(true).mode(FILE_MODE).open(path)?;
    // Said again, because a mask can only take away from what was asked for above.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}
