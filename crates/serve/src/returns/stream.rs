//! The terminal stream on its way to a reader (return requests, section 2.12): pulled page by page, one page in memory, no look into the
//! store left open while the socket is written to. A commit only raises the newest number; a reader listens for it before it reads, so
//! that none is missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use request::store::limits::PAGE_BYTES_MAX;
use request::store::{Events, Filter, Page, PageError};
use request::{Cursor, NotThere, Position, TerminalEvent};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::limits::{HEARTBEAT_MS, RECONNECT_MS, RETURNS_PAGE_EVENTS, RETURNS_SUBSCRIBERS_MAX, RETURNS_WRITE_MS};
use crate::refusal::Refusal;
use crate::reply::Body;
use crate::returns::{Returns, refusal};
use crate::tasks::blocking;

/// Chunks on their way to the socket. What waits longer waits in the store.
const CHUNKS_QUEUED: usize = 1;

/// How a reader takes the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object a line; an empty line is a heartbeat.
    Lines,
    /// Server-sent events.
    Events,
}

/// A reader of the stream, and its place in it.
pub(crate) struct Reader {
    returns: Arc<Returns>,
    page: Page,
    newest: watch::Receiver<u64>,
    over: watch::Receiver<bool>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Reader {
    /// A reader of what comes behind a place, at most so many events at a time.
    pub(crate) fn new(returns: &Arc<Returns>, after: Position, filter: Filter, limit: usize) -> Self {
        let newest = returns.follow();
        let page = Page { after, limit, bytes: PAGE_BYTES_MAX, filter };
        Self { returns: Arc::clone(returns), page, newest, over: returns.follow_end(), _place: None }
    }

    /// The same for one that stays.
    ///
    /// # Errors
    /// 503 `subscriber_limit_exceeded`.
    pub(crate) fn staying(returns: &Arc<Returns>, after: Position, filter: Filter) -> Result<Self, Refusal> {
        let Ok(place) = Arc::clone(&returns.subscribers).try_acquire_owned() else {
            let message = format!("Too many readers of the stream (limit {RETURNS_SUBSCRIBERS_MAX})");
            let status = hyper::StatusCode::SERVICE_UNAVAILABLE;
            let refusal = Refusal::new(status, "subscriber_limit_exceeded", message);
            return Err(refusal.with("limit", RETURNS_SUBSCRIBERS_MAX).retry_later());
        };
        Ok(Self { _place: Some(place), ..Self::new(returns, after, filter, RETURNS_PAGE_EVENTS) })
    }

    /// The next page, and the place behind it.
    ///
    /// # Errors
    /// When the place is not in this stream, or the store cannot say.
    pub(crate) async fn next(&mut self) -> Result<Events, PageError> {
        self.newest.borrow_and_update();
        let store = self.returns.store().map_err(|_| PageError::Store(request::store::StoreError::Closed))?;
        let (store, page) = (Arc::clone(store), self.page.clone());
        let read = blocking(move || store.events(&page)).await;
        let events = read.unwrap_or(Err(PageError::Store(request::store::StoreError::Closed)))?;
        self.page.after = Position::Cursor(events.next_cursor.clone());
        Ok(events)
    }

    /// Waits until there may be more, or nothing more will come.
    pub(crate) async fn more(&mut self) {
        // The senders live as long as the daemon's requests do, which this holds.
        tokio::select! {
            _ = self.newest.changed() => {}
            _ = self.over.wait_for(|over| *over) => {}
        }
    }

    /// Whether nothing more will come. To be asked before the last look.
    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }
}

/// Whether all that there is has been read.
pub(crate) fn is_at_head(events: &Events) -> bool {
    events.next_after >= events.head
}

/// The body of a stream, and the task that produces it, beginning with a page that was read already. With `until` it ends behind that
/// number. A body that ends otherwise, because its reader takes too long or the store cannot go on, is broken off.
pub(crate) fn open(
    reader: Reader,
    first: Events,
    form: Form,
    until: Option<u64>,
) -> (Body, impl Future<Output = ()> + Send) {
    let (sender, chunks) = mpsc::channel(CHUNKS_QUEUED);
    let is_whole = Arc::new(AtomicBool::new(false));
    let body = Body::Checked { chunks, is_whole: Arc::clone(&is_whole) };
    (body, Sending { reader, form, until, chunks: sender, is_whole }.run(first))
}

struct Sending {
    reader: Reader,
    form: Form,
    until: Option<u64>,
    chunks: mpsc::Sender<Bytes>,
    is_whole: Arc<AtomicBool>,
}

