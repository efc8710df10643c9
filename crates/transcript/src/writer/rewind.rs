//! Taking the end of a conversation back: the record that moves the branch.

use serde_json::json;
use thiserror::Error;
use uuid::Uuid;

use super::{AppendError, Writer};
use crate::body::Body;
use crate::tail::leaf_uuid;

/// The subtype of the record.
pub const REWIND_SUBTYPE: &str = "rewind";

/// Where a branch is taken back to, by whoever looked at the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// The last record of the branch as it was seen; none when there is none.
    pub leaf: Option<String>,
    /// The record before the first one that is taken back; none when that was the first of all.
    pub before: Option<String>,
    /// How many entries of the model's history are taken back.
    pub truncated_count: u64,
}

/// Why a branch was not taken back.
#[derive(Debug, Error)]
pub enum RewindError {
    /// Something was written since the transcript was looked at.
    #[error("the transcript has grown since the place was looked up")]
    Grown,
    /// The record could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Writer {
    /// Appends the record that takes the branch back, and returns its uuid; the next record hangs on it. It is one line, so that a
    /// reader finds the branch as it was or taken back, and nothing in between.
    ///
    /// # Errors
    /// See [`RewindError`]; the branch is as it was then. Where the line is in the file although something failed behind it, every
    /// reader takes the branch for taken back, and so it is.
    pub fn rewind(&mut self, at_ms: u64, rewind: &Rewind) -> Result<String, RewindError> {
        if self.parent != rewind.leaf {
            return Err(RewindError::Grown);
        }
        let uuid = Uuid::new_v4().to_string();
        let payload = json!({ "truncatedCount": rewind.truncated_count });
        let body = Body::System { subtype: REWIND_SUBTYPE.to_owned(), payload };
        let mut line = Vec::new();
        self.compose(&mut line, &uuid, rewind.before.as_deref(), at_ms, &body)?;
        if let Err(cause) = self.write(line) {
            let stands = leaf_uuid(&self.path).is_ok_and(|leaf| leaf.as_deref() == Some(&*uuid));
            if !stands {
                return Err(AppendError::Write { path: self.path.clone(), cause }.into());
            }
        }
        self.parent = Some(uuid.clone());
        // It stands, whatever becomes of the name behind it.
        let _ = self.repeat_title(at_ms);
        Ok(uuid)
    }
}
