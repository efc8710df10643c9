//! The reading half of an open store: from any thread, on one of a few connections, and never behind the writer.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::Connection;

use super::error::StoreError;
use super::events::{Events, Page, PageError};
use super::late::LateEvidence;
use super::list::{Entry, List, Listed};
use super::looked::{self, Looked};
use super::meta::Meta;
use super::{Store, consumer, events, incarnation, late, list};
use crate::{Cursor, Incarnation, Request, RequestId, Stage, TerminalEvent};

/// What is to be known before the stream is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Which stream it is.
    pub stream_id: String,
    /// The highest number there is, as a place; number 0 before the first event.
    pub cursor: Cursor,
    /// The highest number there is.
    pub head: u64,
    /// The oldest number that is kept; one above the head when none is.
    pub oldest: u64,
    /// Up to which number everything was pruned.
    pub pruned_through: u64,
    /// Ids of version 7 that are older, in epoch milliseconds, are not known any more.
    pub tombstone_floor: u64,
    /// What is wrong with the store, if anything: it takes no new requests then.
    pub trouble: Option<StoreError>,
}

impl Store {
    /// What is known under an id. A store that is known to be corrupt says of none that there is nothing.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn get(&self, request_id: &RequestId) -> Result<Option<Entry>, StoreError> {
        match self.read(|conn| list::get(conn, request_id))? {
            known @ Some(Entry::Request(_) | Entry::Tombstone(_)) => Ok(known),
            none => self.is_whole().map(|()| none),
        }
    }

    /// The same, with all that is told beside it.
    ///
    /// # Errors
    /// See [`StoreError`]; it is corrupt where an ended request has no event, or one that is not what was written.
    pub fn look(&self, request_id: &RequestId) -> Result<Looked, StoreError> {
        let looked = self.read(|conn| looked::look(conn, request_id))?;
        match looked.entry {
            Some(Entry::Request(_) | Entry::Tombstone(_)) => Ok(looked),
            _ => self.is_whole().map(|()| looked),
        }
    }

    /// Whether a request has a prompt of that id. Of what is pruned that is not known any more.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn has_prompt(&self, prompt_id: &str) -> Result<bool, StoreError> {
        let look = "SELECT EXISTS (SELECT 1 FROM request WHERE prompt_id = ?1)";
        self.read(|conn| Ok(conn.prepare_cached(look)?.query_row([prompt_id], |row| row.get(0))?))
    }

    /// A page of requests, the newest first. A store that is known to be corrupt gives none: what it does not show may be there.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn list(&self, list: &List) -> Result<Listed, StoreError> {
        let listed = self.read(|conn| list::list(conn, list))?;
        self.is_whole().map(|()| listed)
    }

    /// Of the newest `most` ends those since `at_ms` (epoch milliseconds), the newest first. It costs what `most` are, however many there are.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn ended_since(&self, at_ms: u64, most: u32) -> Result<Vec<Request>, StoreError> {
        self.read(|conn| list::ended_since(conn, at_ms, most))
    }

    /// How many requests have not ended.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open_requests(&self) -> Result<u64, StoreError> {
        let count = "SELECT count(*) FROM request WHERE terminal_seq IS NULL";
        self.read(|conn| Ok(conn.prepare_cached(count)?.query_row([], |row| row.get(0))?))
    }

    /// A page of the stream.
    ///
    /// # Errors
    /// See [`PageError`].
    pub fn events(&self, page: &Page) -> Result<Events, PageError> {
        self.read(|conn| events::page(conn, page))
    }

    /// The event of a request that has ended.
    ///
    /// # Errors
    /// See [`StoreError`]; it is corrupt where the event is not what was written, or its row disagrees.
    pub fn event_of(&self, request_id: &RequestId) -> Result<Option<TerminalEvent>, StoreError> {
        match self.read(|conn| events::of_request(&*conn.unchecked_transaction()?, request_id))? {
            None => self.is_whole().map(|()| None),
            event => Ok(event),
        }
    }

    /// Which stream it is, how far it goes, and how the store is.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn head(&self) -> Result<Head, StoreError> {
        let meta = self.read(Meta::read)?;
        Ok(Head {
            cursor: meta.cursor(meta.head_seq, &meta.head_chain),
            head: meta.head_seq,
            oldest: meta.pruned_through + 1,
            pruned_through: meta.pruned_through,
            tombstone_floor: meta.tombstone_floor,
            trouble: self.shared.trouble(),
            stream_id: meta.stream_id,
        })
    }

    /// The highest number that was committed, without a look at the file.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.shared.head()
    }

    /// What is wrong with the store, if anything: it takes no new requests then.
    #[must_use]
    pub fn trouble(&self) -> Option<StoreError> {
        self.shared.trouble()
    }

    /// What came after a request's end.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn late(&self, request_id: &RequestId) -> Result<Vec<LateEvidence>, StoreError> {
        self.read(|conn| late::read(conn, request_id))
    }

    /// The outcome of a request that was staged and has not become its end.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn staged(&self, request_id: &RequestId) -> Result<Option<Stage>, StoreError> {
        self.read(|conn| late::staged(conn, request_id))
    }

    /// The agent's process with an id.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn incarnation(&self, incarnation_id: &str) -> Result<Option<Incarnation>, StoreError> {
        self.read(|conn| incarnation::find(conn, incarnation_id))
    }

    /// The agents' processes with these ids, as far as they are on record.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn incarnations<'i>(
        &self,
        ids: impl Iterator<Item = &'i str>,
    ) -> Result<HashMap<String, Incarnation>, StoreError> {
        let ids: BTreeSet<&str> = ids.collect();
        self.read(|conn| {
            let found = ids.into_iter().filter_map(|id| incarnation::find(conn, id).transpose());
            found.map(|found| found.map(|found| (found.incarnation_id.clone(), found))).collect()
        })
    }

    /// All processes of which nobody has said that they are gone, oldest first.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open_incarnations(&self) -> Result<Vec<Incarnation>, StoreError> {
        self.read(incarnation::open)
    }

    /// All named consumers.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn consumers(&self) -> Result<Vec<consumer::Consumer>, StoreError> {
        self.read(consumer::all)
    }

    /// Tells `listener` the newest number after each commit that has terminals, on the writer's thread. It is a hint to look: whoever waits
    /// registers first, then reads, then waits, and misses nothing.
    pub fn on_commit(&self, listener: Arc<dyn Fn(u64) + Send + Sync>) {
        self.shared.listen(listener);
    }

    /// Whether what is not found is not there. To be asked behind the look.
    fn is_whole(&self) -> Result<(), StoreError> {
        match self.shared.trouble() {
            Some(error @ StoreError::Corrupt(_)) => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn read<T, E: From<StoreError>>(&self, look: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E> {
        let reader = self.shared.readers.take()?;
        look(reader.conn()?)
    }
}
