//! What is decided of requests whose session's ledger lost its tail to a power cut. Each cut has a session of its own, all in one store.

use std::fs;
use std::path::Path;

use ledger::Record;
use request::store::Options as StoreOptions;
use request::{ArmedCursor, Baseline, Evidence, FinalText, Options, Registration};
use serde_json::json;
use transcript::{Body, Identity, TurnResult, Writer};

use super::*;
use crate::hosts::ProcessStarter;
use crate::neighbours::Neighbours;
use crate::neighbours::tests::options;
use crate::returns::RECORD_HASH;
use crate::returns::evidence::record_hash;
use crate::returns::fixture::registration;

const ASKED: &str = "what is it?";
const ANSWER: &str = "so";
/// When each outcome was seen.
const ENDED_MS: u64 = 5;

/// How far a request had come when the power went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Admitted,
    Dispatched,
    /// The agent has the prompt, and the transcript its turn, to the end or without it.
    Written {
        is_recorded: bool,
    },
    Staged,
}

/// A request whose last line on the ledger is cut.
#[derive(Clone, Copy)]
struct Case {
    step: Step,
    /// Whether the cut line is its end, behind a whole admission; else it is the admission.
    is_end: bool,
    /// State, code, whether the input was written, and the answer, with the last line lost and with all of it.
    told: [&'static str; 2],
    /// The ends of its prompt that the ledger has then.
    ends: [&'static [&'static str]; 2],
}

const UNSENT: &str = "indeterminate crash_before_submitted no -";
const IN_DISPATCH: &str = "indeterminate crash_in_dispatch maybe -";
const COMPLETED: &str = "completed - yes so";

const CASES: [Case; 7] = [
    Case { step: Step::Admitted, is_end: false, told: [UNSENT; 2], ends: [&[], &["never_dispatched"]] },
    Case { step: Step::Dispatched, is_end: false, told: [IN_DISPATCH; 2], ends: [&[], &[]] },
    Case { step: Step::Written { is_recorded: true }, is_end: false, told: [COMPLETED; 2], ends: [&[], &[]] },
    Case { step: Step::Written { is_recorded: true }, is_end: true, told: [COMPLETED; 2], ends: [&[], &["end_turn"]] },
    Case {
        step: Step::Written { is_recorded: false },
        is_end: true,
        told: ["indeterminate daemon_lost yes -", "indeterminate final_text_unavailable yes -"],
        ends: [&[], &["end_turn"]],
    },
    Case { step: Step::Staged, is_end: false, told: [COMPLETED; 2], ends: [&[], &["end_turn"]] },
    Case { step: Step::Staged, is_end: true, told: [COMPLETED; 2], ends: [&["end_turn"], &["end_turn"]] },
];

/// One session: a neighbour that had ended but for its own last step, a prompt that runs, and the request whose line is cut behind them.
struct Torn {
    case: Case,
    cut: usize,
    session: String,
}

impl Torn {
    /// Every cut of every case.
    fn all() -> Vec<Self> {
        let cuts = CASES.into_iter().enumerate().flat_map(|(number, case)| {
            let torn = move |cut| Self { case, cut, session: format!("{number}-{cut:03}") };
            let line = torn(0).lines().1;
            (0..=line.len()).map(torn)
        });
        cuts.collect()
    }

    fn named(&self, word: &str) -> String {
        format!("{word}-{}", self.session)
    }

    /// The ledger's lines that are whole, and the one that is cut.
    fn lines(&self) -> (String, String) {
        let (before, own) = (self.before(), self.own());
        let (last, whole) = own.split_last().unwrap();
        let text = |records: &[Record]| records.iter().map(|record| record.to_line() + "\n").collect::<String>();
        (text(&before) + &text(whole), text(std::slice::from_ref(last)))
    }

    fn before(&self) -> Vec<Record> {
        let (neighbour, other) = (self.named("p-neighbour"), self.named("p-other"));
        vec![
            Record::in_flight(&neighbour, Some("tail"), 1),
            Record::completed(&neighbour, "end_turn", ENDED_MS),
            Record::in_flight(&other, Some("tail"), 6),
        ]
    }

    fn own(&self) -> Vec<Record> {
        let prompt = self.named("p-own");
        let mut lines = vec![Record::in_flight(&prompt, Some("tail"), 7)];
        lines.extend(self.case.is_end.then(|| Record::completed(&prompt, "end_turn", ENDED_MS)));
        lines
    }

    /// Whether the cut line is whole all the same: its end of line is made good by whoever writes next.
    fn survives(&self) -> bool {
        self.cut + 1 >= self.lines().1.len()
    }

    /// Puts what the power cut left into the session's files.
    fn write(&self, layout: &crate::layout::Layout) {
        let (whole, line) = self.lines();
        let path = layout.ledger(&self.session);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{whole}{}", &line[..self.cut])).unwrap();
        if let Step::Written { is_recorded } = self.case.step {
            self.record(&layout.transcript(&self.session), is_recorded);
        }
    }

    fn record(&self, path: &Path, is_recorded: bool) {
        let prompt = self.named("p-own");
        let identity = Identity { session_id: self.session.clone(), cwd: "/one".into(), version: "0".into() };
        let mut writer = Writer::open(path, identity, transcript::Durability::Process).unwrap();
        let part = |text: &str| vec![json!({ "text": text })];
        let mut records = vec![(ENDED_MS, Body::User { prompt_id: Some(prompt.clone()), parts: part(ASKED) })];
        if is_recorded {
            records.push((ENDED_MS, Body::Assistant { model: None, parts: part(ANSWER) }));
            let state = transcript::TurnState::Completed;
            let mut result = TurnResult::new(&*prompt, state, ENDED_MS).with_result_text(ANSWER);
            result.stop_reason = Some("end_turn".into());
            records.push((ENDED_MS, result.into()));
        }
        writer.append_all(&records).unwrap();
    }

