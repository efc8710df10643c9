//! A copy of a file whose first page, or whose own list of tables, is damaged, is made readable: SQLite opens no such file at all, though its
//! rows are all there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::connection::APPLICATION_ID;
use super::layout::{Layout, PAGE_BYTES};
use super::log::replay;
use super::open::{OpenError, is_known};
use super::place::TRIO;
use super::schema::{self, Header, VERSION, io as failed};

/// Bytes of the head of a file.
const HEAD_BYTES: usize = 100;

/// Brings the log of a copy into it and gives it a head and a list of tables that are sound. Says which file that is, and
/// whether it is mended: not where its pages are not those of any version that this program knows, since nobody could say what they hold.
///
/// # Errors
/// When the disk does not take it, and when what the log says of the version is none that this program knows.
pub(super) fn mend(copy: &Path) -> Result<(PathBuf, bool), OpenError> {
    let path = copy.join(TRIO[0]);
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
    let log = copy.join(TRIO[1]);
    replay(&log, &file).map_err(failed)?;
    for beside in &TRIO[1..] {
        match std::fs::remove_file(copy.join(beside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error).into()),
            _ => {}
        }
    }
    let versions = match schema::header(&path).map_err(failed)? {
        Header::Version(found) => {
            is_known(found)?;
            found..=found
        }
        Header::Torn | Header::Foreign => 1..=VERSION,
    };
    for version in versions.rev() {
        for layout in Layout::known(version)? {
            if layout.fits(&file).map_err(failed)? {
                begin(&file, version, &layout).map_err(failed)?;
                let conn = Connection::open_with_flags(
                    &path,
                    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
                )?;
                // It is a copy, which nobody needs behind a power cut.
                conn.pragma_update(None, "synchronous", "off")?;
                layout.write(&conn)?;
                conn.close().map_err(|(_, error)| error)?;
                return Ok((path, true));
            }
        }
    }
    Ok((path, false))
}

/// Writes a first page that has a sound head and an empty list. Pages are taken from behind the end, as if none were free, so that no page
/// of the file changes.
fn begin(file: &File, version: i32, layout: &Layout) -> io::Result<()> {
    // What is left of a page at the end is no page: it would be filled up with zeros.
    let whole = u32::try_from(file.metadata()?.len() / PAGE_BYTES as u64).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let pages = whole.max(layout.last_root());
    file.set_len(u64::from(whole) * PAGE_BYTES as u64)?;
    file.set_len(u64::from(pages) * PAGE_BYTES as u64)?;
    file.write_all_at(&first_page(version, pages), 0)
}

fn first_page(version: i32, pages: u32) -> Vec<u8> {
    let mut page = vec![0; PAGE_BYTES];
    let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"SQLite format 3\0");
    // The size of a page; read and written with a log; nothing of a page is set apart; how full it may be, which never differs.
    put(16, &(PAGE_BYTES as u16).to_be_bytes());
    put(18, &[2, 2, 0, 64, 32, 32]);
    // One change, and the same one at 92, so that the number of pages counts.
    put(24, &1_u32.to_be_bytes());
    put(28, &pages.to_be_bytes());
    // One change of the list, its fourth form, and UTF-8.
    put(40, &1_u32.to_be_bytes());
    put(44, &4_u32.to_be_bytes());
    put(56, &1_u32.to_be_bytes());
    put(60, &version.to_be_bytes());
    put(68, &APPLICATION_ID.to_be_bytes());
    put(92, &1_u32.to_be_bytes());
    put(96, &rusqlite::version_number().to_be_bytes());
    // A leaf of a table without a cell: its content begins at the end of the page.
    put(HEAD_BYTES, &[0x0d]);
    put(HEAD_BYTES + 5, &(PAGE_BYTES as u16).to_be_bytes());
    page
}