impl Sending {
    async fn run(mut self, first: Events) {
        if self.form == Form::Events && !self.send(format!("retry: {RECONNECT_MS}\n\n").into()).await {
            return;
        }
        let period = Duration::from_millis(HEARTBEAT_MS);
        let mut heartbeat = interval_at(Instant::now() + period, period);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut events, mut is_last) = (first, false);
        loop {
            let is_over = self.until.is_some_and(|until| events.next_after >= until) || is_last && is_at_head(&events);
            let text = self.page(&events);
            if !text.is_empty() && !self.send(text).await {
                return;
            }
            if is_over {
                return self.is_whole.store(true, Ordering::Release);
            }
            let mut is_asked = !is_at_head(&events);
            while !is_asked {
                tokio::select! {
                    () = self.reader.more() => is_asked = true,
                    _ = heartbeat.tick() => {
                        let sign = self.heartbeat(&events);
                        if !self.send(sign).await {
                            return;
                        }
                    }
                    () = self.chunks.closed() => return,
                }
            }
            is_last = self.reader.is_over();
            events = match self.reader.next().await {
                Ok(events) => events,
                Err(error) => return self.break_off(&error).await,
            };
        }
    }

    /// Whether the reader has taken it in time.
    async fn send(&self, text: Bytes) -> bool {
        matches!(timeout(Duration::from_millis(RETURNS_WRITE_MS), self.chunks.send(text)).await, Ok(Ok(())))
    }

    fn page(&self, events: &Events) -> Bytes {
        let mut text = BytesMut::new();
        let within = |event: &&TerminalEvent| self.until.is_none_or(|until| event.seq <= until);
        for event in events.events.iter().filter(|event| within(event)) {
            match self.form {
                Form::Lines => put_line(&mut text, &event.payload),
                Form::Events => {
                    let cursor = Cursor::new(&events.next_cursor.stream_id, event.seq, &event.chain);
                    put_event(&mut text, Some(&cursor.to_string()), "terminal", &event.payload);
                }
            }
        }
        text.freeze()
    }

    fn heartbeat(&self, events: &Events) -> Bytes {
        let mut text = BytesMut::new();
        match self.form {
            Form::Lines => put_line(&mut text, ""),
            Form::Events => {
                let cursor = events.next_cursor.to_string();
                let body = json!({ "stream_id": events.next_cursor.stream_id, "head": events.head, "cursor": cursor });
                // A filter passes others by, so that the cursor of a heartbeat is a place to come back to as well.
                put_event(&mut text, Some(&cursor), "head", &body.to_string());
            }
        }
        text.freeze()
    }

    /// A reader that cannot go on is told why; a body of lines is just broken off, and the next try answered with the reason.
    async fn break_off(&self, error: &PageError) {
        if self.form == Form::Lines {
            return;
        }
        let refusal = refused(error);
        let mut body: Value = serde_json::to_value(&refusal).unwrap_or_default();
        body["status"] = refusal.status.as_u16().into();
        let mut text = BytesMut::new();
        put_event(&mut text, None, "gap", &body.to_string());
        let is_told = self.send(text.freeze()).await;
        self.is_whole.store(is_told, Ordering::Release);
    }
}

fn put_line(text: &mut BytesMut, line: &str) {
    text.reserve(line.len() + 1);
    text.put_slice(line.as_bytes());
    text.put_slice(b"\n");
}

fn put_event(text: &mut BytesMut, id: Option<&str>, kind: &str, data: &str) {
    if let Some(id) = id {
        text.put_slice(format!("id: {id}\n").as_bytes());
    }
    text.put_slice(format!("event: {kind}\ndata: {data}\n\n").as_bytes());
}

/// What a reader is told whose place is not in this stream. Never a silent wait, never a silent gap.
pub(crate) fn refused(error: &PageError) -> Refusal {
    let why = match error {
        PageError::NotThere(why) => why,
        PageError::Store(error) => return refusal::of_store(error),
    };
    match why {
        NotThere::TooOld { oldest, head } => {
            let message =
                "What comes behind this place is not kept any more; list the requests first, then go on at the oldest";
            let refusal = Refusal::new(hyper::StatusCode::GONE, "cursor_too_old", message);
            refusal.with("oldest", *oldest).with("head", *head)
        }
        NotThere::Ahead { head } => {
            Refusal::conflict("cursor_ahead", "The stream has not come so far: the store was put back or replaced")
                .with("head", *head)
        }
        NotThere::Changed { stream_id } => {
            Refusal::conflict("stream_changed", "The stream is another one").with("stream_id", stream_id.as_str())
        }
        NotThere::Diverged { .. } => {
            Refusal::conflict("stream_diverged", "The stream has another history at this place")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
