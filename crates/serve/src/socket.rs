//! A socket whose reader may pause but not stall: when it refuses bytes for too long, writing fails and the connection ends. So does
//! reading, when a connection that was opened has not brought a request after a while. Closing waits for who still sends (`remnant.rs`).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::remnant::{Remnant, Unread};

/// A stream with a limit on how long a write may wait.
pub(crate) struct Guarded<S> {
    inner: S,
    patience: Duration,
    /// Running while the other side takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
    /// Running until the first request has been heard.
    silence: Option<Silence>,
    /// What there is to do behind the last word, once it is said.
    remnant: Option<Remnant>,
    is_shut: bool,
}

/// The time a fresh connection has for its first request.
struct Silence {
    limit: Pin<Box<Sleep>>,
    heard: Arc<AtomicBool>,
}

impl<S> Guarded<S> {
    /// Guards `inner`.
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, stall: None, silence: None, remnant: None, is_shut: false }
    }

    /// Ends reading when `heard` is still not set `limit` from now. However a flood of connections trickles its bytes, each holds
    /// its place that long and no longer.
    pub(crate) fn heard_within(mut self, limit: Duration, heard: Arc<AtomicBool>) -> Self {
        self.silence = Some(Silence { limit: Box::pin(sleep(limit)), heard });
        self
    }

    /// Reads on behind the last word where something is `unread` then.
    pub(crate) fn reading_remnant(mut self, unread: Unread) -> Self {
        self.remnant = Some(Remnant::behind(unread));
        self
    }

    /// Whether the first request is overdue.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        self.silence = self.silence.take().filter(|silence| !silence.heard.load(Ordering::Relaxed));
        self.silence.as_mut().is_some_and(|silence| silence.limit.as_mut().poll(cx).is_ready())
    }

    /// Passes an outcome on and keeps time while there is none.
    fn timed<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stall = None;
            return outcome;
        }
        let patience = self.patience;
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(patience)));
        stall.as_mut().poll(cx).map(|()| Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no bytes")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_overdue(cx) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client asks nothing")));
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.timed(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.timed(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.is_shut {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            this.is_shut = true;
        }
        match &mut this.remnant {
            Some(remnant) => remnant.poll(&mut this.inner, cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_reader_that_takes_nothing_ends_the_write() {
        let (near, _far) = tokio::io::duplex(4);
        let error = Guarded::new(near, Duration::from_millis(1)).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_connection_that_asks_nothing_is_over_however_it_trickles() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near =
            Guarded::new(near, Duration::from_secs(3600)).heard_within(Duration::from_millis(1), Arc::default());
        let reading = async {
            let mut byte = [0];
            loop {
                if let Err(error) = near.read_exact(&mut byte).await {
                    return error.kind();
                }
            }
        };
        let trickling = async { while far.write_all(b"x").await.is_ok() {} };
        tokio::select! {
            kind = reading => assert_eq!(kind, io::ErrorKind::TimedOut),
            () = trickling => panic!("the other side was never given up"),
        }
    }

    #[tokio::test]
    async fn a_connection_that_asked_may_be_silent() {
        let (near, mut far) = tokio::io::duplex(4);
        let heard = Arc::new(AtomicBool::new(true));
        let mut near = Guarded::new(near, Duration::from_secs(3600)).heard_within(Duration::ZERO, heard);
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn a_reader_that_takes_its_time_gets_everything() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = Guarded::new(near, Duration::from_secs(3600));
        let mut got = [0; 64];
        let (written, read) = tokio::join!(near.write_all(&[7; 64]), far.read_exact(&mut got));
        assert!(written.is_ok() && read.is_ok());
        assert_eq!(got, [7; 64]);
    }
}
