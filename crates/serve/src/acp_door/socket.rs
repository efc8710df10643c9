//! The wire of the ACP door: text frames in and out, one message each, within bounds.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::Goodbye;
use crate::limits::{DOOR_CLOSE_MS, DOOR_MESSAGE_BYTES_MAX};

/// What comes from an editor.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// One message.
    Text(Bytes),
    /// A sign that it is there.
    Sign,
    /// It broke a rule of the door.
    Broken(Goodbye),
    /// It is gone.
    Gone,
}

/// An editor's connection.
pub(super) struct Socket<S> {
    inner: WebSocketStream<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    /// The server's end of a connection whose upgrade was granted.
    pub(super) async fn new(stream: S) -> Self {
        let config = WebSocketConfig::default()
            .max_message_size(Some(DOOR_MESSAGE_BYTES_MAX))
            .max_frame_size(Some(DOOR_MESSAGE_BYTES_MAX));
        Self { inner: WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await }
    }

    /// What comes next. Cancel safe.
    pub(super) async fn hear(&mut self) -> Heard {
        match self.inner.next().await {
            Some(Ok(Message::Text(text))) => Heard::Text(text.into()),
            Some(Ok(Message::Binary(_))) => Heard::Broken(Goodbye::NotText),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Heard::Sign,
            Some(Err(Error::Capacity(_))) => Heard::Broken(Goodbye::TooLarge),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Heard::Gone,
        }
    }

    /// Says one message; false when the other side is gone, or has taken nothing for too long.
    pub(super) async fn say(&mut self, line: &Bytes) -> bool {
        let text = line.strip_suffix(b"\n").map_or_else(|| line.clone(), |text| line.slice_ref(text));
        match Utf8Bytes::try_from(text) {
            Ok(text) => self.inner.send(Message::Text(text)).await.is_ok(),
            // All that is said is JSON that was a text before.
            Err(_) => true,
        }
    }

    /// Asks for a sign.
    pub(super) async fn ping(&mut self) -> bool {
        self.inner.send(Message::Ping(Bytes::new())).await.is_ok()
    }

    /// Says why it is over, as far as the other side takes it.
    pub(super) async fn close(&mut self, goodbye: Goodbye) {
        let (code, reason) = match goodbye {
            Goodbye::TooSlow => {
                (CloseCode::Again, "events were lost for a reader that is too slow; connect again and load")
            }
            Goodbye::NotText => (CloseCode::Unsupported, "messages are text"),
            Goodbye::TooLarge => (CloseCode::Size, "the message is too large"),
            Goodbye::Silent => (CloseCode::Policy, "nothing was heard for too long"),
            Goodbye::Leaving => (CloseCode::Away, "the daemon goes"),
            Goodbye::Fault => (CloseCode::Error, "internal error"),
        };
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        let said = async {
            if self.inner.close(Some(frame)).await.is_ok() {
                // Until the other side has said the same, or is gone.
                while let Some(Ok(_)) = self.inner.next().await {}
            }
        };
        let _ = timeout(Duration::from_millis(DOOR_CLOSE_MS), said).await;
    }
}
