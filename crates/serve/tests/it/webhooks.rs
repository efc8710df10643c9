//! Webhooks over HTTP: endpoints are named, posted to over a real socket, and served on by the next life.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{Answer, PATIENCE, until};
use crate::daemon::Daemon;

/// Who is posted to.
struct Receiver {
    listener: TcpListener,
}

/// A request that waits for its answer.
struct Delivery {
    stream: TcpStream,
    head: String,
    body: String,
}

impl Receiver {
    async fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.listener.local_addr().unwrap())
    }

    /// The next request, whole.
    async fn next(&self) -> Delivery {
        let reading = async {
            let mut stream = self.listener.accept().await.unwrap().0;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let mut delivery = Delivery { stream, head: String::from_utf8(head).unwrap(), body: String::new() };
            let mut body = vec![0; delivery.header("content-length").parse().unwrap()];
            delivery.stream.read_exact(&mut body).await.unwrap();
            delivery.body = String::from_utf8(body).unwrap();
            delivery
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("nothing is posted")
    }

    /// The same, answered; the event's request.
    async fn take(&self) -> String {
        let delivery = self.next().await;
        let request = delivery.json()["request_id"].as_str().unwrap().to_owned();
        delivery.answer("200 OK").await;
        request
    }
}

impl Delivery {
    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    async fn answer(mut self, status: &str) {
        let text = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Whether the signature is what a receiver reckons that knows nothing but the secret and the definition of HMAC.
    fn is_signed_by(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let signed = format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let pad =
            |with: u8| -> Vec<u8> { (0..64).map(|place| key.get(place).copied().unwrap_or_default() ^ with).collect() };
        let inner = Sha256::digest([pad(0x36), signed.into_bytes()].concat());
        let mac = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
        let own = format!("v1,{}", STANDARD.encode(mac));
        self.header("webhook-signature").split(' ').any(|signature| signature == own)
    }
}

/// What a test does with a daemon's endpoints.
trait Hooks {
    async fn put(&self, name: &str, body: Value) -> Answer;
    async fn hook(&self, name: &str) -> Value;
    async fn hook_until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value;
    /// Ends a return request of this id, in a session where others wait as well.
    async fn end(&self, session: &str, id: &str);
    /// A session in which a prompt runs until it is released.
    async fn occupied(&self) -> String;
    /// The terminal stream, each event as it stands there.
    async fn bodies(&self) -> Vec<Box<serde_json::value::RawValue>>;
}

const HOOKS: &str = "/return-requests/webhooks";

impl Hooks for Daemon {
    async fn put(&self, name: &str, body: Value) -> Answer {
        self.ask(&format!("PUT {HOOKS}/{name}"), &body.to_string()).await
    }

    async fn hook(&self, name: &str) -> Value {
        self.get(&format!("{HOOKS}/{name}")).await.json()
    }

    async fn hook_until(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        until(what, async || is_so(&self.hook(name).await)).await;
        self.hook(name).await
    }

    async fn end(&self, session: &str, id: &str) {
        let body = json!({ "prompt": [{ "type": "text", "text": "later" }], "requestId": id, "queue": true });
        let submitted = self.post(&format!("/session/{session}/return-requests"), body).await;
        assert_eq!(submitted.status, 202, "{}", submitted.json());
        let ended = self.post(&format!("/return-requests/{id}/cancel"), json!({})).await;
        assert_eq!(ended.json()["state"], "cancelled");
    }

    async fn occupied(&self) -> String {
        let session = self.create().await;
        self.prompt(&session, "hold").await;
        session
    }

