//! The promises of a session as properties of its list of effects, under random scripts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::notation::{Play, word};
use crate::effect::{Effect, Reply, Tell, Word};
use crate::event::News;
use crate::limits::OVERLAY_PROMPTS_MAX;
use crate::steering::Steered;
use crate::{AdmitError, FlushOrigin, InputWritten, NotOpen, Terminal};

/// A small account of what ought to be so, kept from the outside.
#[derive(Default)]
pub(super) struct Model {
    /// Everything that was brought about, in order.
    pub(super) log: Vec<Effect>,
    /// Prompts without an outcome that wait.
    waiting: VecDeque<String>,
    /// The prompt that the agent has not answered.
    pub(super) held: Option<String>,
    /// Outcomes as they were recorded.
    pub(super) recorded: BTreeMap<String, Terminal>,
    /// Outcomes as they were published: state and detail.
    pub(super) published: BTreeMap<String, String>,
    pub(super) receipts: Vec<String>,
    /// Messages into the running turn that wait, oldest first.
    said: VecDeque<String>,
    /// Messages that were ever accepted, taken by the agent or a client, and promoted.
    accepted: BTreeSet<String>,
    taken: BTreeSet<String>,
    promoted: BTreeSet<String>,
    /// The host was asked for another agent and has not answered.
    replacing: bool,
    /// Somebody changes what the agent remembers.
    held_still: bool,
    /// What is submitted meanwhile is refused.
    shut: bool,
    /// The statement that is played.
    statement: String,
    /// Prompts whose outcomes were taken back.
    taken_back: BTreeSet<String>,
    /// Prompts whose cancel a client wished.
    wished: BTreeSet<String>,
    /// Prompts that have a witness.
    pub(super) witnessed: BTreeSet<String>,
    /// Those that were asked for, that their witness has let run, and that it has confirmed the outcome of.
    asked: BTreeSet<String>,
    let_go: BTreeSet<String>,
    confirmed: BTreeSet<String>,
    /// The one that waits at the gate, and the one whose outcome waits, with it.
    gate: Option<String>,
    settling: Option<(String, Terminal)>,
    /// Those whose end, and whose late answer, the witness was told of.
    pub(super) ended: BTreeSet<String>,
    late: BTreeSet<String>,
    /// A close, a kill, a loss or a shutdown has happened.
    ending: bool,
    /// A shutdown has found a witnessed prompt at the agent, whose answer counts.
    draining: bool,
    streams_ended: bool,
    pub(super) forgotten: bool,
    /// No later line of the ledger may be older than this: the last one's time, or just behind the last dispatch.
    floor_ms: u64,
}

impl Model {
    /// What the agent's answer does, before the machine hears of it.
    pub(super) fn agent_answers(&mut self, statement: &str) {
        statement.clone_into(&mut self.statement);
        let mut words = statement.split_whitespace();
        let verb = words.next();
        let named = |what: Option<&String>, id: &str| what.filter(|what| id == "?" || **what == id).cloned();
        match statement.split_once(' ') {
            Some(("go", id)) => self.let_go.extend(named(self.gate.as_ref(), id)),
            Some(("confirm", id)) => self.confirmed.extend(named(self.settling.as_ref().map(|(id, _)| id), id)),
            _ => {}
        }
        let answers = matches!(verb, Some("settle" | "fail" | "host" | "hostfail" | "hostgone" | "hostreplaced"));
        if let Some(id) = words.next().filter(|_| answers)
            && (id == "?" || self.held.as_deref() == Some(id))
        {
            // A host whose agent is gone gets nothing more.
            self.ending |= verb == Some("hostgone") && self.held.is_some();
            self.held = None;
        }
        if statement == "lost" || statement == "exited" {
            self.held = None;
        }
        if ["replaced", "kept", "needless", "noagent"].contains(&statement) && self.replacing {
            self.replacing = false;
            self.ending |= statement == "noagent";
            if statement == "replaced" {
                self.held = None;
            }
        }
        if let Some(id) = statement.strip_prefix("remove ")
            && let Some(place) = self.said.iter().position(|said| said == id)
            && !self.ending
        {
            self.said.remove(place);
            self.taken.insert(id.to_owned());
        }
        self.held_still &= statement != "release";
        self.shut &= self.held_still;
        if statement == "rewound" && self.held_still {
            self.taken_back.extend(self.recorded.keys().cloned());
        }
        if statement == "shutdown" {
            let unsettled = |held: &String| self.witnessed.contains(held) && !self.recorded.contains_key(held);
            self.draining = self.held.as_ref().is_some_and(unsettled);
        }
        self.ending |= ["close", "kill", "shutdown", "lost", "exited"].contains(&statement);
    }

