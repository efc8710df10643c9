//! https: a real handshake with a certificate made for the test, and what becomes of those who do not shake hands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serve::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, crypto::ring};

use crate::client::{Connection, until};
use crate::daemon::Daemon;

/// A certificate with its key, in files.
struct Pair {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Self {
        let mut pair = Self { folder: tempfile::tempdir().unwrap(), certificate: Vec::new().into() };
        pair.renew();
        pair
    }

    /// Puts another pair in the files' place.
    fn renew(&mut self) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(self.certificate_file(), made.cert.pem()).unwrap();
        std::fs::write(self.key_file(), made.signing_key.serialize_pem()).unwrap();
        self.certificate = made.cert.der().clone();
    }

    fn certificate_file(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    fn tls(&self) -> Tls {
        Tls::from_files(&self.certificate_file(), &self.key_file()).unwrap()
    }

    /// A client that trusts this very certificate.
    fn connector(&self, version: &'static SupportedProtocolVersion) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        TlsConnector::from(Arc::new(config))
    }

    async fn connect(
        &self,
        daemon: &Daemon,
        version: &'static SupportedProtocolVersion,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(daemon.address).await?;
        self.connector(version).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }
}

/// One request over an open stream, which ends with its answer.
async fn ask(mut stream: TlsStream<TcpStream>, daemon: &Daemon, line: &str, header: &str, body: &str) -> String {
    let (port, length) = (daemon.address.port(), body.len());
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost:{port}\r\n{header}connection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn daemon(tls: &Tls) -> Daemon {
    Daemon::with(|options| options.tls = Some(tls.clone())).await
}

#[tokio::test]
async fn requests_travel_over_both_versions_of_tls() {
    let pair = Pair::new();
    let daemon = daemon(&pair.tls()).await;
    for version in [&TLS12, &TLS13] {
        let stream = pair.connect(&daemon, version).await.unwrap();
        let created = ask(stream, &daemon, "POST /session", "", r#"{"sessionScope":"thread"}"#).await;
        assert!(created.starts_with("HTTP/1.1 200") && created.contains("sessionId"), "{created}");
    }
}

#[tokio::test]
async fn our_own_origin_is_ours_with_https_too() {
    let pair = Pair::new();
    let daemon = daemon(&pair.tls()).await;
    for (origin, status) in [("https://localhost", "200"), ("https://evil.example", "403")] {
        let stream = pair.connect(&daemon, &TLS13).await.unwrap();
        let header = format!("origin: {origin}:{}\r\n", daemon.address.port());
        let answer = ask(stream, &daemon, "GET /health", &header, "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{origin}: {answer}");
    }
}

#[tokio::test]
async fn plain_http_is_told_that_this_is_https() {
    let daemon = daemon(&Pair::new().tls()).await;
    let mut connection = Connection::open(daemon.address).await;
    connection.ask("POST /session", &[], b"").await;
    assert_eq!(connection.answer().await.verdict(), "400 tls_required");
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn who_shakes_no_hands_holds_nobody_up_and_not_for_long() {
    let pair = Pair::new();
    let tls = pair.tls();
    let daemon = Daemon::with(|options| {
        options.tls = Some(tls);
        options.limits.max_connections = 2;
        options.limits.first_head_ms = 200;
    })
    .await;
    let mut silent = Connection::open(daemon.address).await;
    silent.send(b"\x16\x03\x01\x02").await;
    until("somebody else is served", async || match pair.connect(&daemon, &TLS13).await {
        Ok(stream) => ask(stream, &daemon, "GET /health", "", "").await.starts_with("HTTP/1.1 200"),
        Err(_) => false,
    })
    .await;
    assert!(silent.is_closed().await);
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_a_broken_one_to_nobody() {
    let mut pair = Pair::new();
    let tls = pair.tls();
    let daemon = daemon(&tls).await;
    let old = Pair { folder: tempfile::tempdir().unwrap(), certificate: pair.certificate.clone() };
    pair.renew();
    assert!(pair.connect(&daemon, &TLS13).await.is_err(), "nobody has asked for the new one");
    tls.reload().unwrap();
    assert!(pair.connect(&daemon, &TLS13).await.is_ok());
    assert!(old.connect(&daemon, &TLS13).await.is_err());
    break_file(&pair.key_file());
    assert!(tls.reload().is_err());
    assert!(pair.connect(&daemon, &TLS13).await.is_ok(), "what was there goes on");
}

fn break_file(path: &Path) {
    std::fs::write(path, "no key").unwrap();
}
