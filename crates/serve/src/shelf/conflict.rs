//! One transcript of two, with all records of both, none twice; or none at all.
//!
//! What both begin with is kept once. If one holds nothing else, the other is the whole. Otherwise the rest of the active copy, which
//! was written later, goes behind the archived one: its records are the branch that goes on, those of the other one stay in the file.
//! That is done only if no record stands in both rests, as its parts would be joined, and if every line of the rest is a record.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde::Deserialize;

use super::files::{Files, ShelfError};
use crate::limits::RESOLVED_BYTES_MAX;
use crate::sidecar::{Place, Sidecar};

/// How the two become one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The archived one holds all.
    KeepArchived,
    /// The active one begins with all of the archived one.
    KeepActive,
    /// These bytes are all.
    Replace(Vec<u8>),
}

/// What of a line names its record.
#[derive(Deserialize)]
struct Named {
    uuid: Option<String>,
}

/// Looks at both copies. Nothing is changed.
///
/// # Errors
/// [`ShelfError::Conflict`] unless it is certain that nothing gets lost.
pub(super) fn plan(files: &Files<'_>) -> Result<Plan, ShelfError> {
    let read = |place| {
        let path = files.layout.transcript_in(place, files.session);
        let is_whole = transcript::check(&path, files.session, files.workspace).is_ok();
        let fits = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= RESOLVED_BYTES_MAX);
        if !is_whole || !fits {
            return Err(ShelfError::Conflict);
        }
        fs::read(&path).map_err(|cause| ShelfError::Failed { path, cause })
    };
    merged(&read(Place::Active)?, &read(Place::Archived)?).ok_or(ShelfError::Conflict)
}

fn merged(active: &[u8], archived: &[u8]) -> Option<Plan> {
    let common = active.iter().zip(archived).take_while(|(one, other)| one == other).count();
    if common == active.len() {
        return Some(Plan::KeepArchived);
    }
    if common == archived.len() {
        return Some(Plan::KeepActive);
    }
    let rest = &active[line_start(active, common)..];
    if archived.strip_suffix(rest).is_some_and(|before| before.is_empty() || before.ends_with(b"\n")) {
        return Some(Plan::KeepArchived);
    }
    if shares_a_record(archived, &rest_names(rest)?) {
        return None;
    }
    let seal: &[u8] = if archived.is_empty() || archived.ends_with(b"\n") { b"" } else { b"\n" };
    Some(Plan::Replace([archived, seal, rest].concat()))
}

fn line_start(text: &[u8], at: usize) -> usize {
    text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |lf| lf + 1)
}

/// The uuids of some lines; none when one of them is no record as a whole.
fn rest_names(rest: &[u8]) -> Option<HashSet<String>> {
    lines(rest).map(|line| serde_json::from_slice::<Named>(line).ok()?.uuid).collect()
}

/// Whether one of the uuids is a record's of the text, or stands in a line that is not read as a whole.
fn shares_a_record(text: &[u8], uuids: &HashSet<String>) -> bool {
    lines(text).any(|line| match serde_json::from_slice::<Named>(line) {
        Ok(Named { uuid }) => uuid.is_some_and(|uuid| uuids.contains(&uuid)),
        Err(_) => uuids.iter().any(|uuid| memmem(line, uuid.as_bytes())),
    })
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
}

/// Whether a word stands anywhere in a text.
fn memmem(text: &[u8], word: &[u8]) -> bool {
    let Some(first) = word.first() else { return true };
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(word) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

impl Plan {
    /// Does it. Each step leaves either both copies or the one that holds all.
    pub(super) fn perform(self, files: &Files<'_>) -> Result<(), ShelfError> {
        let [active, archived] = Place::ALL.map(|place| files.layout.transcript_in(place, files.session));
        self.steps(files, &active, &archived).map_err(|cause| ShelfError::Failed { path: active.clone(), cause })
    }

    fn steps(self, files: &Files<'_>, active: &Path, archived: &Path) -> io::Result<()> {
        match self {
            Self::KeepActive => {
                (files.pace)()?;
                fs::rename(active, archived)?;
                return files.sync();
            }
            Self::KeepArchived => {}
            Self::Replace(bytes) => {
                let draft = files.layout.sidecar(Place::Archived, Sidecar::Merged, files.session);
                (files.pace)()?;
                write(&draft, &bytes)?;
                (files.pace)()?;
                fs::rename(&draft, archived)?;
                files.sync()?;
            }
        }
        files.remove(active)?;
        files.sync()
    }
}

/// Synced whatever the durability: what it replaces is on the disk.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uuid: &str) -> String {
        format!("{{\"uuid\":\"{uuid}\"}}\n")
    }

    /// Two copies in short: a letter is a record, anything else stands as it is.
    fn check(active: &str, archived: &str, expected: &str) {
        let text = |short: &str| -> String {
            short
                .chars()
                .map(|one| if one.is_ascii_uppercase() { line(&format!("uuid-{one}")) } else { one.into() })
                .collect()
        };
        let (active_text, archived_text) = (text(active), text(archived));
        let got = match merged(active_text.as_bytes(), archived_text.as_bytes()) {
            None => "conflict".to_owned(),
            Some(Plan::KeepArchived) => "archived".to_owned(),
            Some(Plan::KeepActive) => "active".to_owned(),
            Some(Plan::Replace(bytes)) => {
                assert_eq!(String::from_utf8(bytes).unwrap(), text(expected), "{active} and {archived}");
                return;
            }
        };
        assert_eq!(got, expected, "{active} and {archived}");
    }

    #[test]
    fn two_copies_become_one_without_loss_or_stay_two() {
        check("AB", "AB", "archived");
        check("AB", "ABC", "archived");
        check("ABC", "AB", "active");
        check("D", "ABC", "ABCD");
        check("ABD", "ABC", "ABCD");
        check("ABD", "ABCD", "archived");
        check("BC", "ABC", "archived");
        check("D", "AB{\"uuid\":\"to", "AB{\"uuid\":\"to\nD");
        // A record of the rest stands in the other one too, whole or in pieces.
        check("ACB", "AB", "conflict");
        check("DA", "ABC", "conflict");
        check("D", "A{\"uuid\":\"uuid-D\",\"cut", "conflict");
        // What cannot be read cannot be compared.
        check("D{torn", "ABC", "conflict");
        check("D{\"no\":\"uuid\"}\n", "ABC", "conflict");
    }
}
