//! TLS in front of HTTP: certificate and key from files, read at the start and again when the caller says so.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::limits::HEAD_BYTES_MAX;
use crate::sync::lock;

/// The only protocol we speak above TLS.
const ALPN: &[u8] = b"http/1.1";

/// The first byte of every TLS conversation: a handshake record.
const HANDSHAKE_RECORD: u8 = 0x16;

/// What somebody hears who speaks plain HTTP to us.
const PLAINTEXT: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n\
    content-length: 63\r\n\r\n{\"error\":\"This port speaks https only\",\"code\":\"tls_required\"}  ";

/// A certificate with its key, and the files that both come from.
#[derive(Clone)]
pub struct Tls {
    files: Arc<Files>,
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

struct Files {
    certificates: PathBuf,
    key: PathBuf,
}

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else than it should, in PEM.
    #[error("cannot use {path}: {cause}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: PemError,
    },
    /// The key is not that of the certificate, or either is of a kind that is not supported.
    #[error("certificate and key do not go together: {0}")]
    Pair(#[from] rustls::Error),
}

impl Tls {
    /// TLS 1.2 and 1.3 with the chain in `certificates`, the server's own first, and the key in `key`; both PEM.
    ///
    /// # Errors
    /// When either file is not what it should be, or they do not belong together.
    pub fn from_files(certificates: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = Files { certificates: certificates.to_owned(), key: key.to_owned() };
        let config = Arc::new(Mutex::new(files.read()?));
        Ok(Self { files: Arc::new(files), config })
    }

    /// Reads the files again, for new connections; open ones stay as they are.
    ///
    /// # Errors
    /// As [`Self::from_files`]; what was there before goes on.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = self.files.read()?;
        *lock(&self.config) = config;
        Ok(())
    }

    /// The TLS side of a fresh connection. Somebody who speaks plain HTTP is told so.
    ///
    /// # Errors
    /// When the other side does not shake hands within `patience`.
    pub(crate) async fn accept(&self, stream: TcpStream, patience: Duration) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&lock(&self.config));
        let shaking = async move {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
                return Err(turned_away(stream).await);
            }
            TlsAcceptor::from(config).accept(stream).await
        };
        timeout(patience, shaking).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Tells a client that this is no plain port. What it has sent is read to its end: a socket that is closed over unread bytes takes the
/// answer back.
async fn turned_away(mut stream: TcpStream) -> io::Error {
    let told = async {
        stream.write_all(PLAINTEXT).await?;
        stream.shutdown().await?;
        let mut rest = stream.take(HEAD_BYTES_MAX as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    match told.await {
        Ok(_) => io::Error::new(io::ErrorKind::InvalidData, "the client speaks no TLS"),
        Err(error) => error,
    }
}

impl Files {
    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |cause| TlsError::File { path, cause }
        };
        let chain = CertificateDer::pem_file_iter(&self.certificates).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.and_then(|chain| if chain.is_empty() { Err(PemError::NoItemsFound) } else { Ok(chain) });
        let chain = chain.map_err(unusable(&self.certificates))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(unusable(&self.key))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Arc::new(config))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificates", &self.files.certificates).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_plain_http_has_the_length_it_says() {
        let text = std::str::from_utf8(PLAINTEXT).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }

    #[test]
    fn files_that_are_no_pair_say_which_and_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let pair = || {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            (made.cert.pem(), made.signing_key.serialize_pem())
        };
        let ((cert, key), (_, foreign)) = (pair(), pair());
        let (cert, key, foreign) = (file("cert", &cert), file("key", &key), file("foreign", &foreign));
        let empty = file("empty", "");
        let refused = |cert: &Path, key: &Path| Tls::from_files(cert, key).err().map(|error| error.to_string());
        assert_eq!(refused(&cert, &key), None);
        for (cert, key, named) in [
            (&folder.path().join("nowhere"), &key, "nowhere"),
            (&cert, &folder.path().join("nowhere"), "nowhere"),
            (&empty, &key, "empty"),
            (&cert, &empty, "empty"),
            (&key, &key, "key"),
            (&cert, &foreign, "do not go together"),
        ] {
            let told = refused(cert, key).unwrap();
            assert!(told.contains(named), "{told}");
        }
        assert!(!format!("{:?}", Tls::from_files(&cert, &key).unwrap()).contains("PRIVATE"));
    }
}
