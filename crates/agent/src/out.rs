//! The way out: everything the agent says, in one order.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use crate::limits::{HALF_TIME, OUT_LINES_MAX};

/// Something on its way to the output.
pub(crate) enum Out {
    /// Bytes as they are, normally one line.
    Bytes(Bytes),
    /// One line in two pieces, with a moment between them in which nothing else is written.
    InHalves(Bytes),
    /// Tell when everything before this has been written.
    Mark(oneshot::Sender<()>),
}

/// Where everyone puts what they have to say.
#[derive(Clone)]
pub(crate) struct Outbox(mpsc::Sender<Out>);

/// An outbox and the end from which [`write_out`] takes.
pub(crate) fn outbox() -> (Outbox, mpsc::Receiver<Out>) {
    let (sender, receiver) = mpsc::channel(OUT_LINES_MAX);
    (Outbox(sender), receiver)
}

impl Outbox {
    /// Says something, and waits while too much is unsaid. Once the output is gone there is nobody
    /// to tell and the agent is about to end, so nothing is reported.
    pub(crate) async fn say(&self, bytes: Bytes) {
        let _ = self.0.send(Out::Bytes(bytes)).await;
    }

    /// Says something in two pieces that are read apart.
    pub(crate) async fn say_in_halves(&self, bytes: Bytes) {
        let _ = self.0.send(Out::InHalves(bytes)).await;
    }

    /// Waits until all that was said before has left the process.
    pub(crate) async fn flush(&self) {
        let (mark, written) = oneshot::channel();
        let _ = self.0.send(Out::Mark(mark)).await;
        let _ = written.await;
    }
}

/// Writes until every outbox is gone, flushing whenever nothing waits.
pub(crate) async fn write_out(out: &mut mpsc::Receiver<Out>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    while let Some(first) = out.recv().await {
        let mut next = Some(first);
        while let Some(item) = next {
            match item {
                Out::Bytes(bytes) => writer.write_all(&bytes).await?,
                Out::InHalves(bytes) => {
                    let (first, second) = bytes.split_at(bytes.len() / 2);
                    writer.write_all(first).await?;
                    writer.flush().await?;
                    tokio::time::sleep(HALF_TIME).await;
                    writer.write_all(second).await?;
                }
                Out::Mark(mark) => {
                    writer.flush().await?;
                    let _ = mark.send(());
                }
            }
            next = out.try_recv().ok();
        }
        writer.flush().await?;
    }
    Ok(())
}
