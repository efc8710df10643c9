//! Messages on their way to the agent.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::limits::WRITER_FRAMES_MAX;

/// A queue of messages. The machine's part of it is bounded by what can be in it: one prompt and one cancel, an answer for each open
/// permission, one close, and the refusals of an agent whose output is not read on while there are many of them. Beside it come the
/// inquiries of callers, for which there is no bound here: each has a caller who waits for so long.
#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<VecDeque<Bytes>>,
    bell: Notify,
    room: Notify,
}

impl Outbox {
    pub(super) fn push(&self, message: Bytes) {
        self.waiting.lock().push_back(message);
        self.bell.notify_one();
    }

    /// Resolves when the agent's output may be read on.
    pub(super) async fn has_room(&self) {
        while self.waiting.lock().len() >= WRITER_FRAMES_MAX {
            self.room.notified().await;
        }
    }

    /// Writes what comes, for ever or until it cannot.
    pub(super) async fn drain(&self, writer: &mut (impl AsyncWrite + Unpin)) -> std::io::Error {
        loop {
            let next = self.waiting.lock().pop_front();
            self.room.notify_one();
            let result = match next {
                Some(message) => writer.write_all(&message).await,
                None => {
                    // Flushed before sleeping, not after every message: a burst is one flush.
                    let flushed = writer.flush().await;
                    if flushed.is_ok() {
                        self.bell.notified().await;
                    }
                    flushed
                }
            };
            if let Err(error) = result {
                return error;
            }
        }
    }
}
