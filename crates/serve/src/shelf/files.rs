//! The files of one session on their way to the archive, back, or out of the world. Everything here blocks, and is done under the
//! session's lock.
//!
//! Where the transcript lies, there the session is. It goes first into the archive and comes back last, and of a session that is removed
//! it goes first: so what can be loaded has all of its sidecars, whenever the daemon is killed, and what was left undone is seen and done
//! by the next call. A sidecar that does not follow is a warning (evidence rules, section 1); a transcript that does not is an error.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ledger::sidecar::Pace;
use thiserror::Error;
use transcript::Absent;

use super::conflict;
use crate::layout::Layout;
use crate::sidecar::{Collision, Place, Sidecar};

/// One session's files.
pub(crate) struct Files<'a> {
    pub(crate) layout: &'a Layout,
    /// The folder of the workspace, which the transcript must name.
    pub(crate) workspace: &'a Path,
    pub(crate) session: &'a str,
    /// Whether what is done has to survive the loss of power.
    pub(crate) is_synced: bool,
    /// Asked before each change to the disk. An error stops everything, as the end of the process would.
    pub(crate) pace: Pace<'a>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is where it was wanted, or gone.
    Now {
        /// Two transcripts were made one.
        resolved: bool,
    },
    /// It was before.
    Already,
    /// There is no such session.
    NotFound,
}

