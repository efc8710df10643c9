//! Where a user's sessions live when nobody says so.

use std::path::PathBuf;

use crate::agents::Kind;

/// The store for sessions of that agent: qwen-code's own, so that both can take over each other's sessions; else the
/// user's state folder. Without a home folder it is a folder beside the caller, never one that others can write.
pub(crate) fn default_for(kind: Kind) -> PathBuf {
    let home = std::env::home_dir();
    match kind {
        Kind::Qwen => home.map_or_else(|| PathBuf::from(".qwen"), |home| home.join(".qwen")),
        Kind::Builtin | Kind::Command => std::env::var_os("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| home.map(|home| home.join(".local/state")))
            .map_or_else(|| PathBuf::from(".turnd"), |folder| folder.join("turnd")),
    }
}
