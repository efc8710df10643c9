//! A bridge with its ledger and one session.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bridge::limits::{Limits, Timeouts};
use bridge::{
    Admission, Bridge, Clock, Ending, Frame, Kind, Mediation, OpenSession, Opened, Options, Prompt, PromptLedger, Seed,
    Session, Subscribe, Subscription, Wish, Witness,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent::Agent;

/// Waits for what must come soon. The clock of these tests jumps, so a wait in vain costs nothing.
pub(crate) async fn soon<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(3600), wait).await.expect("it never came")
}

/// What was recorded, a line each.
#[derive(Default)]
pub(crate) struct Ledger {
    lines: Mutex<Vec<String>>,
}

impl Ledger {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

impl PromptLedger for Ledger {
    fn admitted(&self, admission: &Admission<'_>) {
        self.lines.lock().push(format!("{} in_flight", admission.prompt_id));
    }

    fn cancel_wished(&self, wish: &Wish<'_>) {
        self.lines.lock().push(format!("{} cancel_requested", wish.prompt_id));
    }

    fn ended(&self, ending: &Ending<'_>) {
        assert_ne!(ending.prompt_id, "fault", "a fault in the ledger, wanted by the test");
        let detail = ending.terminal.code().or(ending.terminal.stop_reason()).unwrap_or("-");
        self.lines.lock().push(format!("{} {} {detail}", ending.prompt_id, ending.terminal.state()));
    }
}

/// A bridge whose time is tokio's, from 1,000 on.
pub(crate) fn bridge_with(limits: Limits) -> (Bridge, Arc<Ledger>) {
    bridge_under(limits, Mediation::default(), None)
}

fn bridge_under(limits: Limits, mediation: Mediation, witness: Option<Arc<dyn Witness>>) -> (Bridge, Arc<Ledger>) {
    let ledger = Arc::new(Ledger::default());
    let start = tokio::time::Instant::now();
    let clock = Clock::new(move || 1_000 + u64::try_from(start.elapsed().as_millis()).unwrap());
    let options = Options { ledger: ledger.clone(), witness, clock, limits, timeouts: Timeouts::default(), mediation };
    (Bridge::new(options), ledger)
}

pub(crate) fn open_session(kind: Kind) -> OpenSession {
    OpenSession { session_id: "s".into(), workspace_cwd: "/ws".into(), kind, same_id: false }
}

/// One live session, its agent, and one reader.
pub(crate) struct World {
    pub(crate) bridge: Bridge,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) agent: Agent,
    pub(crate) session: Session,
    pub(crate) reader: Subscription,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::under(Mediation::default()).await
    }

    /// The same where questions are decided by other rules than the first vote.
    pub(crate) async fn under(mediation: Mediation) -> Self {
        Self::of(bridge_under(Limits::default(), mediation, None), json!({"sessionId": "agent-1"})).await
    }

    /// The same where prompts may have a witness, and the agent is a process of this machine.
    pub(crate) async fn before(witness: Arc<dyn Witness>) -> Self {
        let process = json!({"pid": 7, "startTicks": 42, "bootId": "boot"});
        let state = json!({"sessionId": "agent-1", "_meta": {"turnd/process": process}});
        Self::of(bridge_under(Limits::default(), Mediation::default(), Some(witness)), state).await
    }

    async fn of((bridge, ledger): (Bridge, Arc<Ledger>), agent_state: Value) -> Self {
        let (mut agent, streams) = Agent::connect();
        let opening = bridge.open(open_session(Kind::New), streams);
        let (opened, _) = tokio::join!(opening, agent.greet(agent_state));
        let session = opened.unwrap().activate(0, Seed::default());
        let reader = session.subscribe(&Subscribe::default()).unwrap();
        Self { bridge, ledger, agent, session, reader }
    }

    /// Admits a prompt of this id and text.
    pub(crate) fn admit(&self, id: &str) -> bridge::Receipt {
        self.session.admit(prompt(id)).unwrap()
    }

    /// The next event, as its short form.
    pub(crate) async fn event(&mut self) -> String {
        short(&self.frame().await)
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        soon(self.reader.next()).await.expect("the stream ended")
    }

    /// The next events, as many as there are words expected.
    pub(crate) async fn expect(&mut self, expected: &str) {
        for expected in expected.split("; ") {
            assert_eq!(self.event().await, expected);
        }
    }

    pub(crate) async fn expect_end(&mut self) {
        assert_eq!(soon(self.reader.next()).await.map(|frame| short(&frame)), None);
    }
}

/// Opens a session with an agent that calls it `agent-1`.
pub(crate) async fn open(bridge: &Bridge, open: OpenSession) -> (Agent, Opened) {
    let (mut agent, streams) = Agent::connect();
    let (opened, _) = tokio::join!(bridge.open(open, streams), agent.greet(json!({"sessionId": "agent-1"})));
    (agent, opened.unwrap())
}

pub(crate) fn prompt(id: &str) -> Prompt {
    Prompt {
        content: json!([{"type": "text", "text": id}]).to_string(),
        text: id.to_owned(),
        prompt_id: Some(id.to_owned()),
        originator: Some("client".to_owned()),
        ..Prompt::default()
    }
}

pub(crate) fn envelope(frame: &Frame) -> Value {
    serde_json::from_slice(&frame.json).unwrap()
}

/// An event as a few words: its type without the common parts, the prompt, and what matters most.
pub(crate) fn short(frame: &Frame) -> String {
    let envelope = envelope(frame);
    let (data, update) = (&envelope["data"], &envelope["data"]["update"]);
    let first = |values: &[&Value]| values.iter().find_map(|value| value.as_str()).unwrap_or_default().to_owned();
    let kind = if frame.kind == "session_update" { first(&[&update["sessionUpdate"]]) } else { frame.kind.to_owned() };
    let detail = first(&[
        &data["outcome"]["optionId"],
        &data["outcome"]["outcome"],
        &data["stopReason"],
        &data["code"],
        &data["reason"],
        &data["state"],
        &update["content"]["text"],
    ]);
    [kind, first(&[&envelope["promptId"]]), detail]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