    /// Puts its two requests into the store, and does not wait for that.
    fn put(&self, store: &Store) {
        self.bring(store, "neighbour", Step::Staged);
        self.bring(store, "own", self.case.step);
    }

    fn bring(&self, store: &Store, word: &str, step: Step) {
        let id = RequestId::parse(&self.named(word)).unwrap();
        let mut options = Options::default();
        options.others.insert(RECORD_HASH.to_owned(), record_hash(&[ASKED.to_owned()]).to_string().into());
        let (session_id, prompt_id) = (self.session.clone(), self.named(&format!("p-{word}")));
        let asked = Registration { session_id, prompt_id, options, ..registration(id.as_str()) };
        store.register(asked, |registered| drop(registered.unwrap()));
        let armed = ArmedCursor { event_id: 0, tail: None };
        let dispatched = Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None };
        let inputs = [Input::Admitted, dispatched, Input::Written];
        let steps = match step {
            Step::Admitted => 1,
            Step::Dispatched => 2,
            Step::Written { .. } | Step::Staged => 3,
        };
        for input in inputs.into_iter().take(steps) {
            store.apply(id.clone(), input, 2, |applied| drop(applied.unwrap()));
        }
        if step == Step::Staged {
            store.stage(id, Stage::new(outcome(), ENDED_MS), |staged| drop(staged.unwrap()));
        }
    }

    /// Looks what has become of the two, and of the ledger.
    fn check(&self, store: &Store, workspace: &Workspace) {
        let case = format!("{} cut at {}", self.session, self.cut);
        let survives = usize::from(self.survives());
        assert_eq!(told(store, &self.named("neighbour")), COMPLETED, "{case}");
        assert_eq!(told(store, &self.named("own")), self.case.told[survives], "{case}");
        let records = workspace.sink.ledger(&self.session).read().unwrap().records;
        let (before, own) = records.split_at(3);
        assert_eq!(before, self.before(), "{case}");
        let prompt = self.named("p-own");
        assert!(own.iter().all(|record| record.prompt_id == prompt), "{case}: {own:?}");
        let is_admitted = self.case.is_end || self.survives();
        let admissions = own.iter().filter(|record| matches!(record.fact, ledger::Fact::InFlight { .. })).count();
        assert_eq!(admissions, usize::from(is_admitted), "{case}: {own:?}");
        let ends = own.iter().filter_map(|record| match &record.fact {
            ledger::Fact::Terminal { code, stop_reason, .. } => code.as_deref().or(stop_reason.as_deref()),
            ledger::Fact::InFlight { .. } => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), self.case.ends[survives], "{case}: {own:?}");
    }
}

fn outcome() -> Outcome {
    Outcome::Ended {
        stop_reason: "end_turn".into(),
        final_text: FinalText::new(ANSWER),
        evidence: Evidence::RpcResponse,
        is_strayed: false,
        is_unreadable: false,
    }
}

/// State, code, whether the input was written, and the answer.
fn told(store: &Store, id: &str) -> String {
    let id = RequestId::parse(id).unwrap();
    let Some(Known::Request(request)) = store.get(&id).unwrap() else { panic!("{id} is gone") };
    let event = store.event_of(&id).unwrap().map(|event| serde_json::from_str::<serde_json::Value>(&event.payload));
    let event = event.transpose().unwrap().unwrap_or_default();
    let code = request.code.as_ref().map_or("-", request::Code::as_str);
    let answer = event["final_message"].as_str().unwrap_or("-");
    format!("{} {code} {} {answer}", request.state.as_str(), request.input_written.as_str())
}

#[tokio::test]
async fn scenario_42_with_the_tail_of_the_ledger_cut_at_every_byte_each_request_ends_as_it_must_and_its_neighbour_too()
{
    let scratch = tempfile::tempdir().unwrap();
    let (options, folder) = (Arc::new(options(scratch.path())), scratch.path().join("requests"));
    let torn = Torn::all();
    let store = Store::open(&folder, StoreOptions::default(), 1).unwrap().0;
    // As many at once as may wait for the writer.
    for some in torn.chunks(50) {
        some.iter().for_each(|torn| torn.put(&store));
        let nobody = RequestId::parse("nobody").unwrap();
        let all_are_done = asked(|reply| store.apply(nobody, Input::Cancel, 2, reply)).await;
        assert_eq!(all_are_done.err(), Some(StoreError::Unknown));
    }
    drop(store);
    let neighbours = Arc::<Neighbours>::default();
    let returns = Returns::new(Arc::clone(&neighbours));
    let hosts = Arc::new(ProcessStarter { launcher: "/nonexistent".into() });
    let workspace = Arc::new(Workspace::new("/one".as_ref(), options, hosts, Arc::clone(&returns)));
    neighbours.introduce(std::iter::once(&workspace));
    torn.iter().for_each(|torn| torn.write(&workspace.layout));
    let open = returns.open(folder).await;
    assert_eq!(open.len(), 2 * torn.len());
    Arc::clone(&returns).recover(open).await;
    let store = Arc::clone(returns.store().unwrap());
    torn.iter().for_each(|torn| torn.check(&store, &workspace));
    assert!(torn.len() > 500, "every byte of seven lines: {}", torn.len());
    assert_eq!(store.verify(true).unwrap().violations, Vec::<String>::new());
    assert_eq!(store.head().unwrap().head, 2 * torn.len() as u64, "one end each");
    returns.close().await;
}
