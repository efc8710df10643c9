//! The store of return requests: one SQLite file, one thread that writes, a few connections that read (return requests, section 2.5).
//!
//! Every writing call returns at once. What it came to is told to its `reply`, after the commit, on the writer's thread; of a store that is
//! closed, or with too much waiting, at once on the caller's own. So a reply hands on and returns, and takes no lock that its caller holds.
//! Commands that wait share a commit; they are done in the order in which they came.
//!
//! When the store fails (return requests, section 2.16), a command that comes before anything is sent is answered with the trouble, and
//! whoever asked may ask again: [`Store::register`], [`Store::note_incarnation`], [`Store::consumer`], and [`Store::apply`] of `Admitted`,
//! `Dispatched` and `Cancel`. **Everything else is a fact that nobody sees twice: the store keeps it and tries again, without limit, for as
//! long as the process lives; its reply comes when it is durable.** Callers do not try again. Only of a corrupt file, or of a store that is
//! closed, are they answered with an error; an outcome is then on a line of a file beside it, which [`recover`] reads.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

mod apply;
mod ballast;
mod batch;
mod chain;
mod command;
mod connection;
mod consumer;
mod doubt;
mod error;
mod events;
mod export;
mod incarnation;
mod late;
mod layout;
pub mod limits;
mod lines;
mod list;
mod log;
mod looked;
mod mend;
mod meta;
mod open;
mod place;
mod prune;
mod queue;
mod reads;
mod register;
mod rescue;
mod room;
mod row;
mod salvage;
mod schema;
mod shape;
mod shared;
mod verify;
mod watermark;
mod webhook;
mod writer;

pub use apply::Applied;
pub use consumer::{Acknowledgement, Consumer};
pub use error::StoreError;
pub use events::{Events, Filter, Page, PageError};
pub use export::{export, verify};
pub use late::LateEvidence;
pub use list::{Entry, List, Listed};
pub use looked::Looked;
pub use open::OpenError;
pub use prune::{Pruned, Retention};
pub use reads::Head;
pub use register::{Registered, Tombstone};
pub use rescue::{Rescue, recover, reset};
pub use verify::Report;
pub use webhook::{Asked, PREFIX as ENDPOINT_PREFIX, Put, Rotated, Stepped};

use ballast::Ballast;
use command::{Job, Keep};
use lines::Book;
use meta::Meta;
use place::Place;
use queue::Queue;
use shared::{Readers, Shared};
use watermark::Levels;
use writer::Writer;

use crate::fail_points::FailPoints;
use crate::{Incarnation, Input, Registration, Request, RequestId, Stage};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Milliseconds that a lock of another process is waited for.
    pub busy_ms: u64,
    /// Bytes that are kept back so that outcomes fit on a full disk; 0 for none.
    pub ballast_bytes: u64,
    /// Where a test lets it fail.
    pub fail_points: Arc<FailPoints>,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_ms: limits::BUSY_MS, ballast_bytes: limits::BALLAST_BYTES, fail_points: Arc::default() }
    }
}

