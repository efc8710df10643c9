//! An event stream on its way to one client: frames as text, comments in between, an end when the session has one.

use std::time::Duration;

use bridge::{Frame, Subscription};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::clock::now_ms;
use crate::limits::{HEARTBEAT_MS, RECONNECT_MS, STREAM_CHUNK_BYTES};
use crate::unpanicked::unpanicked;
use crate::wire::synthetic_frame;

/// Chunks on their way to the socket. What waits longer waits in the subscription, whose bounds decide about eviction.
const CHUNKS_QUEUED: usize = 1;

/// The kind of the frame that closes a replay.
const REPLAY_COMPLETE: &str = "replay_complete";

/// Where the frames of a stream come from.
pub(crate) trait Source: Send {
    /// The next one; none once the stream has ended. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Option<Frame>> + Send;
    /// The next one if it is there.
    fn try_next(&mut self) -> Option<Frame>;
}

impl Source for Subscription {
    async fn next(&mut self) -> Option<Frame> {
        Self::next(self).await
    }

    fn try_next(&mut self) -> Option<Frame> {
        Self::try_next(self)
    }
}

/// A stream that is about to be sent.
pub(crate) struct Stream<S> {
    pub(crate) source: S,
    /// A frame to send once the replay is over, or at the head when there is none.
    pub(crate) snapshot: Option<String>,
    /// Whether a replay comes first.
    pub(crate) replays: bool,
}

/// Where the chunks of `stream` go, and the task that produces them. The task ends when the reader is gone or the session is.
pub(crate) fn open<S: Source>(stream: Stream<S>) -> (mpsc::Receiver<Bytes>, impl Future<Output = ()> + Send) {
    let (sender, receiver) = mpsc::channel(CHUNKS_QUEUED);
    (receiver, pump(stream, sender))
}

/// A fault of ours ends one stream, and its reader is told: it can come back with its cursor.
async fn pump<S: Source>(stream: Stream<S>, chunks: mpsc::Sender<Bytes>) {
    if unpanicked(send(stream, &chunks)).await.is_none() {
        let mut text = BytesMut::new();
        let data = json!({ "error": "Internal server error" });
        put_synthetic(&mut text, "stream_error", &synthetic_frame("stream_error", &data, now_ms()));
        // A reader that is gone needs no words.
        let _ = chunks.send(text.freeze()).await;
    }
}

async fn send<S: Source>(mut stream: Stream<S>, chunks: &mpsc::Sender<Bytes>) {
    let mut text = BytesMut::from(format!("retry: {RECONNECT_MS}\n\n").as_bytes());
    if !stream.replays
        && let Some(snapshot) = stream.snapshot.take()
    {
        put_synthetic(&mut text, "session_snapshot", &snapshot);
    }
    if chunks.send(text.split().freeze()).await.is_err() {
        return;
    }
    let period = Duration::from_millis(HEARTBEAT_MS);
    let mut heartbeat = interval_at(Instant::now() + period, period);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = stream.source.next() => match frame {
                Some(frame) => stream.gather(&mut text, &frame),
                None => return,
            },
            _ = heartbeat.tick() => text.put_slice(b": heartbeat\n\n"),
            () = chunks.closed() => return,
        }
        if chunks.send(text.split().freeze()).await.is_err() {
            return;
        }
    }
}

impl<S: Source> Stream<S> {
    /// Writes a frame and those that wait behind it, up to the size of one chunk.
    fn gather(&mut self, text: &mut BytesMut, first: &Frame) {
        self.put(text, first);
        while text.len() < STREAM_CHUNK_BYTES {
            let Some(frame) = self.source.try_next() else { return };
            self.put(text, &frame);
        }
    }

    fn put(&mut self, text: &mut BytesMut, frame: &Frame) {
        put_frame(text, frame);
        if frame.kind == REPLAY_COMPLETE
            && let Some(snapshot) = self.snapshot.take()
        {
            put_synthetic(text, "session_snapshot", &snapshot);
        }
    }
}

/// `id:`, `event:`, `data:` and a blank line; no `id:` on a frame about the stream itself.
fn put_frame(text: &mut BytesMut, frame: &Frame) {
    text.reserve(frame.json.len() + frame.kind.len() + 48);
    if let Some(id) = frame.id {
        text.put_slice(b"id: ");
        text.put_slice(id.to_string().as_bytes());
        text.put_slice(b"\n");
    }
    text.put_slice(b"event: ");
    text.put_slice(frame.kind.as_bytes());
    text.put_slice(b"\ndata: ");
    text.put_slice(&frame.json);
    text.put_slice(b"\n\n");
}

