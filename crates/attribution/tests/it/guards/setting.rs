//! What a story has no words for: the state of the two files that no event brings about.

use std::fs;
use std::str::FromStr;

use attribution::strategies::Remains;

use crate::files::Files;

/// A line of a case that begins with `where`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// Whether everything hangs on it.
    pub(super) is_decisive: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    /// `where the ledger is a folder`
    Folder(File),
    /// `where the ledger is empty`
    Empty(File),
    /// `where A was admitted 0.5ms later`, `where A ended 0.5ms later`: fractions of a millisecond, and times before
    /// 1970, which this daemon's clock does not tell and another writer's may.
    Shifted { prompt: String, key: &'static str, by_ms: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum File {
    Ledger,
    Transcript,
}

impl FromStr for Setting {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let marked = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        let words: Vec<_> = marked.unwrap_or(text).split(' ').collect();
        let file = |name: &str| match name {
            "ledger" => Ok(File::Ledger),
            "transcript" => Ok(File::Transcript),
            _ => Err(()),
        };
        let what = match words[..] {
            ["where", "the", name, "is", "a", "folder"] => What::Folder(file(name)?),
            ["where", "the", name, "is", "empty"] => What::Empty(file(name)?),
            ["where", prompt, "was", "admitted", by, direction] => shifted(prompt, "state", by, direction)?,
            ["where", prompt, "ended", by, direction] => shifted(prompt, "terminal", by, direction)?,
            _ => return Err(()),
        };
        Ok(Self { is_decisive: marked.is_some(), what })
    }
}

fn shifted(prompt: &str, key: &'static str, by: &str, direction: &str) -> Result<What, ()> {
    let by_ms: f64 = by.strip_suffix("ms").and_then(|digits| digits.parse().ok()).ok_or(())?;
    let by_ms = match direction {
        "later" => by_ms,
        "earlier" => -by_ms,
        _ => return Err(()),
    };
    Ok(What::Shifted { prompt: prompt.to_owned(), key, by_ms })
}

impl Setting {
    /// Changes what the story left before it is written.
    pub(super) fn change(&self, remains: &mut Remains) {
        match &self.what {
            What::Folder(file) | What::Empty(file) => bytes(remains, *file).clear(),
            What::Shifted { prompt, key, by_ms } => shift(&mut remains.ledger, prompt, key, *by_ms),
        }
    }

    /// Makes of the written files what no bytes make of them.
    pub(super) fn make(&self, files: &Files) {
        let path = |file: File| match file {
            File::Ledger => files.session().ledger.path(),
            File::Transcript => files.session().transcript,
        };
        match &self.what {
            What::Folder(file) => fs::create_dir(path(*file)).unwrap(),
            What::Empty(file) => fs::write(path(*file), "").unwrap(),
            What::Shifted { .. } => {}
        }
    }
}

fn bytes(remains: &mut Remains, file: File) -> &mut Vec<u8> {
    match file {
        File::Ledger => &mut remains.ledger,
        File::Transcript => &mut remains.transcript,
    }
}

/// Moves the time of the prompt's last line of this kind.
fn shift(ledger: &mut Vec<u8>, prompt: &str, key: &str, by_ms: f64) {
    let text = String::from_utf8(ledger.clone()).unwrap();
    let start = text.rfind(&format!("{{\"v\":1,\"promptId\":\"{prompt}\",\"{key}\":")).unwrap();
    let end = start + text[start..].find('\n').unwrap();
    let (before, at_ms) = text[start..end].trim_end_matches('}').rsplit_once(':').unwrap();
    let at_ms = at_ms.parse::<f64>().unwrap() + by_ms;
    *ledger = format!("{}{before}:{at_ms}}}{}", &text[..start], &text[end..]).into_bytes();
}
