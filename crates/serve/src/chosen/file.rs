//! The claims of one session: one JSON line for each, appended before the admission that it is for.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lines::Lines;
use crate::options::Durability;

/// One line: the id is taken, or, withdrawn, free again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) prompt_id: String,
    /// A fingerprint of what was asked.
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
    lines: Lines,
}

impl ClaimFile {
    /// Touches nothing.
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { lines: Lines::new(path, durability) }
    }

    /// All claims in order. Lines that are none are skipped; no file is no claim.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(crate) fn read(&self) -> io::Result<Vec<Claim>> {
        self.lines.read(parse)
    }

    /// Appends a claim.
    ///
    /// # Errors
    /// See [`Lines::append`].
    pub(crate) fn append(&self, claim: &Claim) -> io::Result<()> {
        let line = Line {
            v: 1,
            prompt_id: claim.prompt_id.clone(),
            content: format!("{:032x}", claim.content),
            withdrawn: claim.withdrawn,
        };
        self.lines.append(&serde_json::to_string(&line)?)
    }
}

fn parse(line: &[u8]) -> Option<Claim> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let content = u128::from_str_radix(&line.content, 16).ok()?;
    (line.v == 1).then_some(Claim { prompt_id: line.prompt_id, content, withdrawn: line.withdrawn })
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