    /// Times on record never go back, and none after a dispatch is as old as the dispatch: what the host dates later than
    /// the dispatch is then later than all that was on record before it.
    fn dated(&mut self, at_ms: u64) {
        assert!(at_ms >= self.floor_ms, "{at_ms} on record behind {}", self.floor_ms);
        self.floor_ms = at_ms;
    }

    /// A prompt goes on record; one that was said into a turn as the oldest of those, when that turn is over.
    fn admitted(&mut self, prompt_id: &str) {
        let was_said = self.said.iter().position(|id| id == prompt_id);
        assert!(was_said.is_some() || !self.ending, "{prompt_id} admitted at the end");
        assert!(!self.receipts.iter().any(|id| id == prompt_id), "{prompt_id} admitted twice");
        let is_witnessed = was_said.is_none() && self.statement.starts_with("witness");
        self.witnessed.extend(is_witnessed.then(|| prompt_id.to_owned()));
        let Some(place) = was_said else { return };
        assert_eq!(place, 0, "{prompt_id} becomes a prompt before an older message");
        // A host that does not answer is given up, and only then says the session that it ends.
        let is_over = self.held.is_none() || self.ending || self.replacing;
        assert!(is_over, "{prompt_id} becomes a prompt while its turn runs");
        self.said.pop_front();
        // Its receipt was given when it was accepted.
        self.receipts.push(prompt_id.to_owned());
        self.promoted.insert(prompt_id.to_owned());
    }

    /// A message is accepted; one that was said before is not said again.
    fn accepted(&mut self, id: &str) {
        if self.accepted.insert(id.to_owned()) && !self.receipts.iter().any(|receipt| receipt == id) {
            assert!(self.held.is_some() && !self.ending, "{id} accepted without a turn");
            self.said.push_back(id.to_owned());
        }
    }

    /// The agent takes a message.
    fn taken(&mut self, id: &str) {
        assert_eq!(self.said.pop_front().as_deref(), Some(id), "taken in another order, or twice");
        assert!(self.taken.insert(id.to_owned()), "{id} taken twice");
    }

    pub(super) fn take(&mut self, effect: Effect) {
        let only_an_answer = matches!(effect, Effect::Reply(_)) || !self.forgotten;
        assert!(only_an_answer, "nothing follows the end: {}", word(&effect));
        match &effect {
            Effect::RecordAdmission { prompt_id, at_ms } => {
                self.dated(*at_ms);
                self.admitted(prompt_id);
                self.waiting.push_back(prompt_id.to_string());
            }
            Effect::Reply(Reply::Admitted(receipt)) => {
                assert_eq!(self.waiting.back(), Some(&receipt.prompt_id), "a receipt without a record");
                assert!(!self.shut, "{} admitted although what it stands behind may be taken back", receipt.prompt_id);
                let is_first = self.held.is_none() && !self.replacing && self.waiting.len() == 1;
                assert!(is_first || !self.statement.starts_with("alone"), "{} is not alone", receipt.prompt_id);
                self.receipts.push(receipt.prompt_id.clone());
            }
            Effect::Tell(Tell::Prompt { prompt_id, after_ms, .. }) => self.dispatched(prompt_id, *after_ms),
            Effect::Witness { prompt_id, word } => self.told(prompt_id, word),
            Effect::RecordTerminal { prompt_id, terminal, at_ms } => self.ends(prompt_id, terminal, *at_ms),
            Effect::RecordWish { prompt_id, at_ms } => {
                self.dated(*at_ms);
                assert!(!self.ending, "{prompt_id} wished cancelled at the end");
                assert_eq!(self.held.as_deref(), Some(&**prompt_id), "a wish for what does not run");
                assert!(!self.recorded.contains_key(&**prompt_id), "a wish for what is over");
                assert!(self.wished.insert(prompt_id.to_string()), "{prompt_id} wished cancelled twice");
            }
            Effect::Publish(event) => {
                assert!(!self.streams_ended, "published after the end of the streams: {}", word(&effect));
                let (id, detail) = match (&event.prompt_id, &event.news) {
                    (Some(id), News::TurnComplete { stop_reason, .. }) => (id, stop_reason.clone()),
                    (Some(id), News::TurnError { code, .. }) => (id, code.clone().unwrap_or_default()),
                    _ => return self.log.push(effect),
                };
                let recorded = self.recorded.get(&**id).expect("an outcome is on record before it is published");
                assert_eq!(recorded.code().or(recorded.stop_reason()), Some(detail.as_str()), "{id}");
                let is_witnessed = self.witnessed.contains(&**id);
                assert!(!is_witnessed || self.ended.contains(&**id), "{id} published before its witness has heard");
                assert_eq!(self.published.insert(id.to_string(), detail), None, "{id} published twice");
            }
            Effect::Reply(Reply::Held { at_ms }) => {
                // The change is younger than all on record, and all that comes is younger than the change.
                assert!(*at_ms > self.floor_ms, "a change as old as what it takes back");
                self.floor_ms = at_ms + 1;
                assert!(self.held.is_none() && self.waiting.is_empty() && !self.replacing, "held although it is busy");
                assert!(!self.held_still && !self.ending, "held twice, or at the end");
                (self.held_still, self.shut) = (true, self.statement == "shut");
            }
            Effect::Tell(Tell::Replace { prompt_id }) => {
                assert!(!self.ending && !self.replacing, "another agent for an ending session");
                assert_eq!(self.held.as_deref(), Some(&**prompt_id), "nothing of that agent's runs");
                self.replacing = true;
            }
            // A host that did not answer is given up.
            Effect::Tell(Tell::Close(FlushOrigin::ChannelClosed)) => self.ending = true,
            Effect::EndStreams => self.streams_ended = true,
            Effect::Forget => self.forgotten = true,
            Effect::Reply(Reply::Steered(Steered::Accepted(receipt))) => self.accepted(&receipt.prompt_id),
            Effect::Tell(Tell::Drained { said, .. }) => said.iter().for_each(|said| self.taken(&said.id)),
            Effect::Tell(_) | Effect::Reply(_) => {}
        }
        self.log.push(effect);
    }

