//! A copy of a conversation under another session's id: the active branch up to a point, and nothing that belongs to the old session alone
//! (wire, section 16.8).
//!
//! The branch is walked from its end, which gives the uuids that are on it and no more, sixteen bytes each. Then the file is read once from its
//! beginning, and each record that is one of those is written on as it stands but for a few of its members. So neither the length of the
//! conversation nor that of a record is ever in memory.

mod record;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;
use thiserror::Error;
use uuid::Uuid;

use crate::body::Body;
use crate::branch::{Transcript, WINDOW_BYTES};
use crate::lines::{Forward, HELD_BYTES_MAX, Line};
use crate::record::{Kind, Record, TITLE_SUBTYPE};
use crate::salvage;
use crate::snapshot::{PageError, Unavailable};
use crate::turn_result::TURN_RESULT_SUBTYPE;
use crate::writer::{AppendError, Durability, Identity, Writer};

/// Records of one copy: their uuids are held, sixty megabytes at most. A gigabyte of usual records has a quarter of them.
const COPIED_RECORDS_MAX: usize = 4_000_000;
/// Readable and writable by the owner alone, as every transcript.
const FILE_MODE: u32 = 0o600;
/// The subtype of the note behind a finished turn that says where a copy may end.
pub const CHECKPOINT_SUBTYPE: &str = "branch_checkpoint";
/// Notes on the branch that are the old session's alone: how its turns ended, and where it came from.
const LEFT_OUT: [&str; 3] = [TURN_RESULT_SUBTYPE, "parent_session", "session_source"];
/// Notes beside the branch that go along with the record they hang on.
const TAKEN_ALONG: [&str; 2] = ["session_artifact_event", "session_artifact_snapshot"];

/// Where a copy ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkPoint {
    /// With the last record of the branch.
    Tip,
    /// With this checkpoint.
    Checkpoint(String),
    /// With this record.
    Record(String),
}

/// What is copied, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The transcript that is copied.
    pub source: PathBuf,
    /// Its session.
    pub source_session: String,
    /// Where the copy ends.
    pub at: ForkPoint,
    /// Who writes the copy, and as which session.
    pub identity: Identity,
    /// What the copy is called.
    pub title: String,
    /// When that is, in epoch milliseconds.
    pub at_ms: u64,
    /// How far the copy must have got.
    pub durability: Durability,
}

