//! What was read of transcripts, kept for as long as the files stay as they are: readers of lists ask for the same page again and again.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use transcript::{Headline, open_regular};

use super::folder::written_at_ms;
use crate::limits::HEADLINES_MAX;
use crate::sync::lock;

/// A file, wherever it is moved.
type File = (u64, u64);

/// How far a file has been written: its length in bytes, and when, in nanoseconds since the epoch.
type Extent = (u64, i128);

/// Headlines of files, those asked for last among them.
#[derive(Debug, Default)]
pub(super) struct Headlines {
    young: HashMap<File, (Extent, Arc<Headline>)>,
    /// What was young before. Of it, what is asked for is young again; the rest goes when the next ones get old.
    old: HashMap<File, (Extent, Arc<Headline>)>,
}

/// What a transcript says, and when it was written to last.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) headline: Arc<Headline>,
    /// Epoch milliseconds.
    pub(super) written_at_ms: u64,
}

impl Headlines {
    fn find(&mut self, file: File, extent: Extent) -> Option<Arc<Headline>> {
        let (known, headline) = match self.young.get(&file) {
            Some(young) => young.clone(),
            None => self.old.remove(&file)?,
        };
        if known != extent {
            return None;
        }
        self.keep(file, extent, Arc::clone(&headline));
        Some(headline)
    }

    fn keep(&mut self, file: File, extent: Extent, headline: Arc<Headline>) {
        if self.young.len() >= HEADLINES_MAX / 2 && !self.young.contains_key(&file) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(file, (extent, headline));
    }
}

/// The headline of the transcript at `path`, read where it is not known; none when there is no such file, or it cannot be read: a broken
/// file is missing from a list, and breaks none.
pub(super) fn stored(headlines: &Mutex<Headlines>, path: &Path) -> Option<Stored> {
    let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let file = (metadata.dev(), metadata.ino());
    let extent = (metadata.len(), i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()));
    let written_at_ms = written_at_ms(&metadata);
    let known = lock(headlines).find(file, extent);
    if let Some(headline) = known {
        return Some(Stored { headline, written_at_ms });
    }
    let opened = open_regular(path).ok()?;
    let headline = match Headline::of(&opened, metadata.len()) {
        Ok(headline) => Arc::new(headline),
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "a transcript is left out of a list");
            return None;
        }
    };
    // Kept under the name of the file that was looked at; should another one be there by now, its own length and time tell.
    lock(headlines).keep(file, extent, Arc::clone(&headline));
    Some(Stored { headline, written_at_ms })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn headline(name: &str) -> Arc<Headline> {
        Arc::new(Headline { title: Some(name.to_owned()), ..Headline::default() })
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut headlines = Headlines::default();
        headlines.keep((0, 0), (1, 1), headline("kept"));
        for inode in 1..2 * HEADLINES_MAX as u64 {
            headlines.keep((0, inode), (1, 1), headline("other"));
            assert!(headlines.find((0, 0), (1, 1)).is_some(), "{inode}");
        }
        assert!(headlines.young.len() + headlines.old.len() <= HEADLINES_MAX);
        assert_eq!(headlines.find((0, 1), (1, 1)), None);
        assert_eq!(headlines.find((0, 0), (2, 1)), None, "it has grown");
    }

    #[test]
    fn a_file_that_grew_is_read_again_and_a_moved_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
        let record = |text: &str| {
            format!(r#"{{"sessionId":"s","cwd":"/ws","type":"user","message":{{"parts":[{{"text":"{text}"}}]}}}}"#)
        };
        fs::write(&path, record("one") + "\n").unwrap();
        let headlines = Mutex::new(Headlines::default());
        let first = stored(&headlines, &path).unwrap().headline;
        assert_eq!(first.prompt.as_deref(), Some("one"));
        fs::rename(&path, &moved).unwrap();
        assert!(Arc::ptr_eq(&first, &stored(&headlines, &moved).unwrap().headline));
        fs::write(&moved, record("another") + "\n").unwrap();
        assert_eq!(stored(&headlines, &moved).unwrap().headline.prompt.as_deref(), Some("another"));
        assert!(stored(&headlines, &path).is_none());
    }
}