    /// The agent is given a prompt.
    fn dispatched(&mut self, prompt_id: &str, after_ms: u64) {
        self.dated(after_ms);
        self.floor_ms = after_ms + 1;
        assert!(!self.ending, "{prompt_id} dispatched at the end");
        assert!(self.receipts.contains(&prompt_id.to_owned()), "{prompt_id} dispatched before its receipt");
        assert_eq!(self.held, None, "the agent was given {prompt_id} too");
        assert!(!self.replacing, "{prompt_id} dispatched to an agent on its way to its end");
        assert!(!self.held_still, "{prompt_id} dispatched while the agent's memory is changed");
        assert_eq!(self.waiting.pop_front().as_deref(), Some(prompt_id), "out of turn");
        assert!(self.gate.is_none() || self.let_go.contains(prompt_id), "{prompt_id} passes the gate");
        assert!(self.settling.is_none(), "{prompt_id} dispatched while an outcome waits for its witness");
        let is_witnessed = self.witnessed.contains(prompt_id);
        assert_eq!(is_witnessed, self.let_go.contains(prompt_id), "{prompt_id} runs when it is let");
        self.gate.take_if(|gate| **gate == *prompt_id);
        self.held = Some(prompt_id.to_owned());
    }

    /// A prompt's outcome goes on record.
    fn ends(&mut self, prompt_id: &str, terminal: &Terminal, at_ms: u64) {
        self.dated(at_ms);
        self.waiting.retain(|waiting| **waiting != *prompt_id);
        self.gate.take_if(|gate| **gate == *prompt_id);
        if let Some((_, outcome)) = self.settling.take_if(|(id, _)| **id == *prompt_id) {
            // A host that does not answer is given up, and only then says the session that it ends.
            let is_ending = self.ending || self.replacing && self.statement.starts_with("wait");
            assert!(is_ending || self.confirmed.contains(prompt_id), "{prompt_id} is not confirmed");
            assert_eq!(outcome, *terminal, "{prompt_id} has another outcome than its witness was told");
        }
        let first = self.recorded.insert(prompt_id.to_owned(), terminal.clone());
        assert_eq!(first, None, "{prompt_id} recorded twice");
    }

