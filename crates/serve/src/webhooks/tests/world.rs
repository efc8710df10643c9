//! A store, its couriers, and a network of pipes.
//!
//! A clock that is paused goes on when nobody of this runtime has anything to do, which also is so while the store's own thread works. A test
//! that says how late it is has no timer running then.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, mpsc as channel};
use std::time::Duration;

use request::fail_points::FailPoints;
use request::store::{Asked, Options, Page, Put, Registered, Store};
use request::webhook::{Endpoint, EndpointName, Fault, Letter, Secret};
use request::{Position, RequestId};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::receiver::Receiver;
use crate::returns::fixture::registration;
use crate::webhooks::dial::{Dial, Dialing, Stream};
use crate::webhooks::target::Target;
use crate::webhooks::{Outside, Webhooks};

/// When every test begins, in epoch milliseconds.
pub(super) const NOON: u64 = 1_800_000_000_000;

/// Connections of this process: each is a pipe to whoever listens under the name.
#[derive(Default)]
pub(super) struct Pipes {
    listening: Mutex<HashMap<String, mpsc::UnboundedSender<DuplexStream>>>,
    /// Whom somebody wanted to reach, in order.
    pub(super) dialed: Mutex<Vec<String>>,
}

impl Dial for Pipes {
    fn dial<'d>(&'d self, target: &'d Target) -> Dialing<'d> {
        self.dialed.lock().unwrap().push(target.host.clone());
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        let listening = self.listening.lock().unwrap().get(&target.host).cloned();
        let reached = listening.is_some_and(|listening| listening.send(theirs).is_ok());
        let stream: Result<Box<dyn Stream>, _> = if reached { Ok(Box::new(ours)) } else { Err(Fault::Unreachable) };
        Box::pin(async { stream })
    }
}

/// How long a test may take that does not hang, by the clock on the wall: a clock that is paused cannot say it.
const PATIENCE: Duration = Duration::from_secs(100);

pub(super) struct World {
    /// Ends the watch over this test when it is dropped.
    _watched: channel::Sender<()>,
    scratch: tempfile::TempDir,
    pub(super) fail_points: Arc<FailPoints>,
    pub(super) store: Option<Arc<Store>>,
    pub(super) hooks: Option<Webhooks>,
    pub(super) pipes: Arc<Pipes>,
    begun: Instant,
    events: u64,
}

impl World {
    /// A world with an empty store and no endpoint.
    pub(super) async fn new() -> Self {
        let (watched, watching) = channel::channel::<()>();
        std::thread::spawn(move || {
            if watching.recv_timeout(PATIENCE) == Err(channel::RecvTimeoutError::Timeout) {
                eprintln!("a test of webhooks waits for what does not come");
                std::process::abort();
            }
        });
        let mut world = Self {
            _watched: watched,
            scratch: tempfile::tempdir().unwrap(),
            fail_points: Arc::default(),
            store: None,
            hooks: None,
            pipes: Arc::default(),
            begun: Instant::now(),
            events: 0,
        };
        world.live().await;
        world
    }

    /// Begins the next life of the daemon. Of what was on its way in the last one nothing is heard any more.
    pub(super) async fn live(&mut self) {
        self.live_with(Arc::clone(&self.pipes) as Arc<dyn Dial>).await;
    }

    pub(super) async fn live_with(&mut self, dial: Arc<dyn Dial>) {
        self.die().await;
        let options = Options { ballast_bytes: 0, fail_points: Arc::clone(&self.fail_points), ..Options::default() };
        let (store, _) = Store::open(&self.scratch.path().join("requests"), options, NOON).unwrap();
        let head = watch::Sender::new(store.newest());
        let following = head.subscribe();
        store.on_commit(Arc::new(move |newest| {
            head.send_replace(newest);
        }));
        let store = Arc::new(store);
        let begun = self.begun;
        let now_ms = Arc::new(move || NOON + u64::try_from(begun.elapsed().as_millis()).unwrap());
        let outside = Outside { dial, now_ms, user_agent: "turnd/test".to_owned() };
        let hooks = Webhooks::new(Arc::clone(&store), following, outside);
        hooks.start().await;
        (self.store, self.hooks) = (Some(store), Some(hooks));
    }

