//! The one thread that writes.
//!
//! It takes what waits, runs it in one transaction, commits, and then tells everybody. What it does when the store fails (return requests,
//! section 2.16) is decided here and nowhere else: before anything was sent the caller is told and may ask again; a fact that was seen is
//! kept and tried again, with growing pauses, for as long as the process lives. Callers do not retry.

use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::ballast::Ballast;
use super::batch::{Committed, Item, stored_commit, transact};
use super::command::{Command, Job, Keep, Turn};
use super::connection;
use super::error::StoreError;
use super::limits::{LOCKED_MS, NOTE_PAUSE, NOTES_UNFLUSHED_MAX, RETRY_FIRST_MS, RETRY_LAST_MS};
use super::place::{Place, create, flush_folder};
use super::queue::{Queue, Taken};
use super::shared::Shared;
use super::watermark::Watermark;
use crate::fail_points::{FailPoints, When};

/// The writer's own things.
pub(super) struct Writer {
    pub(super) place: Place,
    pub(super) busy_ms: u64,
    pub(super) queue: Arc<Queue>,
    pub(super) shared: Arc<Shared>,
    pub(super) fail_points: Arc<FailPoints>,
    pub(super) ballast: Ballast,
    pub(super) watermark: Watermark,
    /// None when the disk failed and the file has not been opened anew.
    pub(super) conn: Option<Connection>,
    /// The number of the last transaction that is in the file.
    pub(super) commit_no: u64,
    /// Facts that the file has not taken yet, oldest first. Nothing overtakes them.
    pub(super) held: Vec<Item>,
    pub(super) retry_ms: u64,
}

impl Writer {
    /// Works until the queue is closed and empty. What is held then gets one more try.
    pub(super) fn run(mut self) {
        loop {
            let is_idle = self.held.is_empty();
            let pause = match is_idle {
                true => (self.watermark.unflushed() > 0).then_some(NOTE_PAUSE),
                false => Some(Duration::from_millis(self.retry_ms)),
            };
            match self.queue.take(pause) {
                Taken::Batch(new) if is_idle && new.is_empty() => self.flush_note(),
                Taken::Batch(new) => self.work(new.into_iter().map(Item::new).collect()),
                Taken::Closed => break,
            }
            if self.watermark.unflushed() >= NOTES_UNFLUSHED_MAX {
                self.flush_note();
            }
        }
        self.work(Vec::new());
        let held = std::mem::take(&mut self.held);
        self.give_up(held, &StoreError::Closed);
        if self.conn.is_some() && self.shared.trouble().is_none() {
            self.watermark.end();
        }
    }

    /// After everybody was answered.
    fn flush_note(&mut self) {
        let _ = self.fail_points.reach(When::At, "note_flush");
        self.watermark.flush();
    }

