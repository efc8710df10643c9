//! Connections that are one too many: each is told so, and what it sends is read on for a while, since a connection that is closed with
//! bytes unread is reset, and its client may lose the answer (`remnant.rs`). They have few places and little time of their own, and are
//! asked nothing: nothing that any of them says is looked at.

use std::future::poll_fn;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::limits::{TURNED_AWAY_MAX, TURNED_AWAY_MS};
use crate::remnant::Remnant;
use crate::tasks::spawn;

/// What each of them hears.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json; charset=utf-8\r\nretry-after: 5\r\n\
    connection: close\r\ncontent-length: 64\r\n\r\n{\"error\":\"Too many connections\",\"code\":\"too_many_connections\"}  ";

/// The places of those that are turned away.
pub(crate) struct TurnedAway {
    places: Arc<Semaphore>,
}

impl TurnedAway {
    /// All of them free.
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(TURNED_AWAY_MAX)) }
    }

    /// Tells a connection that it is one too many, and closes it. Nothing of it is waited for here.
    pub(crate) fn tell(&self, stream: TcpStream) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            // One too many of these, too: what is lost of its answer is lost.
            if let Ok(mut stream) = stream.into_std() {
                let _ = stream.write(TOO_MANY);
            }
            return;
        };
        spawn(async move {
            told_in_time(stream).await;
            drop(place);
        });
    }
}

async fn told_in_time<S: AsyncRead + AsyncWrite + Unpin>(stream: S) {
    let told = timeout(Duration::from_millis(TURNED_AWAY_MS), told(stream)).await;
    if let Ok(Err(error)) = told {
        tracing::debug!(%error, "a connection too many was not told");
    }
}

async fn told<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.write_all(TOO_MANY).await?;
    stream.shutdown().await?;
    let mut remnant = Remnant::of_all();
    poll_fn(|cx| remnant.poll(&mut stream, cx)).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpListener;
    use tokio::task::yield_now;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::limits::REMNANT_SILENCE_MS;

    #[test]
    fn the_answer_has_the_length_it_says() {
        let text = std::str::from_utf8(TOO_MANY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_all_and_reads_then_has_the_answer() {
        let (near, mut far) = tokio::io::duplex(1_000);
        let asking = async {
            far.write_all(&[b' '; 1_000_000]).await.unwrap();
            far.shutdown().await.unwrap();
            let mut heard = Vec::new();
            far.read_to_end(&mut heard).await.unwrap();
            heard
        };
        let (told, heard) = tokio::join!(told(near), asking);
        told.unwrap();
        assert_eq!(heard, TOO_MANY);
    }

    /// A connection to a listener of this test, from both ends.
    async fn connected(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let far = TcpStream::connect(listener.local_addr().unwrap());
        let (far, near) = tokio::join!(far, listener.accept());
        (near.unwrap().0, far.unwrap())
    }

    #[tokio::test]
    async fn there_are_so_many_at_a_time_and_the_next_one_is_closed_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let away = TurnedAway::new();
        let mut waiting = Vec::new();
        for _ in 0..TURNED_AWAY_MAX {
            let (near, far) = connected(&listener).await;
            away.tell(near);
            waiting.push(far);
        }
        assert_eq!(away.places.available_permits(), 0);
        let (near, mut far) = connected(&listener).await;
        away.tell(near);
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, TOO_MANY, "nothing of it was unread");
        drop(waiting);
        while away.places.available_permits() < TURNED_AWAY_MAX {
            yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_on_sending_has_its_place_for_a_bounded_time() {
        let (near, mut far) = tokio::io::duplex(1_000);
        let trickling = async {
            while far.write_all(b"x").await.is_ok() {
                sleep(Duration::from_millis(REMNANT_SILENCE_MS / 2)).await;
            }
        };
        let began = Instant::now();
        tokio::select! {
            () = told_in_time(near) => {}
            () = trickling => panic!("nobody hung up"),
        }
        assert_eq!(began.elapsed().as_millis(), u128::from(TURNED_AWAY_MS));
    }
}
