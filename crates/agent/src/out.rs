//! The way out: everything the agent says, in one order.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use crate::limits::{BATCH_BYTES, HALF_TIME, OUT_LINES_MAX};

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

/// Writes until every outbox is gone, and flushes whenever nothing waits. What has gathered goes in
/// one piece, as a write to a pipe costs more than the line in it.
pub(crate) async fn write_out(out: &mut mpsc::Receiver<Out>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut batch = Vec::new();
    while let Some(first) = out.recv().await {
        let mut next = Some(first);
        while let Some(item) = next {
            perform(item, &mut batch, writer).await?;
            if batch.len() >= BATCH_BYTES {
                write_batch(&mut batch, writer).await?;
            }
            next = out.try_recv().ok();
        }
        write_batch(&mut batch, writer).await?;
    }
    Ok(())
}

async fn perform(item: Out, batch: &mut Vec<u8>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    match item {
        Out::Bytes(bytes) => batch.extend_from_slice(&bytes),
        Out::InHalves(bytes) => {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            batch.extend_from_slice(first);
            write_batch(batch, writer).await?;
            tokio::time::sleep(HALF_TIME).await;
            batch.extend_from_slice(second);
        }
        Out::Mark(mark) => {
            write_batch(batch, writer).await?;
            let _ = mark.send(());
        }
    }
    Ok(())
}

async fn write_batch(batch: &mut Vec<u8>, writer: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    writer.write_all(batch).await?;
    batch.clear();
    writer.flush().await
}
