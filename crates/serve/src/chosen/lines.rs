//! A file of small lines that is only ever appended to: one write a line, behind a sealed tail.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::options::Durability;

/// Where such lines lie.
#[derive(Debug)]
pub(crate) struct Lines {
    path: PathBuf,
    durability: Durability,
}

impl Lines {
    /// Touches nothing.
    pub(crate) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability }
    }

    /// What `parse` makes of each line, in order. Lines of which it makes nothing, such as a torn one, are skipped; no file is no line.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub(crate) fn read<T>(&self, parse: impl Fn(&[u8]) -> Option<T>) -> io::Result<Vec<T>> {
        let mut bytes = Vec::new();
        match transcript::open_regular(&self.path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        Ok(bytes.split(|byte| *byte == b'\n').filter_map(parse).collect())
    }

    /// Appends a line, which has no line end of its own.
    ///
    /// # Errors
    /// When it is not in the file afterwards, or, with [`Durability::Fsync`], not certain to stay there.
    pub(crate) fn append(&self, line: &str) -> io::Result<()> {
        let mut file = self.open()?;
        let (seal, is_fresh) = match last_byte(&mut file)? {
            None => ("", true),
            Some(b'\n') => ("", false),
            Some(_) => ("\n", false),
        };
        let text = format!("{seal}{line}\n");
        let written = file.write(text.as_bytes())?;
        if written < text.len() {
            return Err(io::Error::new(ErrorKind::WriteZero, "only a part of the line was written"));
        }
        if self.durability == Durability::Fsync {
            file.sync_data()?;
            if is_fresh {
                // A file whose name is lost in a power cut is lost with all its bytes.
                File::open(self.folder())?.sync_all()?;
            }
        }
        Ok(())
    }

    /// Replaces the file by one without the lines that `is_dropped` says, or by none if none is left.
    ///
    /// # Errors
    /// When the file cannot be read or replaced. It is as it was then.
    pub(crate) fn drop_lines(&self, is_dropped: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let mut bytes = Vec::new();
        match transcript::open_regular(&self.path) {
            Ok(mut file) => file.read_to_end(&mut bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let kept =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_dropped(line)).collect::<Vec<_>>().concat();
        if kept.len() == bytes.len() {
            return Ok(());
        }
        if kept.is_empty() {
            std::fs::remove_file(&self.path)?;
        } else {
            let draft = self.path.with_extension("tmp");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(&kept)?;
            file.sync_all()?;
            std::fs::rename(&draft, &self.path)?;
        }
        if self.durability == Durability::Fsync { File::open(self.folder())?.sync_all() } else { Ok(()) }
    }

    fn open(&self) -> io::Result<File> {
        let open = || OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path);
        match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(self.folder())?;
                open()
            }
            opened => opened,
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }
}

/// The last byte of a file; none when it is empty.
fn last_byte(file: &mut File) -> io::Result<Option<u8>> {
    if file.metadata()?.len() == 0 {
        return Ok(None);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(Some(last[0]))
}
