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
