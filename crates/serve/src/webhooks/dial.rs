//! A connection to an endpoint, in the clear or not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use request::webhook::Fault;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::target::Target;
use crate::tasks::blocking;

/// The bytes of one connection, whatever carries them.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that is coming about.
pub(crate) type Dialing<'d> = Pin<Box<dyn Future<Output = Result<Box<dyn Stream>, Fault>> + Send + 'd>>;

/// How connections come about.
pub(crate) trait Dial: Send + Sync {
    /// Connects, and for https finds that the endpoint is who its URL says.
    fn dial<'d>(&'d self, target: &'d Target) -> Dialing<'d>;
}

/// The network, and the system's certificates, or those of `SSL_CERT_FILE`. They are read when the first endpoint asks for https.
#[derive(Default)]
pub(crate) struct Network {
    tls: OnceCell<TlsConnector>,
}

impl Network {
    /// A network on which these certificates vouch.
    #[cfg(test)]
    pub(crate) fn trusting(roots: RootCertStore) -> Self {
        Self { tls: OnceCell::new_with(connector(roots)) }
    }

    async fn open(&self, target: &Target) -> Result<Box<dyn Stream>, Fault> {
        let stream = TcpStream::connect((&*target.host, target.port)).await.map_err(|_| Fault::Unreachable)?;
        // A request is written in few pieces and waited for.
        stream.set_nodelay(true).map_err(|_| Fault::Unreachable)?;
        if !target.is_https {
            return Ok(Box::new(stream));
        }
        let tls = self.tls.get_or_try_init(system).await?;
        let name = ServerName::try_from(target.host.clone()).map_err(|_| Fault::Tls)?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(|_| Fault::Tls)?))
    }
}

impl Dial for Network {
    fn dial<'d>(&'d self, target: &'d Target) -> Dialing<'d> {
        Box::pin(self.open(target))
    }
}

/// What the system trusts. Where that is nobody, no endpoint is, and it is looked for again the next time.
async fn system() -> Result<TlsConnector, Fault> {
    let roots = blocking(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    let roots = roots.await.filter(|roots| !roots.is_empty());
    roots.and_then(connector).ok_or_else(|| {
        tracing::error!("no webhook is sent by https: the system has no certificates, SSL_CERT_FILE may name some");
        Fault::Tls
    })
}

fn connector(roots: RootCertStore) -> Option<TlsConnector> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
}
