//! The end of a connection whose client still sends: its answer is followed by an end of ours, and what it sends is read on and thrown
//! away. Who closes with bytes unread has the system reset the connection, and the client may lose an answer that it has not read yet.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::limits::{REMNANT_BYTES_MAX, REMNANT_MS, REMNANT_SILENCE_MS};

/// Bytes that are read at once, to be thrown away.
const SCRAP_BYTES: usize = 16 * 1024;

/// Whether a connection's newest request has a body of which the end was not read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

impl Unread {
    /// A body that notes when it was read to its end.
    pub(crate) fn watch<B: Body>(&self, body: B) -> Watched<B> {
        self.0.store(!body.is_end_stream(), Ordering::Relaxed);
        Watched { body, unread: self.clone() }
    }

    fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A body that notes when it was read to its end.
pub(crate) struct Watched<B> {
    body: B,
    unread: Unread,
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if self.body.is_end_stream() || frame.is_none() {
            self.unread.0.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads on behind the last word, within bounds.
pub(crate) struct Remnant {
    unread: Unread,
    bytes_left: usize,
    /// Both begin with the first look.
    over: Option<Pin<Box<Sleep>>>,
    silence: Option<Pin<Box<Sleep>>>,
}

impl Remnant {
    /// Reads on where something is unread at the end.
    pub(crate) fn behind(unread: Unread) -> Self {
        Self { unread, bytes_left: REMNANT_BYTES_MAX, over: None, silence: None }
    }

    /// Reads on, whatever there is.
    pub(crate) fn of_all() -> Self {
        Self::behind(Unread(Arc::new(AtomicBool::new(true))))
    }

    /// Ready when the client has said all, or has been given all the time and bytes that there are for it.
    pub(crate) fn poll<S: AsyncRead + Unpin>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<()> {
        if !self.unread.is_so() {
            return Poll::Ready(());
        }
        let over = self.over.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(REMNANT_MS))));
        if over.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        loop {
            match read(stream, cx) {
                Poll::Ready(Ok(bytes)) if bytes > 0 && bytes < self.bytes_left => {
                    self.bytes_left -= bytes;
                    self.silence = None;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(REMNANT_SILENCE_MS))));
        silence.as_mut().poll(cx)
    }
}

fn read<S: AsyncRead + Unpin>(stream: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    let mut scrap = [0; SCRAP_BYTES];
    let mut buffer = ReadBuf::new(&mut scrap);
    ready!(Pin::new(stream).poll_read(cx, &mut buffer))?;
    Poll::Ready(Ok(buffer.filled().len()))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty, Full};
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::Instant;

    use super::*;

    /// Something of which the end was not read.
    fn unread() -> Unread {
        let unread = Unread::default();
        drop(unread.watch(Full::new(Bytes::from_static(b"body"))));
        unread
    }

    async fn read_on(stream: &mut (impl AsyncRead + Unpin), unread: Unread) {
        let mut remnant = Remnant::behind(unread);
        poll_fn(|cx| remnant.poll(stream, cx)).await;
    }

    #[tokio::test]
    async fn only_a_body_that_was_read_to_its_end_is_read() {
        let unread = unread();
        assert!(unread.is_so(), "a body that nobody looked at");
        let mut body = unread.watch(Full::new(Bytes::from_static(b"body")));
        while body.frame().await.is_some() {}
        assert!(!unread.is_so());
        let _ = unread.watch(Full::new(Bytes::from_static(b"the next one")));
        assert!(unread.is_so());
        let _ = unread.watch(Empty::<Bytes>::new());
        assert!(!unread.is_so(), "a request without a body");
    }

    #[tokio::test(start_paused = true)]
    async fn who_still_sends_is_read_to_the_end() {
        let (mut near, mut far) = tokio::io::duplex(64);
        let sending = async {
            far.write_all(&[7; 1_000_000]).await.unwrap();
            drop(far);
        };
        tokio::join!(read_on(&mut near, unread()), sending);
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_more_and_who_never_ends_is_given_up() {
        let began = Instant::now();
        let (mut near, _far) = tokio::io::duplex(64);
        read_on(&mut near, unread()).await;
        assert_eq!(began.elapsed().as_millis(), u128::from(REMNANT_SILENCE_MS));
        let (mut near, mut far) = tokio::io::duplex(64);
        let trickling = async {
            while far.write_all(b"x").await.is_ok() {
                sleep(Duration::from_millis(REMNANT_SILENCE_MS / 2)).await;
            }
        };
        let began = Instant::now();
        tokio::select! {
            () = read_on(&mut near, unread()) => {}
            () = trickling => panic!("nobody hung up"),
        }
        assert_eq!(began.elapsed().as_millis(), u128::from(REMNANT_MS));
        let flood = &mut tokio::io::repeat(0);
        read_on(flood, unread()).await;
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_was_read_nobody_is_waited_for() {
        let began = Instant::now();
        let (mut near, _far) = tokio::io::duplex(64);
        read_on(&mut near, Unread::default()).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
