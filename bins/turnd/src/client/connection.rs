//! A connection to a daemon, in the clear or not.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{ClientError, Endpoint};

/// How long a connection may take to come about: a name to be resolved, and for https a handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The bytes of one connection, whatever carries them.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects, and for https finds that the server is who it says.
pub(super) async fn open(endpoint: &Endpoint, tls: Option<&TlsConnector>) -> Result<Box<dyn Stream>, ClientError> {
    let connecting = async {
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        // Requests are small and each is waited for.
        stream.set_nodelay(true)?;
        let Some(tls) = tls else { return Ok(Box::new(stream) as Box<dyn Stream>) };
        let name = ServerName::try_from(endpoint.host.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Box::new(tls.connect(name, stream).await?) as Box<dyn Stream>)
    };
    let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
    tokio::time::timeout(CONNECT_LIMIT, connecting)
        .await
        .unwrap_or_else(|_| Err(timed_out()))
        .map_err(ClientError::Unreachable)
}

/// What https is judged by: the system's certificates, or those of `SSL_CERT_FILE`.
///
/// # Errors
/// When there is no certificate at all: every server would be refused, with a reason that nobody understands.
pub(super) fn tls() -> Result<TlsConnector, ClientError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let missing =
            "https needs certificates to judge the server by: the system has none, SSL_CERT_FILE may name some";
        return Err(ClientError::Request(missing.to_owned()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Request(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
