//! The folder that a file of a session lies in.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// For its owner only, whatever the umask says: what is said in a session is nobody else's. A folder that is there stays as it is.
const FOLDER_MODE: u32 = 0o700;

/// Makes the folder of `path`, and those above it, where there are none.
///
/// # Errors
/// When one cannot be made.
pub(crate) fn make_for(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_that_are_made_are_for_their_owner_only_and_those_that_are_there_stay_as_they_are() {
        let store = tempfile::tempdir().unwrap();
        let mode = |name: &str| metadata(store.path().join(name)).unwrap().permissions().mode() & 0o777;
        set_permissions(store.path(), Permissions::from_mode(0o755)).unwrap();
        make_for(&store.path().join("projects/chats/s.lock")).unwrap();
        assert_eq!([mode(""), mode("projects"), mode("projects/chats")], [0o755, 0o700, 0o700]);
        set_permissions(store.path().join("projects"), Permissions::from_mode(0o755)).unwrap();
        make_for(&store.path().join("projects/other/s.jsonl")).unwrap();
        assert_eq!([mode("projects"), mode("projects/other")], [0o755, 0o700]);
    }
}