    /// A witness is told something of its prompt.
    fn told(&mut self, prompt_id: &str, word: &Word) {
        let id = prompt_id.to_owned();
        assert!(self.witnessed.contains(&id), "{id} has no witness");
        let is_over = self.ended.contains(&id);
        match word {
            Word::Dispatching { after_ms, .. } => {
                assert!(*after_ms >= self.floor_ms, "what is on record is not younger than the turn");
                assert!(self.asked.insert(id.clone()), "{id} asked for twice");
                assert!(!self.ending && self.held.is_none() && self.gate.is_none() && self.settling.is_none());
                assert!(!self.replacing && !self.held_still, "{id} asked for while nothing may run");
                assert_eq!(self.waiting.front(), Some(&id), "{id} asked for out of turn");
                self.gate = Some(id);
            }
            Word::Written | Word::HeardUpdate | Word::HeardUser { .. } => {
                assert!(self.let_go.contains(&id) && !is_over, "{id} does not run");
            }
            Word::Settling(told) => {
                assert!(self.let_go.contains(&id) && !is_over && self.settling.is_none());
                assert!(!self.ending || self.draining, "{id} is waited for at the end");
                self.settling = Some((id, told.terminal.clone()));
            }
            Word::Ended { told, .. } => {
                assert!(
                    matches!(self.log.last(), Some(Effect::RecordTerminal { prompt_id, .. }) if **prompt_id == *id)
                );
                assert_eq!(self.recorded.get(&id), Some(&told.terminal), "{id} told as it is on record");
                assert!(self.let_go.contains(&id) || told.input_written == InputWritten::No, "{id} never ran");
                assert!(self.ended.insert(id), "told twice");
            }
            Word::Late(_) => assert!(is_over && self.late.insert(id), "nothing is late but behind the end, and once"),
        }
    }

    /// What must hold whenever nothing is happening.
    pub(super) fn agree(&self, play: &Play) {
        let session = &play.session;
        let unfinished = self.receipts.iter().filter(|id| !self.recorded.contains_key(*id)).count();
        assert_eq!(session.unfinished(), unfinished);
        assert!(unfinished + self.said.len() <= 5);
        let said: Vec<_> = session.steering().waiting.into_iter().map(|(id, _)| id).collect();
        assert!(said.iter().eq(self.said.iter()), "{said:?} {:?}", self.said);
        let turn_runs = session.turn.is_some();
        assert!(said.is_empty() || turn_runs, "words for a turn that is over");
        assert_eq!(self.recorded.len(), self.published.len(), "what is recorded is published");
        // Older ones may have left the overlay.
        for id in self.receipts.iter().rev().take(OVERLAY_PROMPTS_MAX - 10) {
            let view = session.turn(Some(id));
            assert_eq!(view.live.is_some(), !self.recorded.contains_key(id), "{id} is unfinished or over");
            assert_eq!(
                view.overlay.map(|ended| ended.terminal),
                self.recorded.get(id).filter(|_| !self.taken_back.contains(id)).cloned(),
                "{id} keeps its outcome"
            );
        }
        let waiting: Vec<_> = session.queue.iter().map(|entry| entry.prompt_id.to_string()).collect();
        assert!(waiting.iter().eq(self.waiting.iter()), "{waiting:?} {:?}", self.waiting);
        let asked = session.asked().map(|asked| asked.to_string());
        assert_eq!(asked, self.gate, "who waits for its witness");
        if !self.ending {
            let witness = self.gate.is_some() || self.settling.is_some();
            let pauses = session.pause_end().is_some();
            let busy = self.held.is_some() || self.replacing || self.held_still || witness || pauses;
            assert!(busy || waiting.is_empty(), "an idle agent and a waiting prompt");
        }
    }

    fn count(&self, wanted: &str) -> usize {
        self.log.iter().filter(|effect| word(effect).starts_with(wanted)).count()
    }
}

/// Prompts get their ids from here, so that some come twice.
const IDS: [&str; 9] = ["A", "B", "C", "D", "E", "F", "G", "H", "I"];

fn statement() -> impl Strategy<Value = String> {
    let id = || prop::sample::select(&IDS[..]);
    let request = || prop::sample::select(&["q", "p"][..]);
    let fixed = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![
        8 => id().prop_map(|id| format!("admit {id}")),
        2 => (id(), 0u64..2_000).prop_map(|(id, ms)| format!("admit {id} {ms}")),
        1 => (id(), 0u64..2_000).prop_map(|(id, ms)| format!("admit {id} run {ms}")),
        1 => id().prop_map(|id| format!("retry {id}")),
        6 => fixed(&["settle ? end_turn", "settle ? cancelled", "fail ?", "host ? completed end_turn", "hostfail ?"]),
        3 => id().prop_map(|id| format!("witness {id}")),
        3 => fixed(&["go ?", "go ?", "drop ?", "confirm ?", "confirm ?", "written ?"]),
        5 => id().prop_map(|id| format!("steer {id}")),
        3 => fixed(&["drain", "drain", "drain A", "drain foreign"]),
        2 => id().prop_map(|id| format!("settle {id} end_turn")),
        3 => id().prop_map(|id| format!("remove {id}")),
        3 => fixed(&["cancel", "say hi", "call c", "done c", "remove ?"]),
        1 => id().prop_map(|id| format!("hostgone {id}")),
        1 => request().prop_map(|id| format!("ask {id}")),
        1 => Just("odd".to_owned()),
        1 => (request(), prop::sample::select(&["yes", "no", "cancelled"][..])).prop_map(|(id, vote)| format!("vote {id} {vote}")),
        2 => (0u64..800).prop_map(|ms| format!("wait {ms}")),
        1 => Just("wait 30000".to_owned()),
        1 => prop_oneof![Just("clock -50000"), Just("clock 50000")].prop_map(str::to_owned),
        3 => fixed(&["replaced", "replaced", "kept", "needless", "noagent", "hostreplaced ?"]),
        1 => id().prop_map(|id| format!("alone {id}")),
        4 => fixed(&["hold", "shut", "release", "release", "rewound"]),
        1 => fixed(&["close", "kill", "shutdown", "lost", "exited", "hostgone ?"]),
    ]
}

