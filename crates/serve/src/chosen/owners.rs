//! Whose an id is: which session of the workspace it was chosen in, live or not, in this life of the daemon or an earlier one.
//!
//! The ids lie in 4,096 small files, each id in the one that its fingerprint names, so that to ask costs the reading of one file, however
//! many sessions there were, and nothing is held in memory. With a million ids a file has some 30 KB.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::fingerprint;
use super::lines::Lines;
use crate::options::Durability;
use crate::sync::lock;

/// Files the ids are spread over: few enough for a folder, many enough that each stays small.
const FILES: u128 = 4096;
/// Locks the files share. Two ids seldom meet, and an admission holds one only while it reads and writes a line.
const LOCKS: usize = 64;

/// The owners of all chosen ids of one workspace.
pub(super) struct Owners {
    folder: PathBuf,
    durability: Durability,
    locks: [Mutex<()>; LOCKS],
}

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    /// The id is this session's, now or since before.
    Here,
    /// It is another session's.
    Elsewhere,
}

/// One line: the id belongs to the session, or, withdrawn, to nobody.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    v: u8,
    prompt_id: String,
    session_id: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withdrawn: bool,
}

impl Owners {
    /// Touches nothing.
    pub(super) fn new(folder: PathBuf, durability: Durability) -> Self {
        Self { folder, durability, locks: [const { Mutex::new(()) }; LOCKS] }
    }

    /// Makes an id the session's unless it is another one's that `exists`: then nothing is written. `note` writes it down among the
    /// session's own first, so that what is removed with the session is found by them wherever a crash comes. Blocks for two small files.
    ///
    /// # Errors
    /// When that cannot be read or written down: then the id may be said to be nobody's.
    pub(super) fn claim(
        &self,
        prompt_id: &str,
        session_id: &str,
        exists: impl Fn(&str) -> bool,
        note: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Owned> {
        let file = file_of(prompt_id);
        let _held = lock(&self.locks[file % LOCKS]);
        let lines = self.lines(file);
        let owner = owner(&lines, prompt_id)?;
        if owner.as_deref().is_some_and(|owner| owner != session_id && exists(owner)) {
            return Ok(Owned::Elsewhere);
        }
        note()?;
        if owner.as_deref() != Some(session_id) {
            write(&lines, prompt_id, session_id, false)?;
        }
        Ok(Owned::Here)
    }

    /// Takes back what the session claimed.
    ///
    /// # Errors
    /// When that cannot be written down: the id stays the session's.
    pub(super) fn release(&self, prompt_id: &str, session_id: &str) -> io::Result<()> {
        let file = file_of(prompt_id);
        let _held = lock(&self.locks[file % LOCKS]);
        write(&self.lines(file), prompt_id, session_id, true)
    }

    /// Takes every line of a session that is removed out of the files that these ids lie in. Each file is replaced as a whole, so that a
    /// kill leaves the old one or the new one.
    ///
    /// # Errors
    /// When a file cannot be read or replaced: it stays as it was.
    pub(super) fn forget<'i>(&self, prompt_ids: impl Iterator<Item = &'i str>, session_id: &str) -> io::Result<()> {
        for file in prompt_ids.map(file_of).collect::<BTreeSet<_>>() {
            let _held = lock(&self.locks[file % LOCKS]);
            self.lines(file).drop_lines(|bytes| parse(bytes).is_some_and(|line| line.session_id == session_id))?;
        }
        Ok(())
    }

    fn lines(&self, file: usize) -> Lines {
        Lines::new(self.folder.join(format!("{file:03x}")), self.durability)
    }
}

/// The number of the file that an id lies in.
fn file_of(prompt_id: &str) -> usize {
    let fingerprint = fingerprint(&[prompt_id]);
    let folded = (fingerprint ^ fingerprint >> 64 ^ fingerprint >> 96) % FILES;
    usize::try_from(folded).unwrap_or(0)
}

fn owner(lines: &Lines, prompt_id: &str) -> io::Result<Option<String>> {
    let own = lines.read(parse)?.into_iter().rfind(|line| line.prompt_id == prompt_id);
    Ok(own.filter(|line| !line.withdrawn).map(|line| line.session_id))
}

fn parse(bytes: &[u8]) -> Option<Line> {
    serde_json::from_slice::<Line>(bytes).ok().filter(|line| line.v == 1)
}

