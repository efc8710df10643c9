//! What a receiver checks: that a message is the daemon's, whole, and of now (Standard Webhooks).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::Secret;

/// Bytes of a block of SHA-256. No secret is longer, so that none has to be hashed first.
const BLOCK: usize = 64;

/// The id of a message: the same on each try, so that a receiver knows what it has. It has no full stop in it, which is what separates
/// the parts of what is signed.
#[must_use]
pub fn message_id(stream_id: &str, seq: u64) -> String {
    format!("{stream_id}_{seq}")
}

/// The value of `webhook-signature`: the scheme, and the base64 of the HMAC-SHA-256 of id, time of this try in epoch seconds, and body,
/// with a full stop between each.
#[must_use]
pub fn sign(secret: &Secret, message_id: &str, at_s: u64, body: &str) -> String {
    let at_s = at_s.to_string();
    let mac = hmac(secret.as_bytes(), &[message_id, ".", &at_s, ".", body]);
    format!("v1,{}", STANDARD.encode(mac))
}

/// The same by each of several secrets, with a blank between: a receiver takes what any of those that it knows has signed.
pub fn sign_with_all<'s>(secrets: impl Iterator<Item = &'s Secret>, message_id: &str, at_s: u64, body: &str) -> String {
    secrets.map(|secret| sign(secret, message_id, at_s, body)).collect::<Vec<_>>().join(" ")
}

/// HMAC-SHA-256 (RFC 2104) of the parts behind each other. Of a key, at most a block is used.
fn hmac(key: &[u8], parts: &[&str]) -> [u8; 32] {
    let padded = |filling: u8| {
        let mut block = [filling; BLOCK];
        for (byte, of_key) in block.iter_mut().zip(key) {
            *byte ^= of_key;
        }
        block
    };
    let mut inner = Sha256::new_with_prefix(padded(0x36));
    for part in parts {
        inner.update(part);
    }
    Sha256::new_with_prefix(padded(0x5c)).chain_update(inner.finalize()).finalize().into()
}

const _: () = assert!(super::limits::SECRET_BYTES_MAX <= BLOCK);

#[cfg(test)]
mod tests {
    use super::*;

    fn check_hmac(key: &[u8], text: &str, expected: &str) {
        let mac = hmac(key, &[text]);
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{text}");
    }

    #[test]
    fn the_mac_is_that_of_rfc_4231() {
        check_hmac(&[0x0b; 20], "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        check_hmac(
            b"Jefe",
            "what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
    }

    /// The example that the libraries of Standard Webhooks are tested with.
    #[test]
    fn the_signature_is_that_of_standard_webhooks() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = r#"{"test": 2432232314}"#;
        let signature = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn of_two_secrets_each_signs_as_if_it_were_the_only_one() {
        let secrets = [[1; 24], [2; 24]].map(|key| Secret::new(key.to_vec()).unwrap());
        let both = sign_with_all(secrets.iter(), "m_1", 7, "{}");
        assert_eq!(both, format!("{} {}", sign(&secrets[0], "m_1", 7, "{}"), sign(&secrets[1], "m_1", 7, "{}")));
        assert_eq!(sign_with_all(secrets[..1].iter(), "m_1", 7, "{}"), sign(&secrets[0], "m_1", 7, "{}"));
    }

    #[test]
    fn a_message_id_has_no_separator_in_it() {
        let id = message_id("4f0c6c57-9d3e-4b0a-8d8c-0a4b5b1f8f3e", 42);
        assert_eq!(id, "4f0c6c57-9d3e-4b0a-8d8c-0a4b5b1f8f3e_42");
        assert!(!id.contains('.'));
    }
}
