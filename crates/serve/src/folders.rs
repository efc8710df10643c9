//! Which folders one daemon serves.

use std::path::{Path, PathBuf};

use thiserror::Error;
use transcript::layout::project_dir_name;

use crate::limits::WORKSPACES_MAX;

/// The folders cannot be served by one daemon from one store.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum FoldersError {
    /// There is none.
    #[error("there is no workspace to serve")]
    None,
    /// There are more than [`WORKSPACES_MAX`].
    #[error("{count} workspaces are more than the {WORKSPACES_MAX} that one daemon serves")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// Two of them have one folder in the store (`/a-b` and `/a/b` do), so that each would find the other's sessions.
    #[error(
        "workspaces {} and {} cannot be served together: a store keeps the sessions of both in one folder, {name}; serve one of them \
         by a daemon with another --store", first.display(), second.display()
    )]
    OneName {
        /// The one that was named first.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
        /// What both are called in the store.
        name: String,
    },
}

/// The folders in their order, each once.
///
/// # Errors
/// See [`FoldersError`].
pub(crate) fn distinct(given: &[PathBuf]) -> Result<Vec<PathBuf>, FoldersError> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in given {
        if folders.contains(folder) {
            continue;
        }
        let name = project_dir_name(folder);
        if let Some(first) = folders.iter().find(|other| project_dir_name(other) == name) {
            return Err(FoldersError::OneName { first: first.clone(), second: folder.clone(), name });
        }
        folders.push(folder.clone());
    }
    match folders.len() {
        0 => Err(FoldersError::None),
        count if count > WORKSPACES_MAX => Err(FoldersError::TooMany { count }),
        _ => Ok(folders),
    }
}

/// The folders in the order in which their locks are taken: the same for every daemon, so that of two that begin at once one gets all.
pub(crate) fn in_lock_order(folders: &[PathBuf]) -> Vec<&Path> {
    let mut ordered: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    ordered.sort_unstable();
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &[&str], expected: Result<&[&str], &str>) {
        let given: Vec<PathBuf> = given.iter().map(PathBuf::from).collect();
        let got = distinct(&given).map_err(|error| error.to_string());
        match (got, expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected.iter().map(PathBuf::from).collect::<Vec<_>>()),
            (Err(got), Err(part)) => assert!(got.contains(part), "{got}"),
            (got, _) => panic!("{given:?}: {got:?}"),
        }
    }

    #[test]
    fn one_folder_named_twice_is_one_workspace() {
        check(&["/b", "/a", "/b"], Ok(&["/b", "/a"]));
    }

    #[test]
    fn two_folders_of_one_name_in_the_store_are_not_served_together() {
        check(&["/a-b", "/c", "/a/b"], Err("/a-b and /a/b cannot be served together"));
        check(&["/é", "/--"], Ok(&["/é", "/--"]));
        check(&["/éx", "/-x"], Err("cannot be served together"));
    }

    #[test]
    fn a_daemon_serves_at_least_one_folder_and_not_too_many() {
        check(&[], Err("no workspace"));
        let many: Vec<String> = (0..=WORKSPACES_MAX).map(|number| format!("/ws{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&many, Err("257 workspaces are more than the 256"));
        check(&many[1..], Ok(&many[1..]));
    }

    #[test]
    fn locks_are_taken_in_one_order_whoever_begins() {
        let (one, other) = (["/b".into(), "/a".into()], ["/a".into(), "/b".into()]);
        assert_eq!(in_lock_order(&one), in_lock_order(&other));
    }
}
