//! One connection from its first byte to its last: a handshake where there is TLS, then one request after the other.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::caller::{Caller, Place};
use crate::daemon::Daemon;
use crate::dispatch::answer;
use crate::limits::{HEAD_BYTES_MAX, WRITE_STALL_MS};
use crate::remnant::Unread;
use crate::socket::Guarded;

/// Answers the requests of one connection until either side is done.
pub(crate) async fn serve(daemon: Arc<Daemon>, stream: TcpStream, place: Place) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let caller = Caller::at(stream.peer_addr());
    let patience = Duration::from_millis(daemon.options.limits.first_head_ms);
    let ended = match daemon.options.tls.clone() {
        None => converse(daemon, stream, (caller, place)).await,
        Some(tls) => match tls.accept(stream, patience).await {
            Ok(stream) => converse(daemon, stream, (caller, place)).await,
            Err(error) => Err(error),
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn converse<S>(daemon: Arc<Daemon>, stream: S, (caller, place): (Caller, Place)) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut over = daemon.over.subscribe();
    let limits = &daemon.options.limits;
    let (first, next) = (Duration::from_millis(limits.first_head_ms), Duration::from_millis(limits.head_ms));
    let heard = Arc::new(AtomicBool::new(false));
    let stall = Duration::from_millis(daemon.options.writer_idle_timeout_ms.unwrap_or(WRITE_STALL_MS));
    let unread = Unread::default();
    let stream = Guarded::new(stream, stall).heard_within(first, Arc::clone(&heard)).reading_remnant(unread.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(place.clone());
        heard.store(true, Ordering::Relaxed);
        let (daemon, request) = (Arc::clone(&daemon), request.map(|body| unread.watch(body)));
        async move { Ok::<_, Infallible>(answer(&daemon, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(next)
        .max_buf_size(HEAD_BYTES_MAX)
        // A client that closes its side has left: nobody can tell the two apart on the wire, and a session whose creator is gone
        // must not stay, nor a reader that is gone keep a place.
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        _ = over.wait_for(|over| *over) => {}
    }
    // The request at hand is answered, and no further one.
    connection.as_mut().graceful_shutdown();
    connection.await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Semaphore;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::hosts::ProcessStarter;
    use crate::neighbours::tests::options;
    use crate::returns::stream::tests::returns_with;

    /// More than any time that is waited for here.
    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn scenario_70_the_connection_of_a_watcher_that_takes_nothing_ends_after_thirty_seconds_and_not_before() {
        let (returns, folder) = returns_with(300).await;
        let hosts = Arc::new(ProcessStarter { launcher: "/nonexistent".into() });
        let (primary, address) = (Path::new("/one"), "127.0.0.1:1".parse().unwrap());
        let daemon = Arc::new(
            Daemon::new(options(folder.path()), (primary, &[]), hosts, address, Arc::clone(&returns)).unwrap(),
        );
        tokio::time::pause();
        for accept in ["application/x-ndjson", "text/event-stream"] {
            let place = Place::new(Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap());
            let (near, mut far) = tokio::io::duplex(4_096);
            let head = format!(
                "GET /return-requests/events?after=0 HTTP/1.1\r\nhost: 127.0.0.1:1\r\naccept: {accept}\r\n\r\n"
            );
            far.write_all(head.as_bytes()).await.unwrap();
            let begun = Instant::now();
            let served = converse(Arc::clone(&daemon), near, (Caller::at(Ok::<_, ()>(address)), place));
            let ended = timeout(LONG, served).await.expect("a watcher that takes nothing is closed");
            assert_eq!((ended.is_err(), begun.elapsed().as_secs()), (true, 30), "{accept}");
            let mut given = Vec::new();
            far.read_to_end(&mut given).await.unwrap();
            assert!(given.starts_with(b"HTTP/1.1 200 ") && given.len() == 4_096, "{accept}: {} bytes", given.len());
        }
        tokio::time::resume();
        returns.close().await;
    }
}