/// Why there is no copy. A file that was begun is left, for the caller to remove.
#[derive(Debug, Error)]
pub enum ForkError {
    /// There is no such point on the active branch, or nothing to copy.
    #[error("there is no such point on the active branch")]
    NoPoint,
    /// The branch has more records than are copied.
    #[error("the branch has more than {COPIED_RECORDS_MAX} records")]
    TooLong,
    /// The transcript cannot be read.
    #[error(transparent)]
    Unreadable(#[from] PageError),
    /// The copy cannot be written.
    #[error("cannot write the copy: {0}")]
    Write(#[source] io::Error),
    /// Its name cannot.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Writes the copy to `target`, which must not exist. Blocks, for as long as it takes to read the source twice.
///
/// # Errors
/// See [`ForkError`].
pub fn fork(fork: &Fork, target: &Path) -> Result<(), ForkError> {
    let failed = |cause| ForkError::Unreadable(PageError::of(&fork.source, cause));
    let transcript = Transcript::open(&fork.source).map_err(failed)?.ok_or(ForkError::NoPoint)?;
    let chain = Chain::walk(&transcript, fork)?;
    let file =
        OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(target).map_err(ForkError::Write)?;
    let mut copy = Copy { fork, chain: &chain, source: transcript.file(), out: BufWriter::new(file) };
    copy.run(&transcript)?;
    if let Some(why) = transcript.fate(&fork.source).map_err(failed)? {
        return Err(PageError::unavailable(&fork.source, why).into());
    }
    copy.out.flush().map_err(ForkError::Write)?;
    let title = Body::System {
        subtype: TITLE_SUBTYPE.to_owned(),
        payload: json!({ "customTitle": fork.title, "titleSource": "manual" }),
    };
    let last = chain.kept(Some(chain.last.clone()));
    Writer::behind(target, fork.identity.clone(), fork.durability, last).append(fork.at_ms, &title)?;
    Ok(())
}

/// What is on the branch up to the point.
struct Chain {
    hasher: RandomState,
    /// The uuids as numbers, sorted.
    members: Vec<u128>,
    /// Of records that are left out: what stands before them.
    left_out: HashMap<String, Option<String>>,
    /// The record at the point.
    last: String,
}

impl Chain {
    fn walk(transcript: &Transcript, fork: &Fork) -> Result<Self, ForkError> {
        let failed = |cause| ForkError::Unreadable(PageError::of(&fork.source, cause));
        let mut branch = transcript.branch(WINDOW_BYTES).map_err(failed)?;
        let mut chain =
            Self { hasher: RandomState::new(), members: Vec::new(), left_out: HashMap::new(), last: String::new() };
        while let Some(record) = branch.next_record().map_err(failed)? {
            if chain.last.is_empty() {
                if !is_point(&record, &fork.at) {
                    continue;
                }
                chain.last.clone_from(&record.uuid);
            }
            if chain.members.len() == COPIED_RECORDS_MAX {
                return Err(ForkError::TooLong);
            }
            chain.members.push(chain.number(&record.uuid));
            if is_left_out(&record) {
                chain.left_out.insert(record.uuid, record.parent);
            }
        }
        if branch.session_id() != Some(&*fork.source_session) && !chain.members.is_empty() {
            return Err(PageError::unavailable(&fork.source, Unavailable::TwoSessions).into());
        }
        if chain.members.len() == chain.left_out.len() {
            return Err(ForkError::NoPoint);
        }
        chain.members.sort_unstable();
        Ok(chain)
    }

    fn holds(&self, uuid: &str) -> bool {
        self.members.binary_search(&self.number(uuid)).is_ok()
    }

    /// A uuid is a number; any other text is made one.
    fn number(&self, uuid: &str) -> u128 {
        Uuid::try_parse(uuid).map_or_else(
            |_| u128::from(self.hasher.hash_one(uuid)) << 64 | u128::from(self.hasher.hash_one((uuid, 1))),
            |uuid| uuid.as_u128(),
        )
    }

    /// The first of a record and those before it that is in the copy.
    fn kept(&self, mut uuid: Option<String>) -> Option<String> {
        // A branch that comes back to itself may do so among the records that are left out.
        for _ in 0..=self.left_out.len() {
            let Some(before) = uuid.as_ref().and_then(|uuid| self.left_out.get(uuid)) else { return uuid };
            uuid.clone_from(before);
        }
        None
    }
}

fn is_point(record: &Record, point: &ForkPoint) -> bool {
    match point {
        ForkPoint::Tip => true,
        ForkPoint::Checkpoint(uuid) => record.uuid == *uuid && record.is_note(CHECKPOINT_SUBTYPE),
        ForkPoint::Record(uuid) => record.uuid == *uuid,
    }
}

fn is_left_out(record: &Record) -> bool {
    record.kind == Kind::System && LEFT_OUT.iter().any(|subtype| record.is(subtype))
}

/// A copy under way.
struct Copy<'a> {
    fork: &'a Fork,
    chain: &'a Chain,
    source: &'a File,
    out: BufWriter<File>,
}

impl Copy<'_> {
    fn run(&mut self, transcript: &Transcript) -> Result<(), ForkError> {
        let source = &self.fork.source;
        let failed = |cause| ForkError::Unreadable(PageError::of(source, cause));
        let mut lines = Forward::new(self.source, transcript.len_bytes());
        let (mut held, mut work_left) = (Vec::new(), salvage::WORK_BYTES_MAX);
        while let Some(span) = lines.next().map_err(failed)? {
            let length = span.end - span.start;
            held.clear();
            if length <= HELD_BYTES_MAX {
                held.resize(usize::try_from(length).unwrap_or(0), 0);
                self.source.read_exact_at(&mut held, span.start).map_err(failed)?;
                if held.trim_ascii().is_empty() {
                    continue;
                }
            }
            let line = Line { span: span.clone(), held: (length <= HELD_BYTES_MAX).then_some(&held[..]) };
            for record in salvage::records(self.source, &line, &mut work_left).map_err(failed)? {
                if let Some(parent) = self.place(&record) {
                    self.write(&record, parent.as_deref())?;
                }
            }
        }
        Ok(())
    }

    /// The parent of a record in the copy; none when the record is not in it.
    fn place(&self, record: &Record) -> Option<Option<String>> {
        if record.is_on_branch() {
            let is_copied = self.chain.holds(&record.uuid) && !self.chain.left_out.contains_key(&record.uuid);
            return is_copied.then(|| self.chain.kept(record.parent.clone()));
        }
        let is_taken_along = TAKEN_ALONG.iter().any(|subtype| record.is(subtype));
        let parent = record.parent.as_ref().filter(|parent| is_taken_along && self.chain.holds(parent))?;
        Some(self.chain.kept(Some(parent.clone())))
    }
}
