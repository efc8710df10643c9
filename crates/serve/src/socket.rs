//! A socket whose reader may pause but not stall: when it refuses bytes for too long, writing fails and the connection ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream with a limit on how long a write may wait.
pub(crate) struct Guarded<S> {
    inner: S,
    patience: Duration,
    /// Running while the other side takes nothing.
    stall: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    /// Guards `inner`.
    pub(crate) fn new(inner: S, patience: Duration) -> Self {
        Self { inner, patience, stall: None }
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
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
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
        Pin::new(&mut self.inner).poll_shutdown(cx)
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
    async fn a_reader_that_takes_its_time_gets_everything() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut near = Guarded::new(near, Duration::from_secs(3600));
        let mut got = [0; 64];
        let (written, read) = tokio::join!(near.write_all(&[7; 64]), far.read_exact(&mut got));
        assert!(written.is_ok() && read.is_ok());
        assert_eq!(got, [7; 64]);
    }
}