fn put_synthetic(text: &mut BytesMut, kind: &str, json: &str) {
    text.put_slice(format!("event: {kind}\ndata: {json}\n\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One frame a tick, for so many ticks.
    struct Drip {
        clock: tokio::time::Interval,
        left: u64,
    }

    impl Drip {
        fn every(period: Duration, left: u64) -> Stream<Self> {
            let source = Self { clock: interval_at(Instant::now() + period, period), left };
            Stream { source, snapshot: None, replays: false }
        }
    }

    impl Source for Drip {
        async fn next(&mut self) -> Option<Frame> {
            self.clock.tick().await;
            self.left = self.left.checked_sub(1)?;
            Some(Frame { id: Some(1), kind: "word", json: Bytes::from_static(b"{}") })
        }

        fn try_next(&mut self) -> Option<Frame> {
            None
        }
    }

    /// The times in seconds at which heartbeats came, until the stream ended or `chunks_max` chunks were read.
    async fn heartbeats(stream: Stream<Drip>, chunks_max: usize) -> Vec<u64> {
        let (mut chunks, pump) = open(stream);
        let read = async {
            let (began, mut heard) = (Instant::now(), Vec::new());
            for _ in 0..chunks_max {
                let Some(chunk) = chunks.recv().await else { break };
                if chunk.starts_with(b":") {
                    assert_eq!(&chunk[..], b": heartbeat\n\n");
                    heard.push(began.elapsed().as_secs());
                }
            }
            drop(chunks);
            heard
        };
        tokio::join!(read, pump).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_has_a_heartbeat_every_fifteen_seconds() {
        let silence = Drip::every(Duration::from_secs(70), 0);
        assert_eq!(heartbeats(silence, 100).await, [15, 30, 45, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_events_has_its_heartbeats_too() {
        let busy = Drip::every(Duration::from_millis(7), 10_000);
        assert_eq!(heartbeats(busy, usize::MAX).await, [15, 30, 45, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_gone_ends_the_pump() {
        let (chunks, pump) = open(Drip::every(Duration::from_secs(1 << 30), 0));
        drop(chunks);
        pump.await;
    }

    /// A source with a fault behind its first frame.
    struct Faulty(bool);

    impl Source for Faulty {
        async fn next(&mut self) -> Option<Frame> {
            assert!(!std::mem::replace(&mut self.0, true), "on purpose");
            Some(Frame { id: Some(1), kind: "word", json: Bytes::from_static(b"{}") })
        }

        fn try_next(&mut self) -> Option<Frame> {
            None
        }
    }

    #[tokio::test]
    async fn a_fault_in_a_stream_is_told_to_its_reader_as_the_last_frame() {
        let (mut chunks, pump) = open(Stream { source: Faulty(false), snapshot: None, replays: false });
        let read = async {
            let mut said = Vec::new();
            while let Some(chunk) = chunks.recv().await {
                said.push(String::from_utf8(chunk.to_vec()).unwrap());
            }
            said
        };
        let (said, ()) = tokio::join!(read, pump);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].starts_with("id: 1\nevent: word\n"), "{said:?}");
        let last = r#"event: stream_error
data: {"v":1,"type":"stream_error","data":{"error":"Internal server error"},"#;
        assert!(said[2].starts_with(last), "{said:?}");
    }

    #[test]
    fn a_frame_is_three_lines_and_a_blank_one() {
        let mut text = BytesMut::new();
        put_frame(&mut text, &Frame { id: Some(7), kind: "turn_complete", json: Bytes::from_static(b"{\"v\":1}") });
        assert_eq!(&text[..], b"id: 7\nevent: turn_complete\ndata: {\"v\":1}\n\n");
    }

    #[test]
    fn a_frame_without_a_number_has_no_id_line() {
        let mut text = BytesMut::new();
        put_frame(&mut text, &Frame { id: None, kind: REPLAY_COMPLETE, json: Bytes::from_static(b"{}") });
        assert_eq!(&text[..], b"event: replay_complete\ndata: {}\n\n");
    }
}
