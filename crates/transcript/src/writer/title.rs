//! A session's name, repeated so that a list finds it (wire rules, section 16): lists read the two ends of a transcript, and a long
//! conversation would push a name out of both.
//!
//! The repeat goes with the records that would push it out, in the same write, and is the last of them: there is no moment in which
//! the name is out of sight. One that stands in the beginning is found there, as long as no newer one was given.

use std::io;

use super::{AppendError, Writer};
use crate::body::Body;
use crate::headline::{HEADLINE_BYTES_MAX, last_title};
use crate::record::TITLE_SUBTYPE;

/// Bytes of the window that are left free, for the seal of a torn line and for a rewind's record.
const SLACK_BYTES: u64 = 4 * 1024;
/// Bytes of the end of a transcript in which an earlier writer's name is looked for.
const SEARCH_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The newest name on record, and where.
#[derive(Debug, Clone)]
pub(super) struct Title {
    body: Body,
    /// Where its line begins and ends.
    start: u64,
    end: u64,
}

impl Title {
    /// Whether a list would not find it any more in a file that ends at `end`.
    fn is_out_of_sight(&self, end: u64) -> bool {
        self.end > HEADLINE_BYTES_MAX && end.saturating_sub(self.start) > HEADLINE_BYTES_MAX - SLACK_BYTES
    }
}

impl Writer {
    /// The same, which repeats the session's name from here on.
    ///
    /// # Errors
    /// When the transcript cannot be read.
    pub fn keeping_title(mut self) -> io::Result<Self> {
        let found = last_title(&self.path, SEARCH_BYTES_MAX)?;
        self.title = found.map(|(payload, start, end)| Title { body: named(payload), start, end });
        self.keeps_title = true;
        Ok(self)
    }

    /// The payload of the newest record that names the session, as far as it is known.
    #[must_use]
    pub fn title(&self) -> Option<&serde_json::Value> {
        match &self.title.as_ref()?.body {
            Body::System { payload, .. } => Some(payload),
            _ => None,
        }
    }

    /// Repeats the name where a list would not find it.
    ///
    /// # Errors
    /// See [`AppendError`].
    pub fn repeat_title(&mut self, at_ms: u64) -> Result<(), AppendError> {
        let end = self.length();
        match self.title.clone().filter(|title| title.is_out_of_sight(end)) {
            Some(title) => self.append(at_ms, &title.body).map(drop),
            None => Ok(()),
        }
    }

    /// What is to be repeated behind `bytes` more of a file that has `length`.
    pub(super) fn title_behind(title: Option<&Title>, length: u64, bytes: usize) -> Option<Body> {
        let end = length + bytes as u64;
        title.filter(|title| title.is_out_of_sight(end)).map(|title| title.body.clone())
    }

    /// How long the file is now; nothing where there is none.
    pub(super) fn length(&self) -> u64 {
        let metadata = match &self.file {
            Some(file) => file.metadata(),
            None => std::fs::metadata(&self.path),
        };
        metadata.map_or(0, |metadata| metadata.len())
    }
}

/// The name that a record gives, where it gives one, which stands at these bytes of a file.
pub(super) fn given(body: &Body, start: u64, end: u64) -> Option<Title> {
    let is_title = matches!(body, Body::System { subtype, .. } if subtype == TITLE_SUBTYPE);
    is_title.then(|| Title { body: body.clone(), start, end })
}

fn named(payload: serde_json::Value) -> Body {
    Body::System { subtype: TITLE_SUBTYPE.to_owned(), payload }
}
