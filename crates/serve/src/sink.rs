//! The ledger as the bridge sees it: every fact appended at once, what the disk refuses held and tried again in order.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bridge::{Admission, Ending, PromptLedger};
use ledger::{AppendError, Appender, Fact, Ledger, Record, Wish};

use crate::layout::Layout;
use crate::limits::HELD_RECORDS_MAX;
use crate::options::Durability;
use crate::room::Room;
use crate::sync::lock;

/// The code of a prompt whose daemon died before anything of it was sent.
const NEVER_DISPATCHED: &str = "never_dispatched";

/// The ledgers of all live sessions.
pub(crate) struct LedgerSink {
    layout: Layout,
    durability: Durability,
    books: Mutex<HashMap<String, Arc<Mutex<Book>>>>,
    room: Room,
    /// Records the disk has refused so far, over all sessions.
    held: AtomicUsize,
    /// Appends that failed since the start.
    failures: AtomicU64,
}

/// What the ledger takes.
enum Line {
    /// A fact about a prompt.
    Record(Record),
    /// A client's wish to cancel one.
    Wish(Wish),
}

impl Line {
    fn append(&self, appender: &mut Appender) -> Result<(), AppendError> {
        match self {
            Self::Record(record) => appender.append(record),
            Self::Wish(wish) => appender.append_wish(wish),
        }
    }

    fn prompt_id(&self) -> &str {
        match self {
            Self::Record(record) => &record.prompt_id,
            Self::Wish(wish) => &wish.prompt_id,
        }
    }
}

/// One session's open ledger.
struct Book {
    appender: Appender,
    /// What could not be written yet, oldest first. Nothing overtakes it.
    held: VecDeque<Line>,
}

impl LedgerSink {
    /// A sink with no file open.
    pub(crate) fn new(layout: Layout, durability: Durability, room: Room) -> Self {
        let (books, held, failures) = (Mutex::default(), AtomicUsize::new(0), AtomicU64::new(0));
        Self { layout, durability, books, room, held, failures }
    }

    /// The ledger of a session, as a path and a durability.
    pub(crate) fn ledger(&self, session: &str) -> Ledger {
        let durability = match self.durability {
            Durability::Process => ledger::Durability::Process,
            Durability::Fsync => ledger::Durability::Fsync,
        };
        Ledger::new(self.layout.ledger(session), durability)
    }

    /// Whether a fact is waiting for the disk.
    pub(crate) fn degraded(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
    }

    /// Appends that failed since the start.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Whether an admission to `session` could be recorded now: none of its facts waits, and the disk takes bytes.
    pub(crate) fn has_room(&self, session: &str) -> bool {
        self.retry_held();
        let waits = self.degraded() && lock(&self.books).get(session).is_some_and(|book| !lock(book).held.is_empty());
        !waits && self.room.probe() && self.is_writable(session)
    }

    /// Whether an admission was kept out because the disk takes nothing, and still would be, whichever session it is for.
    pub(crate) fn is_full(&self) -> bool {
        self.room.is_refused()
    }

