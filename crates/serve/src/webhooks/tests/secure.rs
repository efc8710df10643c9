//! https, over real sockets: whoever cannot prove who he is gets nothing.

use std::sync::Arc;

use request::webhook::Fault;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::receiver::Delivery;
use super::world::World;
use crate::webhooks::dial::Network;

/// Somebody who listens, and the certificate that vouches for him.
async fn listen() -> (TcpListener, TlsAcceptor, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    (listener, TlsAcceptor::from(Arc::new(config)), made.cert.der().clone())
}

/// A world on whose network a certificate vouches.
async fn world(certificate: CertificateDer<'static>) -> World {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut world = World::new().await;
    world.live_with(Arc::new(Network::trusting(roots))).await;
    world.commit(1);
    world
}

#[tokio::test]
async fn whoever_proves_who_he_is_is_posted_to() {
    let (listener, acceptor, certificate) = listen().await;
    let world = world(certificate).await;
    world.hook_at("a", &format!("https://localhost:{}/x", listener.local_addr().unwrap().port())).await;
    let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
    let delivery = Delivery::read(stream).await;
    assert_eq!((delivery.seq(), delivery.is_signed()), (1, true));
    let stream = delivery.say_and_stay("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    world.until("a", |endpoint| endpoint.acked == 1).await;
    drop(stream);
}

#[tokio::test]
async fn whoever_does_not_gets_no_byte_of_an_event() {
    let (listener, acceptor, _) = listen().await;
    let (_, _, another) = listen().await;
    let world = world(another).await;
    world.hook_at("a", &format!("https://localhost:{}/x", listener.local_addr().unwrap().port())).await;
    assert!(acceptor.accept(listener.accept().await.unwrap().0).await.is_err());
    world.until("a", |endpoint| endpoint.trying.fault == Some(Fault::Tls)).await;
}

#[tokio::test]
async fn whoever_speaks_no_tls_gets_no_byte_of_an_event() {
    let (listener, _, certificate) = listen().await;
    let world = world(certificate).await;
    world.hook_at("a", &format!("https://localhost:{}/x", listener.local_addr().unwrap().port())).await;
    drop(listener.accept().await.unwrap());
    world.until("a", |endpoint| endpoint.trying.fault == Some(Fault::Tls)).await;
}
