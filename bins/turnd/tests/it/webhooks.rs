//! Webhooks of the whole program: what was on its way when the daemon was killed with signal 9 is sent again, under the same id.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::world::{World, until};

/// A request that waits for its answer.
struct Delivery {
    stream: TcpStream,
    id: String,
    body: String,
}

struct Receiver(TcpListener);

impl Receiver {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    /// The next request that came whole. One of a daemon that was killed meanwhile may not have.
    fn next(&self) -> Delivery {
        until("something is posted", || {
            let (stream, _) = self.0.accept().ok()?;
            stream.set_nonblocking(false).unwrap();
            Delivery::read(stream)
        })
    }
}

impl Delivery {
    fn read(mut stream: TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let header = |name: &str| {
            let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.unwrap_or_else(|| panic!("no {name} in {head}")).to_owned()
        };
        let mut body = vec![0; header("content-length").parse().unwrap()];
        stream.read_exact(&mut body).ok()?;
        Some(Self { stream, id: header("webhook-id"), body: String::from_utf8(body).unwrap() })
    }

    /// Answers well; whoever asked may be dead by now.
    fn take(mut self) -> (String, Value) {
        let _ = self.stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        (self.id, serde_json::from_str(&self.body).unwrap())
    }
}

/// A daemon with an endpoint, and who is posted to.
fn world() -> (World, Receiver) {
    let (mut world, receiver) = (World::with(&["--linger-ms", "100"]), Receiver::new());
    let url = format!("http://{}/hook", receiver.0.local_addr().unwrap());
    let (status, named) = world.call("PUT", "/return-requests/webhooks/ops", &json!({ "url": url }).to_string());
    assert_eq!(status, 201, "{named}");
    (world, receiver)
}

fn submit(world: &mut World, session: &str, id: &str) {
    let body = json!({ "requestId": id, "prompt": [{ "type": "text", "text": format!("hello {id}") }], "queue": true });
    let (status, receipt) = world.call("POST", &format!("/session/{session}/return-requests"), &body.to_string());
    assert_eq!(status, 202, "{receipt}");
}

#[test]
fn what_was_on_its_way_at_a_kill_is_sent_again_under_the_same_id_and_then_what_comes_behind_it() {
    let (mut world, receiver) = world();
    let session = world.session();
    submit(&mut world, &session, "r1");
    let cut_off = receiver.next();
    world.kill_daemon();
    let again = receiver.next();
    assert_eq!((&again.id, &again.body), (&cut_off.id, &cut_off.body));
    let (_, event) = again.take();
    assert_eq!((&event["request_id"], &event["state"]), (&json!("r1"), &json!("completed")));
    let session = world.session();
    submit(&mut world, &session, "r2");
    let (id, event) = receiver.next().take();
    assert_eq!(event["request_id"], "r2");
    assert_ne!(id, cut_off.id);
}

#[test]
fn killed_again_and_again_around_its_answers_each_event_arrives_in_order_and_with_one_body() {
    let (mut world, receiver) = world();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let (mut order, mut ids) = (Vec::new(), Vec::new());
    for round in 0..6_u32 {
        let session = world.session();
        for number in 0..3 {
            ids.push(format!("r{round}-{number}"));
            submit(&mut world, &session, ids.last().unwrap());
        }
        // Killed now sooner and now later behind an answer: before it is on record, behind it, and while the next one is on its way.
        for _ in 0..=round % 3 {
            note(receiver.next(), &mut seen, &mut order);
        }
        for _ in 0..round * 50_000 {
            std::hint::spin_loop();
        }
        world.kill_daemon();
    }
    for id in &ids {
        until("the request has ended", || {
            let receipt = world.get(&format!("/return-requests/{id}?wait_ms=500"));
            (receipt["reply_pending"] == false).then_some(())
        });
    }
    let head = ids.len() as u64;
    assert_eq!(world.get("/return-requests/stream")["head"], head);
    world.call("POST", "/return-requests/webhooks/ops/resume", "{}");
    while order.last() != Some(&head) {
        note(receiver.next(), &mut seen, &mut order);
    }
    assert!(order.is_sorted(), "{order:?}");
    order.dedup();
    assert_eq!(order, (1..=head).collect::<Vec<_>>());
    assert_eq!(seen.len() as u64, head);
}

/// Takes a delivery; the same id has the same body each time.
fn note(delivery: Delivery, seen: &mut BTreeMap<String, String>, order: &mut Vec<u64>) {
    let body = delivery.body.clone();
    let (id, event) = delivery.take();
    assert_eq!(seen.entry(id).or_insert_with(|| body.clone()), &body);
    order.push(event["terminal_event_sequence"].as_u64().unwrap());
}