    /// Ends this life where it is.
    pub(super) async fn die(&mut self) {
        if let Some(hooks) = self.hooks.take() {
            hooks.end().await;
        }
        // Nobody else has it by now, so that its lock is free.
        if let Some(store) = self.store.take() {
            drop(Arc::into_inner(store).expect("somebody still has the store"));
        }
    }

    pub(super) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(super) fn hooks(&self) -> &Webhooks {
        self.hooks.as_ref().unwrap()
    }

    /// Milliseconds since the test began.
    pub(super) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap()
    }

    /// Whoever listens under a name.
    pub(super) fn listen(&self, host: &str) -> Receiver {
        let (sender, connections) = mpsc::unbounded_channel();
        self.pipes.listening.lock().unwrap().insert(host.to_owned(), sender);
        Receiver { connections }
    }

    /// How often somebody wanted to reach a host.
    pub(super) fn dialed(&self, host: &str) -> usize {
        self.pipes.dialed.lock().unwrap().iter().filter(|dialed| *dialed == host).count()
    }

    /// An endpoint at the host of its name, which has had nothing.
    pub(super) async fn hook(&self, text: &str) -> Endpoint {
        self.hook_at(text, &format!("http://{text}/hook?of={text}")).await
    }

    pub(super) async fn hook_at(&self, text: &str, url: &str) -> Endpoint {
        match self.hooks().put(asked(text, url)).await.unwrap() {
            Put::Done { endpoint, .. } => *endpoint,
            other => panic!("{other:?}"),
        }
    }

    /// So many more events. The clock stands still meanwhile.
    pub(super) fn commit(&mut self, many: u64) {
        for _ in 0..many {
            self.events += 1;
            let request_id = RequestId::parse(&format!("r{}", self.events)).unwrap();
            let (sender, registered) = channel::channel();
            let reply = move |outcome| sender.send(matches!(outcome, Ok(Registered::New(_)))).unwrap();
            self.store().register(registration(request_id.as_str()), reply);
            assert!(registered.recv().unwrap());
            let (sender, ended) = channel::channel();
            let reply = move |outcome: Result<_, _>| sender.send(outcome.is_ok()).unwrap();
            self.store().apply(request_id, request::Input::Cancel, NOON, reply);
            assert!(ended.recv().unwrap());
        }
    }

    /// The body of an event, as the stream has it.
    pub(super) fn body(&self, seq: u64) -> String {
        let page = self.store().events(&Page::after(Position::Number(seq - 1))).unwrap();
        page.events[0].payload.clone()
    }

    pub(super) fn endpoint(&self, text: &str) -> Endpoint {
        self.store().endpoint(&name(text)).unwrap().unwrap().0
    }

    pub(super) fn letters(&self, text: &str) -> Vec<Letter> {
        self.store().endpoint(&name(text)).unwrap().unwrap().1
    }

    /// Lets everybody come to rest who has something to do, as far as that can be seen from outside.
    pub(super) async fn rest(&self) {
        for _ in 0..1_000 {
            self.store().endpoints().unwrap();
            tokio::task::yield_now().await;
        }
    }

    /// Waits until an endpoint is as it is wanted, while the clock stands still.
    pub(super) async fn until(&self, text: &str, is_so: impl Fn(&Endpoint) -> bool) -> Endpoint {
        for _ in 0..100_000 {
            let endpoint = self.endpoint(text);
            if is_so(&endpoint) {
                return endpoint;
            }
            tokio::task::yield_now().await;
        }
        panic!("it stays {:?}", self.endpoint(text));
    }
}

pub(super) fn name(text: &str) -> EndpointName {
    EndpointName::parse(text).unwrap()
}

/// The key of every endpoint.
pub(super) const KEY: [u8; 24] = *b"0123456789abcdefghijklmn";

pub(super) fn asked(text: &str, url: &str) -> Asked {
    let secret = Secret::new(KEY.to_vec()).unwrap();
    Asked {
        name: name(text),
        owner: "o".to_owned(),
        url: url.to_owned(),
        secret: Some(secret.clone()),
        spare: secret,
        after: Some(0),
    }
}
