//! Where a user's sessions live when nobody says so.

use std::path::PathBuf;

use crate::cli::TranscriptMode;

/// The store for sessions whose transcripts are written so: the one that qwen-code itself writes to, so that both can take
/// over each other's sessions; else the user's state folder. Without a home folder it is a folder beside the caller, never one that others can write.
pub(crate) fn default_for(mode: TranscriptMode) -> PathBuf {
    let home = std::env::home_dir();
    match mode {
        TranscriptMode::Native => home.map_or_else(|| PathBuf::from(".qwen"), |home| home.join(".qwen")),
        TranscriptMode::Recorded => std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| home.map(|home| home.join(".local/state")))
            .map_or_else(|| PathBuf::from(".turnd"), |folder| folder.join("turnd")),
    }
}
