//! The shell: two streams, one loop, and a task for each turn.

use std::io;
use std::pin::pin;
use std::sync::Arc;

use acp::{FrameReader, Message};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::ending::Ending;
use crate::limits::{DRAIN_MAX, READ_BYTES_MAX};
use crate::options::AgentOptions;
use crate::out::{outbox, write_out};

/// Serves one client until its input ends, the output breaks, or the agent dies by a script.
///
/// Turns that still run when the input ends are dropped, with their commands. What was said before
/// is written out, unless the client does not read it within a second.
///
/// # Errors
///
/// What reading or writing the streams fails with.
pub async fn run(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    options: AgentOptions,
) -> io::Result<()> {
    let (outbox, mut out) = outbox();
    let connection = Arc::new(Connection::new(outbox, options));
    // One writing for the whole life: dropped and begun anew, it would lose the line it is in.
    let mut writing = pin!(write_out(&mut out, &mut writer));
    tokio::select! {
        ended = serve(reader, connection) => {
            if matches!(ended?, Served::Died) {
                return Ok(());
            }
        }
        written = &mut writing => return written,
    }
    tokio::time::timeout(DRAIN_MAX, writing).await.unwrap_or(Ok(()))
}

/// Why there is no more to serve.
enum Served {
    InputEnded,
    Died,
}

async fn serve(mut reader: impl AsyncRead + Unpin, connection: Arc<Connection>) -> io::Result<Served> {
    let mut frames = FrameReader::default();
    let mut turns = JoinSet::new();
    let mut buffer = vec![0; READ_BYTES_MAX];
    loop {
        tokio::select! {
            read = reader.read(&mut buffer) => {
                let length = read?;
                if length == 0 {
                    break;
                }
                frames.push(&buffer[..length]);
                while let Some(frame) = frames.next_frame() {
                    receive(frame, &connection, &mut turns).await;
                }
            }
            Some(ending) = turns.join_next() => {
                if matches!(ending, Ok(Ending::Death)) {
                    connection.die();
                    return Ok(Served::Died);
                }
            }
        }
    }
    while let Some(frame) = frames.finish() {
        receive(frame, &connection, &mut turns).await;
    }
    turns.shutdown().await;
    Ok(Served::InputEnded)
}

async fn receive(frame: Result<Bytes, acp::FrameError>, connection: &Arc<Connection>, turns: &mut JoinSet<Ending>) {
    match frame.map_err(|error| error.to_string()).map(Message::parse) {
        Ok(Ok(message)) => {
            if let Some(work) = connection.receive(&message).await {
                turns.spawn(work.play());
            }
        }
        Ok(Err(reason)) => connection.refuse_line(&reason.to_string()).await,
        Err(too_long) => connection.refuse_line(&too_long).await,
    }
}