    async fn bodies(&self) -> Vec<Box<serde_json::value::RawValue>> {
        #[derive(serde::Deserialize)]
        struct Page {
            events: Vec<Box<serde_json::value::RawValue>>,
        }
        let answer = self.get("/return-requests/events").await;
        serde_json::from_slice::<Page>(&answer.body).unwrap().events
    }
}

#[tokio::test]
async fn an_ended_request_is_posted_as_the_stream_has_it_and_signed_with_the_secret_that_was_told_once() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    let named = daemon.put("ops", json!({ "url": receiver.url() })).await;
    assert_eq!(named.status, 201);
    let secret = named.json()["secret"].as_str().unwrap().to_owned();
    daemon.end(&session, "r1").await;
    let first = receiver.next().await;
    assert!(first.is_signed_by(&secret));
    assert_eq!(first.body, daemon.bodies().await[0].get(), "byte for byte");
    assert!(first.header("webhook-id").ends_with("_1"));
    let id = first.header("webhook-id").to_owned();
    let waiting = daemon.hook_until("ops", "the try is on record", |hook| hook["sending"] == 1).await;
    assert_eq!((&waiting["acked"], &waiting["tries"]), (&json!(0), &json!(1)));
    first.answer("500 Whatever").await;
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), id);
    assert!(second.is_signed_by(&secret));
    second.answer("204 No Content").await;
    let hook = daemon.hook_until("ops", "the event is taken", |hook| hook["acked"] == 1).await;
    assert_eq!((&hook["last_error"], &hook["sending"], &hook["tries"]), (&Value::Null, &Value::Null, &json!(0)));
    for path in [HOOKS.to_owned(), format!("{HOOKS}/ops")] {
        let shown = daemon.get(&path).await.json().to_string();
        assert!(!shown.contains("whsec_") && !shown.contains(&secret[6..]), "{shown}");
    }
    let again = daemon.put("ops", json!({ "url": receiver.url() })).await;
    assert_eq!((again.status, again.json().get("secret")), (200, None));
}

#[tokio::test]
async fn a_daemon_that_ends_during_a_try_sends_the_same_again_in_its_next_life_and_nothing_twice_that_was_taken() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    daemon.put("ops", json!({ "url": receiver.url() })).await;
    daemon.end(&session, "r1").await;
    assert_eq!(receiver.take().await, "r1");
    daemon.hook_until("ops", "the event is taken", |hook| hook["acked"] == 1).await;
    daemon.end(&session, "r2").await;
    let cut_off = receiver.next().await;
    let daemon = daemon.restart().await;
    let again = receiver.next().await;
    assert_eq!(again.header("webhook-id"), cut_off.header("webhook-id"));
    assert_eq!(again.body, cut_off.body);
    again.answer("200 OK").await;
    let session = daemon.occupied().await;
    daemon.end(&session, "r3").await;
    assert_eq!(receiver.take().await, "r3");
}

#[tokio::test]
async fn an_event_is_sent_once_more_when_somebody_wants_it() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    daemon.put("ops", json!({ "url": receiver.url() })).await;
    for id in ["r1", "r2"] {
        daemon.end(&session, id).await;
        assert_eq!(receiver.take().await, id);
    }
    let redeliver = format!("{HOOKS}/ops/redeliver");
    let wanted = daemon.post(&redeliver, json!({ "seq": 1 })).await;
    assert_eq!(wanted.status, 202);
    receiver.next().await.answer("404 Whatever").await;
    let dead = daemon.hook_until("ops", "a demand is one try", |hook| hook["dead_letter_count"] == 1).await;
    let [letter] = &dead["dead_letters"].as_array().unwrap()[..] else { panic!("{dead}") };
    assert_eq!((&letter["seq"], &letter["tries"], &letter["is_wanted"]), (&json!(1), &json!(1), &json!(false)));
    assert_eq!(letter["last_error"], json!({ "code": "status", "status": 404 }));
    assert_eq!(daemon.get(HOOKS).await.json()["webhooks"][0]["dead_letter_count"], 1);
    daemon.post(&redeliver, json!({ "seq": 1 })).await;
    assert_eq!(receiver.take().await, "r1");
    daemon.hook_until("ops", "the letter is gone", |hook| hook["dead_letter_count"] == 0).await;
    for (body, verdict) in [
        (json!({ "seq": 3 }), "409 cursor_ahead"),
        (json!({ "seq": 0 }), "400 invalid_seq"),
        (json!({}), "400 invalid_seq"),
    ] {
        assert_eq!(daemon.post(&redeliver, body).await.verdict(), verdict);
    }
}

