//! A store in a folder of its own, and short words for what is done to it. Nothing here sleeps: a call waits for its own reply.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use turnd_request::fail_points::FailPoints;
use turnd_request::store::{
    Acknowledgement, Applied, Consumer, Entry, OpenError, Options, Page, Registered, Store, StoreError,
};
use turnd_request::{
    ArmedCursor, Baseline, Evidence, FinalText, Hash, Incarnation, Input, Outcome, Position, Registration, Request,
    RequestId, Stage, TerminalEvent,
};

pub(crate) struct World {
    pub(crate) scratch: tempfile::TempDir,
    pub(crate) fail_points: Arc<FailPoints>,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) now: u64,
}

/// The time at which every world begins.
pub(crate) const NOON: u64 = 1_800_000_000_000;

impl World {
    pub(crate) fn new() -> Self {
        let mut world = Self::closed();
        world.open();
        world
    }

    /// A world whose store has not been opened.
    pub(crate) fn closed() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        Self { scratch, fail_points: Arc::default(), store: None, now: NOON }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.scratch.path().join("project/turnd-requests")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder().join("requests.db")
    }

    pub(crate) fn options(&self) -> Options {
        Options { busy_ms: 200, ballast_bytes: 0, fail_points: Arc::clone(&self.fail_points) }
    }

    pub(crate) fn try_open(&mut self) -> Result<Vec<Request>, OpenError> {
        self.store = None;
        let (store, waiting) = Store::open(&self.folder(), self.options(), self.now)?;
        self.store = Some(Arc::new(store));
        Ok(waiting)
    }

    pub(crate) fn open(&mut self) -> Vec<Request> {
        self.try_open().unwrap()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn register(&self, name: &str) -> Result<Registered, StoreError> {
        self.ask(asked(name))
    }

    pub(crate) fn ask(&self, asked: Registration) -> Result<Registered, StoreError> {
        wait(|reply| self.store().register(asked, reply))
    }

    /// A new request. Panics when it is not new.
    pub(crate) fn new_request(&self, name: &str) -> Request {
        match self.register(name).unwrap() {
            Registered::New(request) => *request,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub(crate) fn apply(&self, name: &str, input: Input) -> Result<Applied, StoreError> {
        self.apply_at(name, input, self.now)
    }

    pub(crate) fn apply_at(&self, name: &str, input: Input, at_ms: u64) -> Result<Applied, StoreError> {
        wait(|reply| self.store().apply(id(name), input, at_ms, reply))
    }

    /// Brings a new request to where the whole prompt is with the agent.
    pub(crate) fn submit(&self, name: &str) -> Request {
        self.new_request(name);
        self.apply(name, Input::Admitted).unwrap();
        self.apply(name, dispatched()).unwrap();
        self.apply(name, Input::Written).unwrap().request
    }

    /// A request that has completed, and its event.
    pub(crate) fn complete(&self, name: &str) -> TerminalEvent {
        self.submit(name);
        self.apply(name, settled(&format!("answer of {name}"))).unwrap().event.unwrap()
    }

    pub(crate) fn stage(&self, name: &str, stage: Stage) -> Result<Request, StoreError> {
        wait(|reply| self.store().stage(id(name), stage, reply))
    }

    pub(crate) fn note(&self, incarnation: Incarnation) -> Result<(), StoreError> {
        wait(|reply| self.store().note_incarnation(incarnation, reply))
    }

    pub(crate) fn consume(&self, name: &str, acked: u64, protect: Option<bool>) -> Result<Consumer, StoreError> {
        let ack = Acknowledgement { name: name.into(), owner: "o".into(), acked, protect };
        wait(|reply| self.store().consumer(ack, self.now, reply))
    }

    /// The request under a name, with the text of its event.
    pub(crate) fn get(&self, name: &str) -> Request {
        let mut request = match self.store().get(&id(name)).unwrap() {
            Some(Entry::Request(request)) => *request,
            other => panic!("{name}: {other:?}"),
        };
        let event = self.store().event_of(&id(name)).unwrap();
        let body = event.map(|event| serde_json::from_str::<serde_json::Value>(&event.payload).unwrap());
        request.final_message = body.and_then(|body| body["final_message"].as_str().map(str::to_owned));
        request
    }

    /// Every event that is kept, in order.
    pub(crate) fn events(&self) -> Vec<TerminalEvent> {
        let mut after = self.store().head().unwrap().pruned_through;
        let mut events = Vec::new();
        loop {
            let page = self.store().events(&Page::after(Position::Number(after))).unwrap();
            if page.events.is_empty() {
                return events;
            }
            after = page.next_after;
            events.extend(page.events);
        }
    }

    /// Panics unless everything holds that must.
    pub(crate) fn assert_sound(&self) {
        let report = self.store().verify(false).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
    }
}

/// Waits for one reply.
pub(crate) fn wait<T: Send + 'static>(ask: impl FnOnce(Box<dyn FnOnce(T) + Send>)) -> T {
    let (sender, receiver) = mpsc::channel();
    ask(Box::new(move |answer| sender.send(answer).unwrap()));
    receiver.recv().expect("every command is answered")
}

pub(crate) fn id(name: &str) -> RequestId {
    RequestId::parse(name).unwrap()
}

/// What a caller asks under an id.
pub(crate) fn asked(name: &str) -> Registration {
    Registration {
        request_id: id(name),
        owner: "o".into(),
        input_hash: Hash([7; 32]),
        hash_version: 1,
        session_id: "s".into(),
        incarnation_id: None,
        prompt_id: format!("prompt-{name}"),
        options: turnd_request::Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([8; 32]),
        prompt_bytes: 11,
        baseline: baseline(),
        created_at: NOON,
    }
}

fn baseline() -> Baseline {
    Baseline { prompt_id: Some("before".into()), turn: 3 }
}

pub(crate) fn dispatched() -> Input {
    Input::Dispatched {
        armed: ArmedCursor { event_id: 5, tail: Some("tail".into()) },
        baseline: baseline(),
        incarnation_id: None,
    }
}

pub(crate) fn outcome(text: &str) -> Outcome {
    Outcome::Ended {
        stop_reason: "end_turn".into(),
        final_text: FinalText::new(text),
        evidence: Evidence::RpcResponse,
        is_strayed: false,
        is_unreadable: false,
    }
}

pub(crate) fn settled(text: &str) -> Input {
    Input::Settled(outcome(text))
}

pub(crate) fn incarnation(name: &str) -> Incarnation {
    Incarnation {
        incarnation_id: name.into(),
        daemon_epoch: 1,
        boot_id: "boot".into(),
        child_pid: 4711,
        child_start_ticks: 12,
        nonce: format!("nonce of {name}"),
        agent_name: Some("agent".into()),
        agent_version: None,
        protocol_version: Some("1".into()),
        workspace_key: "w".into(),
        spawned_at: NOON,
        ended_at: None,
        end_reason: None,
    }
}

/// The mode bits of a path.
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Panics unless a folder and all below it is for its owner alone. Gives what there is, as it is called from there.
pub(crate) fn assert_closed_to_others(folder: &Path) -> Vec<String> {
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            names.extend(assert_closed_to_others(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
        names.push(name);
    }
    names
}
