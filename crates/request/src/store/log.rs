//! The log beside a database, read without SQLite, which looks at the first page of the file before it reads any log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::layout::PAGE_BYTES;

/// Bytes of the log's own head, and of that of a frame.
const HEAD_BYTES: usize = 32;
const FRAME_HEAD_BYTES: usize = 24;
/// How a log begins whose sums are made of little-endian numbers; of big-endian ones it is one more.
const MAGIC: u32 = 0x377f_0682;

/// Brings every commit that is whole in a log into a file, as SQLite does when it opens them: what follows a frame whose sum is wrong is
/// none. Without a log nothing changes.
///
/// # Errors
/// When the disk does not give or take it.
pub(super) fn replay(log: &Path, file: &File) -> io::Result<()> {
    let log = match File::open(log) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        log => log?,
    };
    let Some(committed) = committed(&log)? else { return Ok(()) };
    let mut page = vec![0; PAGE_BYTES];
    for (number, at) in committed.pages {
        log.read_exact_at(&mut page, at)?;
        file.write_all_at(&page, offset(number))?;
    }
    file.set_len(u64::from(committed.file_pages) * PAGE_BYTES as u64)
}

/// Where a page begins in a file. Pages are numbered from 1.
pub(super) fn offset(page: u32) -> u64 {
    u64::from(page.saturating_sub(1)) * PAGE_BYTES as u64
}

/// What the commits of a log come to.
struct Committed {
    /// The newest frame of each page, as the place of its bytes.
    pages: BTreeMap<u32, u64>,
    /// Pages of the whole file behind the last commit.
    file_pages: u32,
}

/// None where there is no whole commit.
fn committed(log: &File) -> io::Result<Option<Committed>> {
    let mut bytes = BufReader::new(log);
    let mut head = [0; HEAD_BYTES];
    if !fill(&mut bytes, &mut head)? || number(&head, 0) & !1 != MAGIC || number(&head, 8) as usize != PAGE_BYTES {
        return Ok(None);
    }
    let mut sum = Sum { is_big_endian: number(&head, 0) & 1 == 1, parts: (0, 0) };
    sum.add(&head[..24]);
    if !sum.is(&head[24..]) {
        return Ok(None);
    }
    let (mut whole, mut pending) = (None, BTreeMap::new());
    let (mut frame, mut page) = ([0; FRAME_HEAD_BYTES], vec![0; PAGE_BYTES]);
    let mut at = HEAD_BYTES as u64;
    while fill(&mut bytes, &mut frame)? && fill(&mut bytes, &mut page)? {
        sum.add(&frame[..8]);
        sum.add(&page);
        // Frames of an earlier round of the log have other salts.
        if frame[8..16] != head[16..24] || !sum.is(&frame[16..]) || number(&frame, 0) == 0 {
            break;
        }
        pending.insert(number(&frame, 0), at + FRAME_HEAD_BYTES as u64);
        at += (FRAME_HEAD_BYTES + PAGE_BYTES) as u64;
        if number(&frame, 4) > 0 {
            let committed = whole.get_or_insert_with(|| Committed { pages: BTreeMap::new(), file_pages: 0 });
            committed.pages.append(&mut pending);
            committed.file_pages = number(&frame, 4);
        }
    }
    if let Some(Committed { pages, file_pages }) = &mut whole {
        pages.retain(|page, _| page <= file_pages);
    }
    Ok(whole)
}

/// False at the end, also in the middle of something.
fn fill(bytes: &mut BufReader<&File>, into: &mut [u8]) -> io::Result<bool> {
    match bytes.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// The sum over all of a log so far.
struct Sum {
    is_big_endian: bool,
    parts: (u32, u32),
}

impl Sum {
    /// Adds a multiple of 8 bytes.
    fn add(&mut self, bytes: &[u8]) {
        let read = if self.is_big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
        let (words, _) = bytes.as_chunks::<4>();
        for pair in words.chunks_exact(2) {
            self.parts.0 = self.parts.0.wrapping_add(read(pair[0])).wrapping_add(self.parts.1);
            self.parts.1 = self.parts.1.wrapping_add(read(pair[1])).wrapping_add(self.parts.0);
        }
    }

    /// Whether it is the one that 8 bytes say.
    fn is(&self, bytes: &[u8]) -> bool {
        (number(bytes, 0), number(bytes, 4)) == self.parts
    }
}

#[cfg(test)]
mod tests;