    fn work(&mut self, new: Vec<Item>) {
        if self.shared.is_corrupt() {
            let error = self.shared.trouble().unwrap_or(StoreError::Closed);
            self.give_up(new, &error);
            return;
        }
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.try_all(held);
        }
        if self.held.is_empty() {
            if !new.is_empty() {
                self.try_all(new);
            }
            return;
        }
        let trouble = self.shared.trouble().unwrap_or(StoreError::Busy);
        for item in new {
            match item.command.keep() {
                Keep::Lasting => self.held.push(item),
                Keep::Refusable => self.answer(item.command, Err(trouble.clone())),
            }
        }
    }

    /// Commits a batch, or answers and holds its commands according to the trouble.
    fn try_all(&mut self, mut batch: Vec<Item>) {
        while !batch.is_empty() {
            let error = match self.commit(&mut batch) {
                Ok(committed) => {
                    self.settled(&committed);
                    for item in batch {
                        let outcome = item.tried.map_or(Err(StoreError::Closed), |(_, outcome)| outcome);
                        self.answer(item.command, outcome);
                    }
                    return;
                }
                Err(error) => error,
            };
            if matches!(error, StoreError::Corrupt(_)) {
                self.stop(batch, &error);
                return;
            }
            self.shared.set_trouble(Some(error.clone()));
            let (lasting, refusable): (Vec<_>, Vec<_>) =
                batch.into_iter().partition(|item| item.command.keep() == Keep::Lasting);
            let mut undo = Vec::new();
            let was_mixed = !refusable.is_empty();
            for item in refusable {
                // Whether it is in the file is not known. Its caller is told that it is not, so that it must not stay there.
                if self.conn.is_none() && item.tried.is_some() {
                    undo.extend(item.command.undo().map(Item::new));
                }
                self.answer(item.command, Err(error.clone()));
            }
            batch = lasting;
            batch.extend(undo);
            if batch.is_empty() {
                // So that the trouble is over when it is, although nobody asks for anything.
                self.held = vec![Item::new(probe())];
                return;
            }
            let has_room = error == StoreError::Full && !batch.is_empty() && self.ballast.give_up();
            if !has_room && !was_mixed {
                self.hold(batch, &error);
                return;
            }
        }
    }

    /// One transaction, on a file that is opened anew first if the disk failed.
    fn commit(&mut self, batch: &mut Vec<Item>) -> Result<Committed, StoreError> {
        if self.conn.is_none() {
            self.reopen(batch)?;
        }
        let Some(conn) = &self.conn else { return Err(StoreError::Closed) };
        // Of a lock that was waited for once it is known that it lasts: whoever comes now does not wait for it again, one behind the other.
        let is_locked = self.shared.trouble() == Some(StoreError::Busy);
        conn.busy_timeout(Duration::from_millis(if is_locked { self.busy_ms.min(LOCKED_MS) } else { self.busy_ms }))?;
        // A command ends one request at most.
        self.watermark.reserve(self.watermark.head() + batch.len() as u64)?;
        let number = self.commit_no + 1;
        let error = match transact(conn, batch, number, &self.fail_points) {
            Ok(committed) => {
                if committed.has_written {
                    self.commit_no = number;
                    self.watermark.note(number, committed.newest, committed.wall_ms);
                }
                return Ok(committed);
            }
            Err(error) => error,
        };
        if !conn.is_autocommit() {
            let _ = conn.execute_batch("ROLLBACK");
        }
        if !matches!(error, StoreError::Io(_)) {
            for item in batch {
                item.tried = None;
            }
            return Err(error);
        }
        tracing::error!(%error, "the disk failed under the request store; it is opened anew");
        self.conn = None;
        self.shared.readers.forget();
        self.reopen(batch)?;
        // Opened again: if this very commit is in the file after all, its commands were answered just now.
        if batch.is_empty() { Ok(Committed { newest: None, has_written: true, wall_ms: 0 }) } else { Err(error) }
    }

    /// Opens the file anew and finds out which of the commands are in it: those are answered and leave the batch. A file that has forgotten a
    /// commit that somebody was told of is not gone on with: its next number would be one that was given.
    fn reopen(&mut self, batch: &mut Vec<Item>) -> Result<(), StoreError> {
        self.fail_points.reach(When::At, "reopen")?;
        let conn = connection::writing(&self.place.file(), self.busy_ms)?;
        let (stored, head) = stored_commit(&conn)?;
        if stored < self.commit_no {
            let _ = connection::leave_log(&conn);
            let what = format!("commit {} was done, the file ends with {stored}", self.commit_no);
            return Err(StoreError::Corrupt(what));
        }
        if !connection::checkpoint(&conn)? {
            return Err(StoreError::Busy);
        }
        self.conn = Some(conn);
        self.commit_no = stored;
        self.watermark.note(stored, Some(head), 0);
        let (kept, lost): (Vec<_>, Vec<_>) = std::mem::take(batch)
            .into_iter()
            .partition(|item| item.tried.as_ref().is_some_and(|(no, _)| *no == stored));
        *batch = lost;
        for item in batch.iter_mut() {
            item.tried = None;
        }
        // Also of a command that was refused although its commit was written: a cancel may have ended a request.
        self.shared.announce(head);
        for item in kept {
            let outcome = item.tried.map_or(Ok(()), |(_, outcome)| outcome);
            self.answer(item.command, outcome);
        }
        Ok(())
    }

    /// After a commit: the trouble is over, and who waits for numbers is told.
    fn settled(&mut self, committed: &Committed) {
        if committed.has_written && self.shared.set_trouble(None).is_some() {
            tracing::info!("the request store takes what it is given again");
        }
        self.retry_ms = RETRY_FIRST_MS;
        if let Some(newest) = committed.newest {
            self.shared.announce(newest);
        }
    }

    fn hold(&mut self, batch: Vec<Item>, error: &StoreError) {
        if batch.is_empty() {
            return;
        }
        tracing::warn!(%error, waiting = batch.len(), "the request store takes nothing; what was seen is kept and tried again");
        self.held = batch;
        self.retry_ms = (self.retry_ms * 2).clamp(RETRY_FIRST_MS, RETRY_LAST_MS);
    }

    /// The file is not to be trusted any more: nothing is written to it from here on.
    fn stop(&mut self, batch: Vec<Item>, error: &StoreError) {
        tracing::error!(%error, "the request store is corrupt; it takes nothing more");
        self.shared.set_trouble(Some(error.clone()));
        if let Some(conn) = self.conn.take() {
            let _ = connection::leave_log(&conn);
        }
        self.shared.readers.forget();
        self.give_up(batch, error);
    }

    /// Answers commands that the file will not take; of outcomes a line is left beside it, which `recover` reads.
    fn give_up(&mut self, batch: Vec<Item>, error: &StoreError) {
        for item in batch {
            if let Some(line) = item.command.line()
                && let Err(cause) = append_line(&self.place.lines(), self.place.folder(), &line)
            {
                tracing::error!(%cause, "an outcome is lost: neither the request store nor the file beside it takes it");
            }
            self.answer(item.command, Err(error.clone()));
        }
    }

    /// Tells how a command went. Whoever is told must not take the writer down.
    fn answer(&self, command: Box<dyn Command>, outcome: Result<(), StoreError>) {
        let _ = self.fail_points.reach(When::After, command.step());
        if std::panic::catch_unwind(AssertUnwindSafe(|| command.answer(outcome))).is_err() {
            tracing::error!("whoever was told of a command of the request store panicked");
        }
    }
}

/// A write that changes nothing.
fn probe() -> Box<dyn Command> {
    let work = |turn: &mut Turn<'_>| Ok(turn.conn.execute("UPDATE meta SET commit_no = commit_no", [])?);
    Box::new(Job::lasting("probe", work, |_| ()))
}

fn append_line(path: &Path, folder: &Path, line: &str) -> std::io::Result<()> {
    let mut file = create(path)?;
    // One write: a line of another kill before this one may be torn, and must not spoil this one.
    file.write_all(format!("\n{line}\n").as_bytes())?;
    file.sync_data()?;
    flush_folder(folder)
}
