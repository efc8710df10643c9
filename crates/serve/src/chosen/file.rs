//! The file of chosen ids: one JSON line for each claim, appended in one write behind a sealed tail.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::options::Durability;

/// One line: the id is taken, or, withdrawn, free again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) prompt_id: String,
    /// A digest of what was asked.
    pub(crate) content: u128,
    pub(crate) withdrawn: bool,
}

/// A claim as it stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    v: u8,
    prompt_id: String,
    content: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withdrawn: bool,
}

/// Where a session's claims lie.
#[derive(Debug)]
pub(crate) struct ClaimFile {
    path: PathBuf,
    durability: Durability,
}

impl ClaimFile {
    /// Touches nothing.
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability }
    }

    /// All claims in order. Lines that are none, such as a torn one, are skipped; no file is no claim.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(crate) fn read(&self) -> io::Result<Vec<Claim>> {
        let mut bytes = Vec::new();
        match transcript::open_regular(&self.path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        Ok(bytes.split(|byte| *byte == b'\n').filter_map(parse).collect())
    }

    /// Appends a claim.
    ///
    /// # Errors
    /// When it is not in the file afterwards, or, with [`Durability::Fsync`], not certain to stay there.
    pub(crate) fn append(&self, claim: &Claim) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        let seal = if ends_torn(&mut file)? { "\n" } else { "" };
        let line = Line {
            v: 1,
            prompt_id: claim.prompt_id.clone(),
            content: format!("{:032x}", claim.content),
            withdrawn: claim.withdrawn,
        };
        let text = format!("{seal}{}\n", serde_json::to_string(&line)?);
        let written = file.write(text.as_bytes())?;
        if written < text.len() {
            return Err(io::Error::new(ErrorKind::WriteZero, "only a part of the line was written"));
        }
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Fsync => file.sync_data(),
        }
    }
}

fn parse(line: &[u8]) -> Option<Claim> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let content = u128::from_str_radix(&line.content, 16).ok()?;
    (line.v == 1).then_some(Claim { prompt_id: line.prompt_id, content, withdrawn: line.withdrawn })
}

/// Whether the file ends inside a line.
fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(prompt_id: &str, content: u128) -> Claim {
        Claim { prompt_id: prompt_id.into(), content, withdrawn: false }
    }

    #[test]
    fn what_is_appended_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = ClaimFile::new(folder.path().join("deep/s.prompt-ids"), Durability::Fsync);
        assert_eq!(file.read().unwrap(), []);
        let claims = [claim("a", 0), claim("b", u128::MAX), Claim { withdrawn: true, ..claim("a", 0) }];
        for claim in &claims {
            file.append(claim).unwrap();
        }
        assert_eq!(file.read().unwrap(), claims);
    }

    #[test]
    fn a_line_cut_at_any_byte_costs_only_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.prompt-ids");
        let file = ClaimFile::new(path.clone(), Durability::Process);
        file.append(&claim("a", 1)).unwrap();
        let first = std::fs::metadata(&path).unwrap().len();
        file.append(&claim("b", 2)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for cut in first..whole.len() as u64 {
            std::fs::write(&path, &whole[..usize::try_from(cut).unwrap()]).unwrap();
            file.append(&claim("c", 3)).unwrap();
            let ids: Vec<_> = file.read().unwrap().into_iter().map(|claim| claim.prompt_id).collect();
            // All but the newline may be there: then the line is whole.
            let expected: &[&str] = if cut + 1 == whole.len() as u64 { &["a", "b", "c"] } else { &["a", "c"] };
            assert_eq!(ids, expected, "cut at {cut}");
        }
    }
}