#[tokio::test]
async fn two_secrets_sign_while_receivers_change_from_one_to_the_other_and_neither_is_shown_again() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    let told = |answer: &Answer| answer.json()["secret"].as_str().unwrap().to_owned();
    let former = told(&daemon.put("ops", json!({ "url": receiver.url() })).await);
    let rotated = daemon.post(&format!("{HOOKS}/ops/secrets"), json!({})).await;
    assert_eq!((rotated.status, &rotated.json()["secret_count"]), (200, &json!(2)));
    let newer = told(&rotated);
    let signed_by = async |id: &str| {
        daemon.end(&session, id).await;
        let delivery = receiver.next().await;
        let signed = [&former, &newer].map(|secret| delivery.is_signed_by(secret));
        assert_eq!(delivery.header("webhook-signature").split(' ').count(), signed.iter().filter(|by| **by).count());
        delivery.answer("200 OK").await;
        signed
    };
    assert_eq!(signed_by("r1").await, [true, true]);
    let third = daemon.post(&format!("{HOOKS}/ops/secrets"), json!({})).await;
    assert_eq!(third.verdict(), "409 webhook_rotating");
    let again = daemon.post(&format!("{HOOKS}/ops/secrets"), json!({ "secret": newer })).await;
    assert_eq!((again.status, again.json().get("secret")), (200, None), "the same once more changes nothing");
    let shown = daemon.hook("ops").await.to_string();
    assert!(!shown.contains("whsec_") && !shown.contains(&former[6..]) && !shown.contains(&newer[6..]), "{shown}");
    let ended = daemon.ask(&format!("DELETE {HOOKS}/ops/secrets/former"), "").await;
    assert_eq!((ended.status, &ended.json()["secret_count"]), (200, &json!(1)));
    assert_eq!(signed_by("r2").await, [false, true]);
    // Taken back, it is as it was.
    daemon.post(&format!("{HOOKS}/ops/secrets"), json!({ "secret": former })).await;
    assert_eq!(daemon.ask(&format!("DELETE {HOOKS}/ops/secrets/current"), "").await.status, 200);
    assert_eq!(signed_by("r3").await, [false, true]);
    for (line, verdict) in [
        (format!("DELETE {HOOKS}/ops/secrets/former"), "409 webhook_not_rotating"),
        (format!("DELETE {HOOKS}/ops/secrets/current"), "409 webhook_not_rotating"),
        (format!("DELETE {HOOKS}/ops/secrets/other"), "404 webhook_secret_not_found"),
        (format!("DELETE {HOOKS}/none/secrets/former"), "404 webhook_not_found"),
        (format!("POST {HOOKS}/none/secrets"), "404 webhook_not_found"),
    ] {
        assert_eq!(daemon.ask(&line, "").await.verdict(), verdict, "{line}");
    }
    let refused = daemon.post(&format!("{HOOKS}/ops/secrets"), json!({ "secret": "whsec_s3cret" })).await;
    assert_eq!(refused.verdict(), "400 invalid_webhook_secret");
    assert!(!refused.json().to_string().contains("s3cret"));
}

#[tokio::test]
async fn who_says_gone_is_disabled_and_served_again_when_somebody_says_so() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    daemon.put("ops", json!({ "url": receiver.url() })).await;
    daemon.end(&session, "r1").await;
    receiver.next().await.answer("410 Gone").await;
    let hook = daemon.hook_until("ops", "it is disabled", |hook| hook["state"] == "disabled").await;
    assert_eq!(hook["last_error"], json!({ "code": "gone", "status": 410 }));
    let refused = daemon.post(&format!("{HOOKS}/ops/redeliver"), json!({ "seq": 1 })).await;
    assert_eq!(refused.verdict(), "409 webhook_disabled");
    let resumed = daemon.post(&format!("{HOOKS}/ops/resume"), json!({})).await;
    assert_eq!((resumed.status, &resumed.json()["state"]), (200, &json!("active")));
    assert_eq!(receiver.take().await, "r1");
}

