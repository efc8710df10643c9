//! Opening files that ought to be regular ones.

use std::fs::File;
use std::io;
use std::path::Path;

/// Opens a file for reading, if it is a regular one: to open a pipe would wait for its other end, perhaps for ever, and
/// what a device or a folder holds is no record of ours.
///
/// # Errors
/// When there is none, when it is something else, and when the system refuses.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Looked at before it is opened, since the opening is what would wait.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("what is in its place is not a regular file"));
    }
    File::open(path)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::{Absent, Durability, Identity, Writer, check, tail_uuid};

    #[test]
    fn a_pipe_in_a_transcripts_place_is_unreadable_and_makes_nobody_wait() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("s.jsonl");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(matches!(check(&pipe, "s", Path::new("/ws")), Err(Absent::Unreadable(_))));
        assert_eq!(tail_uuid(&pipe), None);
        let identity = Identity { session_id: "s".to_owned(), cwd: "/ws".to_owned(), version: "0".to_owned() };
        assert!(Writer::open(&pipe, identity, Durability::Process).is_err(), "a writer is refused too");
    }

    #[test]
    fn only_a_regular_file_opens_and_a_missing_one_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(open_regular(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open_regular(folder.path()).unwrap_err().kind(), io::ErrorKind::Other);
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, folder.path().join("link")).unwrap();
        assert!(open_regular(&file).is_ok() && open_regular(&folder.path().join("link")).is_ok());
    }
}
