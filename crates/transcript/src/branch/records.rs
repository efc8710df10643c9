//! The usable records of a file from its end, one after the other, whatever branch they are on.

use std::fs::File;
use std::io;

use super::Transcript;
use crate::lines::Backward;
use crate::record::Record;
use crate::salvage;

/// The usable records of a file, last one first.
pub(super) struct Records<'a> {
    file: &'a File,
    lines: Backward<'a>,
    pub(super) length: u64,
    /// What is left of the line that was read last, in the order of the file.
    line: Vec<Record>,
    /// What damaged lines may still cost, in bytes.
    work_left: u64,
    /// The session of the record that was read first.
    pub(super) session_id: Option<String>,
    /// Whether another one was read too.
    pub(super) is_mixed: bool,
    /// Whether a record was read that not every reader finds.
    pub(super) is_disputed: bool,
    /// Whether such records are taken for none.
    leaves_out_disputed: bool,
}

impl<'a> Records<'a> {
    /// Reads from the place `end` towards the beginning.
    pub(super) fn new(transcript: &'a Transcript, end: u64, reach_bytes: u64) -> Self {
        let reach_start = end.saturating_sub(reach_bytes);
        Self {
            file: &transcript.file,
            lines: Backward::new(&transcript.file, end).down_to(reach_start),
            length: transcript.length,
            line: Vec::new(),
            work_left: salvage::WORK_BYTES_MAX,
            session_id: None,
            is_mixed: false,
            is_disputed: false,
            leaves_out_disputed: transcript.leaves_out_disputed,
        }
    }

    pub(super) fn read_from(&self) -> u64 {
        self.line.last().map_or_else(|| self.lines.read_from(), |next| next.span.end)
    }

    /// Whether there is more of the file that may not be read.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.line.is_empty() && self.lines.is_at_floor()
    }

    /// The next record that may be on a branch.
    pub(super) fn next_on_branch(&mut self) -> io::Result<Option<Record>> {
        while self.fill()? {
            if let Some(record) = self.line.pop().filter(Record::is_on_branch) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// The same, if it is a certain one; else it stays.
    pub(super) fn next_if(&mut self, is_wanted: impl Fn(&Record) -> bool) -> io::Result<Option<Record>> {
        while self.fill()? {
            match self.line.last() {
                Some(next) if !next.is_on_branch() => drop(self.line.pop()),
                Some(next) if is_wanted(next) => return Ok(self.line.pop()),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Reads on until there is a record; whether there is.
    fn fill(&mut self) -> io::Result<bool> {
        while self.line.is_empty() && !self.is_out_of_reach() {
            let Some(line) = self.lines.next()? else { return Ok(false) };
            self.line = salvage::records(self.file, &line, &mut self.work_left)?;
            self.is_disputed |= self.line.iter().any(|record| record.is_disputed);
            if self.leaves_out_disputed {
                self.line.retain(|record| !record.is_disputed);
            }
            for record in &self.line {
                let session_id = self.session_id.get_or_insert_with(|| record.session_id.clone());
                self.is_mixed |= *session_id != record.session_id;
            }
        }
        Ok(!self.line.is_empty())
    }
}
