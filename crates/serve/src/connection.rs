//! One connection from its first byte to its last: a handshake where there is TLS, then one request after the other.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::dispatch::answer;
use crate::limits::{HEAD_BYTES_MAX, WRITE_STALL_MS};
use crate::socket::Guarded;

/// Answers the requests of one connection until either side is done.
pub(crate) async fn serve(daemon: Arc<Daemon>, stream: TcpStream, watcher: Watcher) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a socket keeps its delay");
    }
    let caller = Caller::at(stream.peer_addr());
    let patience = Duration::from_millis(daemon.options.limits.first_head_ms);
    let ended = match daemon.options.tls.clone() {
        None => converse(daemon, stream, caller, watcher).await,
        Some(tls) => match tls.accept(stream, patience).await {
            Ok(stream) => converse(daemon, stream, caller, watcher).await,
            Err(error) => Err(error),
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn converse<S>(daemon: Arc<Daemon>, stream: S, caller: Caller, watcher: Watcher) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &daemon.options.limits;
    let (first, next) = (Duration::from_millis(limits.first_head_ms), Duration::from_millis(limits.head_ms));
    let heard = Arc::new(AtomicBool::new(false));
    let stall = Duration::from_millis(daemon.options.writer_idle_timeout_ms.unwrap_or(WRITE_STALL_MS));
    let stream = Guarded::new(stream, stall).heard_within(first, Arc::clone(&heard));
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller);
        heard.store(true, Ordering::Relaxed);
        let daemon = Arc::clone(&daemon);
        async move { Ok::<_, Infallible>(answer(&daemon, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(next)
        .max_buf_size(HEAD_BYTES_MAX)
        // A client that closes its side has left: nobody can tell the two apart on the wire, and a session whose creator is gone
        // must not stay, nor a reader that is gone keep a place.
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service);
    watcher.watch(connection).await.map_err(io::Error::other)
}
