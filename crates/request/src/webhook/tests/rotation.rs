//! Two secrets at once, for as long as receivers change from one to the other.

use super::endpoint;
use crate::webhook::{Endpoint, Rotation, RotationDenied, Secret};

fn secret(byte: u8) -> Secret {
    Secret::new(vec![byte; 24]).unwrap()
}

/// The first byte of each secret that signs.
fn signing(endpoint: &Endpoint) -> Vec<u8> {
    endpoint.secrets().map(|secret| secret.as_bytes()[0]).collect()
}

#[test]
fn the_newer_secret_signs_beside_the_former_one_until_one_of_them_is_ended() {
    for (last, left) in [(Rotation::End, 2), (Rotation::TakeBack, 1)] {
        let mut endpoint = endpoint();
        assert_eq!(signing(&endpoint), [1]);
        endpoint.rotate(Rotation::Begin(secret(2))).unwrap();
        assert_eq!(signing(&endpoint), [2, 1]);
        endpoint.rotate(Rotation::Begin(secret(2))).unwrap();
        assert_eq!(signing(&endpoint), [2, 1], "the same call once more");
        endpoint.rotate(last.clone()).unwrap();
        assert_eq!(signing(&endpoint), [left]);
        assert_eq!(endpoint.rotate(last), Err(RotationDenied::OnlyOne));
        assert_eq!(signing(&endpoint), [left]);
    }
}

#[test]
fn no_third_secret_ends_one_that_receivers_may_know() {
    let mut endpoint = endpoint();
    endpoint.rotate(Rotation::Begin(secret(2))).unwrap();
    for third in [3, 1] {
        assert_eq!(endpoint.rotate(Rotation::Begin(secret(third))), Err(RotationDenied::Rotating));
        assert_eq!(signing(&endpoint), [2, 1]);
    }
}