/// Why nothing came of it.
#[derive(Debug, Error)]
pub(crate) enum ShelfError {
    /// Both places have a transcript, and to make one of them was not asked or cannot be done without loss.
    #[error("there are an active and an archived transcript")]
    Conflict,
    /// The transcript stays where it is.
    #[error("the transcript {} cannot be moved or removed: {cause}", path.display())]
    Failed {
        /// Where it is.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// Where the transcript is.
#[derive(Debug, PartialEq, Eq)]
enum Stands {
    Nowhere,
    At(Place),
    /// One file under both names: a move was cut off between its two steps.
    Between,
    /// Two files.
    Both,
}

impl Files<'_> {
    /// Puts the session away.
    ///
    /// # Errors
    /// See [`ShelfError`]; what was done is finished by the next call.
    pub(crate) fn archive(&self, resolve: bool) -> Result<Done, ShelfError> {
        let done = match self.stands()? {
            Stands::Nowhere => return Ok(Done::NotFound),
            Stands::At(Place::Archived) => Done::Already,
            Stands::At(Place::Active) | Stands::Between => {
                self.move_transcript(Place::Active, Place::Archived)?;
                Done::Now { resolved: false }
            }
            Stands::Both => self.resolve(resolve)?,
        };
        self.follow(Place::Active, Place::Archived);
        Ok(done)
    }

    /// Takes the session back.
    ///
    /// # Errors
    /// See [`ShelfError`]; what was done is finished by the next call.
    pub(crate) fn unarchive(&self, resolve: bool) -> Result<Done, ShelfError> {
        let done = match self.stands()? {
            Stands::Nowhere => return Ok(Done::NotFound),
            Stands::At(Place::Active) => {
                self.follow(Place::Archived, Place::Active);
                return Ok(Done::Already);
            }
            Stands::At(Place::Archived) | Stands::Between => Done::Now { resolved: false },
            Stands::Both => self.resolve(resolve)?,
        };
        self.follow(Place::Archived, Place::Active);
        self.move_transcript(Place::Archived, Place::Active)?;
        Ok(done)
    }

    /// Removes the session. `release` gives back the prompt ids that it owns, as long as the file is there that lists them.
    ///
    /// # Errors
    /// When a transcript stays; the next call goes on.
    pub(crate) fn delete(&self, release: &dyn Fn() -> io::Result<()>) -> Result<Done, ShelfError> {
        if self.is_foreign() {
            return Ok(Done::NotFound);
        }
        let mut found = false;
        for place in Place::ALL {
            let path = self.layout.transcript_in(place, self.session);
            found |= self.remove(&path).map_err(|cause| ShelfError::Failed { path, cause })?;
        }
        self.sync_warned();
        if let Err(error) = release() {
            tracing::warn!(session = self.session, %error, "the prompt ids of a removed session are not given back yet");
        }
        for (sidecar, place) in Sidecar::ALL.into_iter().flat_map(|sidecar| Place::ALL.map(|place| (sidecar, place))) {
            let path = self.layout.sidecar(place, sidecar, self.session);
            match self.remove(&path) {
                Ok(was_there) => found |= was_there && sidecar.is_evidence(),
                Err(error) => {
                    tracing::warn!(session = self.session, path = %full(&path), %error, "a file of a removed session stays");
                }
            }
        }
        self.sync_warned();
        Ok(if found { Done::Now { resolved: false } } else { Done::NotFound })
    }

    fn stands(&self) -> Result<Stands, ShelfError> {
        let [active, archived] = Place::ALL.map(|place| self.layout.transcript_in(place, self.session));
        let look = |path: &Path| identity(path).map_err(|cause| ShelfError::Failed { path: path.to_owned(), cause });
        let (at_active, at_archived) = (look(&active)?, look(&archived)?);
        if self.is_foreign() {
            return Ok(Stands::Nowhere);
        }
        Ok(match (at_active, at_archived) {
            (None, None) => Stands::Nowhere,
            (Some(_), None) => Stands::At(Place::Active),
            (None, Some(_)) => Stands::At(Place::Archived),
            (Some(one), Some(other)) if one == other => Stands::Between,
            (Some(_), Some(_)) => Stands::Both,
        })
    }

    /// Whether a file of this name is another workspace's: two workspaces may share a folder.
    fn is_foreign(&self) -> bool {
        Place::ALL.into_iter().any(|place| {
            let path = self.layout.transcript_in(place, self.session);
            matches!(transcript::check(&path, self.session, self.workspace), Err(Absent::ForeignWorkspace))
        })
    }

    /// Makes one transcript of two, in the archive. The sidecars go before, so that the lines of both stand in the same order however
    /// often this is begun.
    fn resolve(&self, is_wanted: bool) -> Result<Done, ShelfError> {
        if !is_wanted {
            return Err(ShelfError::Conflict);
        }
        let plan = conflict::plan(self)?;
        self.follow(Place::Active, Place::Archived);
        plan.perform(self)?;
        Ok(Done::Now { resolved: true })
    }

    fn move_transcript(&self, from: Place, to: Place) -> Result<(), ShelfError> {
        let [from, to] = [from, to].map(|place| self.layout.transcript_in(place, self.session));
        match self.move_whole(&from, &to) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ShelfError::Conflict),
            Err(cause) => Err(ShelfError::Failed { path: from, cause }),
        }
    }

    /// Every sidecar goes where the transcript went or will go. What does not is said, and stays.
    fn follow(&self, from: Place, to: Place) {
        for sidecar in Sidecar::ALL {
            let [from, to] = [from, to].map(|place| self.layout.sidecar(place, sidecar, self.session));
            if let Err(error) = self.move_sidecar(sidecar, &from, &to) {
                let (from, to) = (full(&from), full(&to));
                tracing::warn!(session = self.session, %from, %to, %error, "a sidecar does not follow its transcript");
            }
        }
        self.sync_warned();
    }

    fn move_sidecar(&self, sidecar: Sidecar, from: &Path, to: &Path) -> io::Result<()> {
        match sidecar.collision() {
            Collision::Append => ledger::sidecar::move_paced(from, to, self.pace).map_err(|error| error.source),
            Collision::Drop => self.remove(from).and_then(|_| self.remove(to)).map(drop),
            _ if self.move_whole(from, to)? => Ok(()),
            Collision::ActiveWins => {
                let [active, archived] =
                    [Place::Active, Place::Archived].map(|place| self.layout.sidecar(place, sidecar, self.session));
                if to == active.as_path() {
                    return self.remove(&archived).map(drop);
                }
                (self.pace)()?;
                fs::rename(active, archived)
            }
            Collision::Keep if fs::read(from)? == fs::read(to)? => self.remove(from).map(drop),
            Collision::Keep => Err(io::Error::other("both are there and say different things; both stay")),
        }
    }

    /// Moves a file to a name that is free, which may take two steps. False when another file has that name; nothing at `from` is
    /// nothing to do.
    fn move_whole(&self, from: &Path, to: &Path) -> io::Result<bool> {
        let Some(source) = identity(from)? else { return Ok(true) };
        match identity(to)? {
            Some(target) if target != source => return Ok(false),
            // The two names of a move that was cut off.
            Some(_) => return self.remove(from).and_then(|_| self.sync()).map(|()| true),
            None => {}
        }
        if let Some(folder) = to.parent() {
            (self.pace)()?;
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        (self.pace)()?;
        match fs::hard_link(from, to) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            // Where there are no links, nobody but us makes the target meanwhile: the session's lock is ours.
            Err(_) => {
                (self.pace)()?;
                fs::rename(from, to)?;
                return self.sync().map(|()| true);
            }
        }
        self.sync()?;
        self.remove(from)?;
        self.sync().map(|()| true)
    }

    /// Removes a file; whether it was there.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        if identity(path)?.is_none() {
            return Ok(false);
        }
        (self.pace)()?;
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the names of both folders survive the loss of power, where that is wanted.
    pub(super) fn sync(&self) -> io::Result<()> {
        if !self.is_synced {
            return Ok(());
        }
        for folder in Place::ALL.map(|place| self.layout.folder(place)).into_iter().filter(|folder| folder.exists()) {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    fn sync_warned(&self) {
        if let Err(error) = self.sync() {
            tracing::warn!(session = self.session, %error, "what was moved may not survive a loss of power");
        }
    }
}

/// Whether both places have a transcript of the session, which no move of ours has left so. Blocks.
pub(crate) fn is_in_conflict(layout: &Layout, session: &str) -> bool {
    let [active, archived] = Place::ALL.map(|place| identity(&layout.transcript_in(place, session)).ok().flatten());
    active.is_some() && archived.is_some() && active != archived
}

/// Which file a name leads to; none when there is none.
fn identity(path: &Path) -> io::Result<Option<(u64, u64)>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some((metadata.dev(), metadata.ino()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A path that says where it is to whoever reads the log.
pub(super) fn full(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

#[cfg(test)]
mod tests;
