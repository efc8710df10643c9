//! Bytes on the disk that can be given up: a full disk then takes the outcomes of what was sent already.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::place::create;

/// The ballast file.
pub(super) struct Ballast {
    path: PathBuf,
    bytes: u64,
}

impl Ballast {
    /// Touches nothing.
    pub(super) fn new(path: PathBuf, bytes: u64) -> Self {
        Self { path, bytes }
    }

    /// Fills it. Without room there is none; it is tried again at the next start and after pruning.
    pub(super) fn fill(&self) {
        let is_there = std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == self.bytes);
        if is_there || self.bytes == 0 {
            return;
        }
        if let Err(cause) = write(&self.path, self.bytes) {
            tracing::warn!(%cause, "there is no room to keep some back for the request store");
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Removes it. Whether there was something to remove.
    pub(super) fn give_up(&self) -> bool {
        let is_removed = std::fs::remove_file(&self.path).is_ok();
        if is_removed {
            tracing::warn!("the disk is full; what was kept back for the request store is given up");
        }
        is_removed
    }
}

/// Real bytes, not a hole: a hole would hold nothing back. They differ, since some file systems keep equal blocks once.
fn write(path: &Path, bytes: u64) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file: File = create(path)?;
    let mut block = [0_u8; 4096];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        for word in block.chunks_exact_mut(8) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            word.copy_from_slice(&seed.to_le_bytes());
        }
        let many = left.min(block.len() as u64);
        file.write_all(&block[..usize::try_from(many).unwrap_or(block.len())])?;
        left -= many;
    }
    file.sync_all()
}