fn write(lines: &Lines, prompt_id: &str, session_id: &str, withdrawn: bool) -> io::Result<()> {
    let line = Line { v: 1, prompt_id: prompt_id.to_owned(), session_id: session_id.to_owned(), withdrawn };
    lines.append(&serde_json::to_string(&line)?)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn owners(folder: &tempfile::TempDir) -> Owners {
        Owners::new(folder.path().join("deep/prompt-ids"), Durability::Fsync)
    }

    /// A claim whose session notes it without trouble.
    fn claim(owners: &Owners, id: &str, session: &str, exists: impl Fn(&str) -> bool) -> io::Result<Owned> {
        owners.claim(id, session, exists, || Ok(()))
    }

    #[test]
    fn an_id_belongs_to_the_session_that_claimed_it_first_in_this_life_and_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        assert_eq!(claim(&life, "a", "s", |_| true).unwrap(), Owned::Here);
        assert_eq!(
            claim(&life, "a", "s", |_| true).unwrap(),
            Owned::Here,
            "a crash may have come between the claim and its admission"
        );
        assert_eq!(claim(&life, "a", "t", |_| true).unwrap(), Owned::Elsewhere);
        assert_eq!(claim(&owners(&folder), "a", "t", |_| true).unwrap(), Owned::Elsewhere);
        assert_eq!(claim(&owners(&folder), "b", "t", |_| true).unwrap(), Owned::Here);
    }

    #[test]
    fn an_id_that_was_given_back_is_free_for_any_session() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        claim(&life, "a", "s", |_| true).unwrap();
        life.release("a", "s").unwrap();
        assert_eq!(claim(&life, "a", "t", |_| true).unwrap(), Owned::Here);
        assert_eq!(claim(&life, "a", "s", |_| true).unwrap(), Owned::Elsewhere);
    }

    #[test]
    fn an_id_of_a_session_that_is_no_more_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        claim(&life, "a", "s", |_| true).unwrap();
        assert_eq!(claim(&life, "a", "t", |other| other != "s").unwrap(), Owned::Here);
        assert_eq!(claim(&life, "a", "s", |_| true).unwrap(), Owned::Elsewhere);
    }

    #[test]
    fn a_removed_session_leaves_no_line_and_the_lines_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        let ids: Vec<String> = (0..200).map(|number| format!("job-{number}")).collect();
        for (number, id) in ids.iter().enumerate() {
            claim(&life, id, if number % 2 == 0 { "s" } else { "s2" }, |_| true).unwrap();
        }
        life.forget(ids.iter().map(String::as_str), "s").unwrap();
        let left: String = std::fs::read_dir(folder.path().join("deep/prompt-ids"))
            .unwrap()
            .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
            .collect();
        assert_eq!((left.lines().count(), left.matches("\"s2\"").count()), (100, 100));
    }

    #[test]
    fn of_many_who_claim_at_once_one_owns() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        let here = std::thread::scope(|scope| {
            let claims: Vec<_> = (0..16)
                .map(|number| {
                    scope.spawn({
                        let life = &life;
                        move || claim(life, "a", &format!("s{number}"), |_| true)
                    })
                })
                .collect();
            claims.into_iter().map(|claim| claim.join().unwrap().unwrap()).filter(|owned| *owned == Owned::Here).count()
        });
        assert_eq!(here, 1);
    }

    #[test]
    fn a_claim_that_cannot_be_written_is_no_claim() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("deep"), "in the way").unwrap();
        assert!(claim(&owners(&folder), "a", "s", |_| true).is_err());
    }

    #[test]
    fn the_session_notes_its_claim_first_and_none_of_what_is_anothers() {
        let folder = tempfile::tempdir().unwrap();
        let life = owners(&folder);
        let failed = life.claim("a", "s", |_| true, || Err(io::Error::other("no")));
        assert!(failed.is_err());
        assert_eq!(claim(&life, "a", "t", |_| true).unwrap(), Owned::Here, "what was not noted is nobody's");
        let owned = life.claim("a", "s", |_| true, || panic!("it is another one's"));
        assert_eq!(owned.unwrap(), Owned::Elsewhere);
    }

    #[test]
    fn ids_are_spread_evenly() {
        let mut files = HashMap::new();
        for number in 0..40_960 {
            *files.entry(file_of(&format!("job-{number}"))).or_insert(0) += 1;
        }
        let most = files.values().max().copied().unwrap_or(0);
        assert!(files.len() > 3_900 && most < 40, "{} files, {most} ids in one", files.len());
    }
}