    /// Whether what lies at a ledger's place, if anything, is a file that takes bytes.
    fn is_writable(&self, session: &str) -> bool {
        let path = self.layout.ledger(session);
        // For reading too, as the ledger opens it: a pipe that nobody reads would keep whoever only writes waiting.
        let open = || std::fs::OpenOptions::new().read(true).append(true).open(&path)?.metadata();
        let opened = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => return true,
            opened => opened,
        };
        let is_file = opened.as_ref().is_ok_and(std::fs::Metadata::is_file);
        if !is_file {
            tracing::error!(path = %path.display(), error = ?opened.err(), "what lies at the ledger's place takes no line");
        }
        is_file
    }

    /// Tries again what the disk refused.
    pub(crate) fn retry_held(&self) {
        if !self.degraded() {
            return;
        }
        let books: Vec<_> = lock(&self.books).values().cloned().collect();
        for book in books {
            self.settle(&mut lock(&book), None);
        }
    }

    /// Closes the ledgers of sessions that are not live any more. One with facts that still wait stays open.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.books).retain(|session, book| live(session) || !lock(book).held.is_empty());
    }

    /// Whether all facts of a session are in its file, after one more try.
    pub(crate) fn is_settled(&self, session: &str) -> bool {
        self.retry_held();
        lock(&self.books).get(session).is_none_or(|book| lock(book).held.is_empty())
    }

    /// Lets go of the ledger of a session that is removed: nothing that waits for it is written any more.
    pub(crate) fn forget(&self, session: &str) {
        let Some(book) = lock(&self.books).remove(session) else { return };
        let waiting = lock(&book).held.drain(..).count();
        self.held.fetch_sub(waiting, Ordering::Relaxed);
    }

    /// Closes an admission of an earlier life whose prompt is known never to have been sent. Blocks.
    pub(crate) fn never_dispatched(&self, session: &str, prompt: &str, at_ms: u64) {
        self.close_open(session, prompt, || Record::error(prompt, Some(NEVER_DISPATCHED), at_ms));
    }

    /// Writes an end that was on record elsewhere when the daemon of an earlier life died. Blocks.
    pub(crate) fn ended_before(&self, session: &str, prompt: &str, terminal: &bridge::Terminal, at_ms: u64) {
        self.close_open(session, prompt, || {
            terminal_record(&Ending { session_id: session, prompt_id: prompt, terminal, at_ms })
        });
    }

    /// Writes the end of a prompt that its ledger has admitted and not ended. One that cannot be read is left as it is.
    fn close_open(&self, session: &str, prompt: &str, record: impl FnOnce() -> Record) {
        let Ok(reading) = self.ledger(session).read() else { return };
        let is_open = ledger::dangling(&reading.records).contains(&prompt);
        if is_open {
            self.write(session, Line::Record(record()));
        }
    }

    fn write(&self, session: &str, line: Line) {
        let book = self.book(session);
        let mut book = lock(&book);
        self.settle(&mut book, Some(line));
    }

    fn book(&self, session: &str) -> Arc<Mutex<Book>> {
        let mut books = lock(&self.books);
        if let Some(book) = books.get(session) {
            return Arc::clone(book);
        }
        let book = Book { appender: self.ledger(session).appender(), held: VecDeque::new() };
        let book = Arc::new(Mutex::new(book));
        books.insert(session.to_owned(), Arc::clone(&book));
        book
    }

    /// Appends what waits and then `line`; what the disk refuses waits on.
    fn settle(&self, book: &mut Book, line: Option<Line>) {
        while let Some(waiting) = book.held.front() {
            if !self.append(&mut book.appender, waiting) {
                self.hold(book, line);
                return;
            }
            book.held.pop_front();
            if self.held.fetch_sub(1, Ordering::Relaxed) == 1 {
                tracing::info!("ledger is writable again; nothing waits any more");
            }
        }
        let Some(line) = line else { return };
        if !self.append(&mut book.appender, &line) {
            self.hold(book, Some(line));
        }
    }

    /// Whether the line is in the file now.
    fn append(&self, appender: &mut Appender, line: &Line) -> bool {
        match line.append(appender) {
            Ok(()) => true,
            Err(error) => {
                self.failed(&error);
                // It is in the file, only not certain to survive a power cut; written again it would be there twice.
                matches!(error, AppendError::NotSynced(_))
            }
        }
    }

    fn hold(&self, book: &mut Book, line: Option<Line>) {
        let Some(line) = line else { return };
        if self.held.load(Ordering::Relaxed) >= HELD_RECORDS_MAX {
            tracing::error!(prompt = line.prompt_id(), "a ledger record is lost: too many wait for the disk already");
            return;
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        book.held.push_back(line);
    }

    /// Counts a failure; the first of a row is logged, the rest would only repeat it.
    fn failed(&self, error: &AppendError) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if !self.degraded() {
            tracing::error!(%error, "ledger append failed; the record is held and tried again");
        }
    }
}

impl PromptLedger for LedgerSink {
    fn admitted(&self, admission: &Admission<'_>) {
        let marker = transcript::tail_uuid(&self.layout.transcript(admission.session_id));
        let record = Record::in_flight(admission.prompt_id, marker.as_deref(), admission.at_ms);
        self.write(admission.session_id, Line::Record(record));
        if self.degraded() {
            // The disk had room a moment ago, or nothing would have been admitted. What was kept for this is enough for the line.
            self.room.give_up();
            self.retry_held();
        }
    }

    /// On a disk that takes nothing the wish waits like any fact, and the agent hears of it all the same: a cancel that a full
    /// disk could stop would be worse than one that a crash can make forgotten.
    fn cancel_wished(&self, wish: &bridge::Wish<'_>) {
        self.write(wish.session_id, Line::Wish(Wish::new(wish.prompt_id, wish.at_ms)));
    }

    fn ended(&self, ending: &Ending<'_>) {
        self.write(ending.session_id, Line::Record(terminal_record(ending)));
    }
}

/// The line of an outcome (ledger seed): a stop reason only for a completed prompt, a code only for an error.
fn terminal_record(ending: &Ending<'_>) -> Record {
    let (terminal, code, stop_reason) = match ending.terminal {
        bridge::Terminal::Completed { stop_reason } => (ledger::Terminal::Completed, None, Some(stop_reason.clone())),
        bridge::Terminal::Cancelled { .. } => (ledger::Terminal::Cancelled, None, None),
        bridge::Terminal::Error { code, .. } => (ledger::Terminal::Error, code.clone(), None),
    };
    let mut record = Record::cancelled(ending.prompt_id, ending.at_ms);
    record.fact = Fact::Terminal { terminal, code, stop_reason };
    record
}

#[cfg(test)]
mod tests;