#[tokio::test]
async fn an_endpoint_may_begin_behind_a_number_and_is_forgotten_when_it_is_deleted() {
    let daemon = Daemon::start().await;
    let (receiver, session) = (Receiver::new().await, daemon.occupied().await);
    for id in ["r1", "r2"] {
        daemon.end(&session, id).await;
    }
    daemon.put("ops", json!({ "url": receiver.url(), "after": 1 })).await;
    assert_eq!(receiver.take().await, "r2");
    let path = format!("{HOOKS}/ops");
    assert_eq!(daemon.ask(&format!("DELETE {path}"), "").await.status, 204);
    for line in [format!("GET {path}"), format!("DELETE {path}"), format!("POST {path}/resume")] {
        assert_eq!(daemon.ask(&line, "").await.verdict(), "404 webhook_not_found", "{line}");
    }
    assert_eq!(daemon.get(HOOKS).await.json()["webhooks"], json!([]));
    let seq = daemon.ask(&format!("POST {path}/redeliver"), r#"{"seq":1}"#).await;
    assert_eq!(seq.verdict(), "404 webhook_not_found");
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused() {
    let daemon = Daemon::start().await;
    let url = "http://localhost:1/";
    let secret = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![1; bytes]));
    for (name, body, verdict) in [
        ("a%20b", json!({ "url": url }), "400 invalid_webhook_name"),
        ("webhook:a", json!({ "url": url }), "400 invalid_webhook_name"),
        ("a", json!({}), "400 invalid_webhook_url"),
        ("a", json!({ "url": 7 }), "400 invalid_webhook_url"),
        ("a", json!({ "url": "ftp://localhost/" }), "400 invalid_webhook_url"),
        ("a", json!({ "url": "http://me:s3cret@localhost/" }), "400 invalid_webhook_url"),
        ("a", json!({ "url": url, "secret": secret(23) }), "400 invalid_webhook_secret"),
        ("a", json!({ "url": url, "secret": secret(65) }), "400 invalid_webhook_secret"),
        ("a", json!({ "url": url, "secret": "secret" }), "400 invalid_webhook_secret"),
        ("a", json!({ "url": url, "secret": 7 }), "400 invalid_webhook_secret"),
        ("a", json!({ "url": url, "after": -1 }), "400 invalid_after"),
        ("a", json!({ "url": url, "after": 1 }), "409 cursor_ahead"),
    ] {
        let refused = daemon.put(name, body.clone()).await;
        assert_eq!(refused.verdict(), verdict, "{name} {body}");
        assert!(!refused.json().to_string().contains("s3cret"));
    }
    let own = daemon.put("a", json!({ "url": url, "secret": secret(24) })).await;
    assert_eq!((own.status, own.json().get("secret")), (201, None), "who brings a secret is not told it");
    for number in 1..16 {
        assert_eq!(daemon.put(&format!("e{number}"), json!({ "url": url })).await.status, 201);
    }
    assert_eq!(daemon.put("more", json!({ "url": url })).await.verdict(), "409 too_many_webhooks");
}

#[tokio::test]
async fn neither_a_consumer_nor_a_request_can_be_called_as_an_endpoint_is() {
    let daemon = Daemon::start().await;
    daemon.put("ops", json!({ "url": "http://localhost:1/" })).await;
    let refused = daemon.ask("PUT /return-requests/consumers/webhook:ops", r#"{"acked":0}"#).await;
    assert_eq!(refused.verdict(), "400 invalid_consumer");
    let session = daemon.create().await;
    let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "requestId": "webhooks" });
    let refused = daemon.post(&format!("/session/{session}/return-requests"), body).await;
    assert_eq!(refused.verdict(), "400 invalid_request_id");
}