/// An open store. Dropping it does what waits and closes it.
pub struct Store {
    place: Place,
    options: Options,
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    book: Arc<Book>,
    /// As the last life left it; the epoch is this life's.
    opened: Meta,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in a folder, or makes it there, and gives every request that has not ended, oldest first: recovery decides about
    /// them before anything new is admitted. Blocks. The time is in epoch milliseconds.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(folder: &Path, options: Options, now_ms: u64) -> Result<(Self, Vec<Request>), OpenError> {
        let place = Place::new(folder);
        let lock = Arc::new(open::enter(&place)?);
        let opened = open::open(&place, options.busy_ms, now_ms, &options.fail_points);
        let opened = opened.map_err(|error| room::named(&place, error))?;
        let waiting = list::open(&opened.conn)?;
        let ballast = Ballast::new(place.ballast(), options.ballast_bytes);
        ballast.fill();
        let queue = Arc::new(Queue::default());
        let readers = Readers::new(place.file(), options.busy_ms);
        let shared = Arc::new(Shared::new(readers, opened.meta.head_seq));
        let writer = Writer {
            place: place.clone(),
            busy_ms: options.busy_ms,
            queue: Arc::clone(&queue),
            shared: Arc::clone(&shared),
            fail_points: Arc::clone(&options.fail_points),
            ballast,
            watermark: opened.watermark,
            conn: Some(opened.conn),
            commit_no: opened.meta.commit_no,
            held: Vec::new(),
            retry_ms: limits::RETRY_FIRST_MS,
        };
        let writer = begin(writer, lock).map_err(schema::io)?;
        let writer = Mutex::new(Some(writer));
        let book = Book::of(&waiting);
        Ok((Self { place, options, queue, shared, book, opened: opened.meta, writer }, waiting))
    }

    /// Registers a request: looked up and put in at once, so that of many with one id one is new. Refused while the store is in trouble.
    pub fn register(&self, asked: Registration, reply: impl FnOnce(Result<Registered, StoreError>) + Send + 'static) {
        let (request_id, prompt_id) = (asked.request_id.clone(), asked.prompt_id.clone());
        let book = Arc::clone(&self.book);
        let reply = move |registered: Result<Registered, StoreError>| {
            if let Ok(Registered::New(request)) = &registered {
                book.note(request);
            }
            reply(registered);
        };
        let mut job = Job::refusable("register", move |turn| register::register(turn.conn, &asked), reply);
        job.undo = Some(Box::new(move || {
            let (request_id, prompt_id) = (request_id.clone(), prompt_id.clone());
            let work = move |turn: &mut command::Turn<'_>| register::unregister(turn.conn, &request_id, &prompt_id);
            Box::new(Job::lasting("unregister", work, |_| ()))
        }));
        self.queue.put(Box::new(job));
    }

    /// Lets something happen to a request: the machine decides in the writer's transaction, and what it decides is durable when the reply
    /// comes. `Admitted`, `Dispatched` and `Cancel` are refused while the store is in trouble, everything else is kept until it is done.
    pub fn apply(
        &self,
        request_id: RequestId,
        input: Input,
        at_ms: u64,
        reply: impl FnOnce(Result<Applied, StoreError>) + Send + 'static,
    ) {
        let (keep, step) = (keep(&input), step_of(&input));
        let line = lines::of_input(&self.book, &request_id, &input, at_ms);
        let book = Arc::clone(&self.book);
        let reply = move |applied: Result<Applied, StoreError>| {
            if let Ok(applied) = &applied {
                book.follow(applied);
            }
            reply(applied);
        };
        let work = move |turn: &mut command::Turn<'_>| apply::apply(turn, &request_id, &input, at_ms);
        let mut job = Job::lasting(step, work, reply);
        job.keep = keep;
        job.line = line;
        self.queue.put(Box::new(job));
    }

    /// Keeps an outcome before the ledger has it. The first one of a request stands; of a request that has ended none is kept.
    pub fn stage(
        &self,
        request_id: RequestId,
        stage: Stage,
        reply: impl FnOnce(Result<Request, StoreError>) + Send + 'static,
    ) {
        let line = lines::of_stage(&self.book, &request_id, &stage);
        let work = move |turn: &mut command::Turn<'_>| apply::stage(turn.conn, &request_id, &stage);
        let mut job = Job::lasting("stage", work, reply);
        job.line = Some(line);
        self.queue.put(Box::new(job));
    }

    /// Notes an agent's process, before it gets its first prompt. Refused while the store is in trouble.
    pub fn note_incarnation(
        &self,
        incarnation: Incarnation,
        reply: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut command::Turn<'_>| incarnation::note(turn.conn, &incarnation);
        self.queue.put(Box::new(Job::refusable("incarnation", work, reply)));
    }

    /// Notes that an agent's process is gone, and why. The first word on it stands.
    pub fn end_incarnation(
        &self,
        incarnation_id: String,
        reason: String,
        at_ms: u64,
        reply: impl FnOnce(Result<(), StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut command::Turn<'_>| incarnation::end(turn.conn, &incarnation_id, &reason, at_ms);
        self.queue.put(Box::new(Job::lasting("incarnation_end", work, reply)));
    }

    /// Moves a named consumer forward, or makes it. Refused while the store is in trouble.
    pub fn consumer(
        &self,
        ack: Acknowledgement,
        at_ms: u64,
        reply: impl FnOnce(Result<Consumer, StoreError>) + Send + 'static,
    ) {
        let work = move |turn: &mut command::Turn<'_>| consumer::acknowledge(turn.conn, &ack, at_ms);
        self.queue.put(Box::new(Job::refusable("consumer", work, reply)));
    }

    /// Looks whether everything holds that must. Reads the whole file. `is_recovered` says that no request waits to be decided about any
    /// more.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn verify(&self, is_recovered: bool) -> Result<Report, StoreError> {
        let noted = Levels::read(&self.place.watermark());
        self.read(|conn| verify::look(conn, &noted, verify::Depth::Whole, is_recovered))
    }

    /// Forgets what is old enough, in small steps between which others write, gives the room back to the disk, and keeps some of it back
    /// for bad times. Blocks; is refused, in the middle if need be, while the store is in trouble.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn prune(&self, retention: Retention, now_ms: u64) -> Result<Pruned, StoreError> {
        let mut pruned = Pruned { is_more: true, ..Pruned::default() };
        while pruned.is_more {
            let work = move |turn: &mut command::Turn<'_>| prune::step(turn, &retention, now_ms);
            pruned = pruned.and(self.ask("prune", work)?);
        }
        while self.ask("vacuum", |turn: &mut command::Turn<'_>| prune::vacuum(turn.conn))? {}
        // The log is cut by a connection of its own; the writer waits for it as for anybody else's.
        let conn = connection::writing(&self.place.file(), self.options.busy_ms)?;
        connection::checkpoint(&conn)?;
        Ballast::new(self.place.ballast(), self.options.ballast_bytes).fill();
        Ok(pruned)
    }

    /// Asks the writer for something that may be refused, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        step: &'static str,
        work: impl FnMut(&mut command::Turn<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::channel();
        let reply = move |outcome| {
            let _ = sender.send(outcome);
        };
        self.queue.put(Box::new(Job::refusable(step, work, reply)));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// The plan by which tests let this store fail, for the steps that are not the store's own.
    #[must_use]
    pub fn fail_points(&self) -> &Arc<FailPoints> {
        &self.options.fail_points
    }

    /// Which life of the daemon this is: one more than the last.
    #[must_use]
    pub fn daemon_epoch(&self) -> u64 {
        self.opened.daemon_epoch
    }

    /// Whether the last life closed the store.
    #[must_use]
    pub fn was_clean(&self) -> bool {
        self.opened.clean_shutdown
    }

    /// By how many milliseconds the clock stands before what the last life saw; 0 as it should be. Numbers decide order, never time.
    #[must_use]
    pub fn clock_behind_ms(&self, now_ms: u64) -> u64 {
        self.opened.last_wall_ms.saturating_sub(now_ms)
    }

    /// What an id of version 7 that is made now says of its age, in epoch milliseconds, so that it is not taken for one that is forgotten:
    /// behind a lossy rescue the floor is ahead of the clock.
    #[must_use]
    pub fn born_ms(&self, now_ms: u64) -> u64 {
        self.opened.tombstone_floor.max(now_ms)
    }

    /// Does what waits, notes that the end was a clean one, and closes the file. Blocks. Later calls are answered with `Closed`.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn close(&self, now_ms: u64) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::channel();
        let work = move |turn: &mut command::Turn<'_>| {
            turn.conn.execute("UPDATE meta SET clean_shutdown = 1, last_wall_ms = max(last_wall_ms, ?1)", [now_ms])?;
            Ok(())
        };
        let reply = move |outcome| {
            let _ = sender.send(outcome);
        };
        self.queue.put(Box::new(Job::lasting("close", work, reply)));
        self.end();
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }

    fn end(&self) {
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last one to let go may be a reply, on the writer's own thread.
        if let Some(writer) = writer
            && writer.thread().id() != std::thread::current().id()
        {
            let _ = writer.join();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the writer. It holds the lock until it has let go of the file.
fn begin(writer: Writer, lock: Arc<File>) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("request-store".to_owned()).spawn(move || {
        writer.run();
        drop(lock);
    })
}

/// What becomes of an input while the store cannot write.
const fn keep(input: &Input) -> Keep {
    match input {
        // Nothing was sent, or the caller waits for the answer and can ask again.
        Input::Admitted | Input::Dispatched { .. } | Input::Cancel => Keep::Refusable,
        _ => Keep::Lasting,
    }
}

/// The step that an input is, for the fail points.
const fn step_of(input: &Input) -> &'static str {
    match input {
        Input::Admitted => "admitted",
        Input::Refused => "refused",
        Input::Dropped(_) => "dropped",
        Input::Dispatched { .. } => "dispatched",
        Input::Written => "written",
        Input::WriteFailed { .. } => "write_failed",
        Input::Bound { .. } => "bound",
        Input::Mismatch { .. } => "mismatch",
        Input::Settled(_) => "terminal",
        Input::SessionEnded { .. } => "session_ended",
        Input::AgentExited { .. } => "agent_exited",
        Input::Cancel => "cancel",
        Input::Deadline => "deadline",
        Input::Recovered(_) => "recovered",
    }
}