/// Plays a script against the model and then lets the session come to rest.
pub(super) fn play(script: &[String]) -> Model {
    let (mut play, mut model) = (Play::new(), Model::default());
    let rest = ["shutdown".to_owned(), "wait 5000".to_owned(), "lost".to_owned()];
    for statement in script.iter().chain(&rest) {
        model.agent_answers(statement);
        for effect in play.act(statement) {
            model.take(effect);
        }
        model.agree(&play);
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_holds_under_any_script(script in prop::collection::vec(statement(), 0..60)) {
        let model = play(&script);
        prop_assert!(model.forgotten, "the session is over in the end");
        prop_assert!(model.receipts.iter().all(|id| model.recorded.contains_key(id)), "each prompt has its one outcome");
        prop_assert_eq!(model.count("receipt"), model.receipts.len() - model.promoted.len());
        prop_assert!(model.said.is_empty(), "each message has left");
        prop_assert!(model.taken.is_disjoint(&model.promoted), "each message left by one door");
        prop_assert_eq!(model.count("ask"), model.count("resolved"), "each request is resolved once");
        prop_assert!(model.count("> cancel") <= model.count("> prompt"), "a turn hears of its cancel once");
        prop_assert_eq!(model.count("closed") + model.count("died"), 1, "the session says once that it is over");
        prop_assert!(model.count("> close") <= 1);
    }

    #[test]
    fn a_clients_cancel_is_on_record_before_the_agent_or_a_reader_hears_of_it(
        script in prop::collection::vec(statement(), 0..40),
    ) {
        let mut play = Play::new();
        for statement in &script {
            let words: Vec<_> = play.act(statement).iter().map(word).collect();
            let place = |wanted: &str| words.iter().position(|word| word.starts_with(wanted));
            let is_clients = statement == "cancel" || statement.starts_with("remove");
            prop_assert!(is_clients || place("wish").is_none(), "{}: {:?}", statement, words);
            if let Some(told) = place("> cancel").filter(|_| is_clients) {
                prop_assert!(place("wish").is_some_and(|wish| wish == 0 && wish < told), "{}: {:?}", statement, words);
            }
        }
    }

    #[test]
    fn a_script_brings_about_the_same_whenever_it_is_played(script in prop::collection::vec(statement(), 0..30)) {
        prop_assert_eq!(play(&script).log, play(&script).log);
    }

    #[test]
    fn whoever_asks_is_answered_once(script in prop::collection::vec(statement(), 0..40)) {
        let mut play = Play::new();
        for statement in &script {
            let replies = play.act(statement).into_iter().filter(|effect| matches!(effect, Effect::Reply(_))).count();
            let asks = ["admit", "witness", "steer", "retry", "remove", "vote", "cancel", "alone", "hold", "shut", "close", "kill"];
            let expected = statement.split(' ').next().is_some_and(|verb| asks.contains(&verb));
            prop_assert_eq!(replies, usize::from(expected), "{}", statement);
        }
    }

    #[test]
    fn an_ending_session_says_so_to_everybody(script in prop::collection::vec(statement(), 0..30)) {
        let mut play = Play::new();
        for statement in script.iter().map(String::as_str).chain(["close"]) {
            play.act(statement);
        }
        let refused = play.act("admit new");
        let closing = matches!(
            refused[..],
            [Effect::Reply(Reply::NotAdmitted(AdmitError::Closing | AdmitError::Gone))]
        );
        prop_assert!(closing, "{:?}", refused);
        let not_open = matches!(play.act("cancel")[..], [Effect::Reply(Reply::NotOpen(NotOpen::Closing | NotOpen::Gone))]);
        prop_assert!(not_open);
    }
}
