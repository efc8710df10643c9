//! Outcomes that the database did not take, one a line of a file beside it (return requests, section 2.16). Each says of what request it is,
//! so that it stands also when nothing of the database can be read any more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::apply::{Applied, stage as keep_stage};
use super::command::MakeLine;
use super::error::StoreError;
use super::place::Place;
use super::schema::io;
use crate::prompt_id::prompt_id;
use crate::{
    Baseline, Hash, Input, InputWritten, Options, Outcome, Phase, Recovered, Registration, Request, RequestId, Stage,
    State,
};

/// The owner, the session and the prompt of a request of which nothing is left but its outcome.
const LOST: &str = "lost";

/// What is left of an outcome when the file takes nothing more.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Line {
    v: u32,
    pub(super) request_id: String,
    pub(super) stage: Stage,
    /// Missing in lines of earlier programs, and where it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Row>,
}

/// The row of its request, as far as an end needs it.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    owner: String,
    input_hash: Hash,
    hash_version: u32,
    session_id: String,
    incarnation_id: Option<String>,
    prompt_id: String,
    options: Options,
    timeout_ms: u64,
    deadline_at: Option<u64>,
    prompt_hash: Hash,
    prompt_bytes: u64,
    baseline_turn: u64,
    baseline_prompt_id: Option<String>,
    created_at: u64,
    state: String,
    phase: String,
    input_written: String,
    submitted_at: Option<u64>,
}

impl Row {
    fn of(request: &Request) -> Self {
        let asked = request.registration.clone();
        Self {
            owner: asked.owner,
            input_hash: asked.input_hash,
            hash_version: asked.hash_version,
            session_id: asked.session_id,
            incarnation_id: asked.incarnation_id,
            prompt_id: asked.prompt_id,
            options: asked.options,
            timeout_ms: asked.timeout_ms,
            deadline_at: asked.deadline_at,
            prompt_hash: asked.prompt_hash,
            prompt_bytes: asked.prompt_bytes,
            baseline_turn: asked.baseline.turn,
            baseline_prompt_id: asked.baseline.prompt_id,
            created_at: asked.created_at,
            state: request.state.as_str().to_owned(),
            phase: request.phase.as_str().to_owned(),
            input_written: request.input_written.as_str().to_owned(),
            submitted_at: request.submitted_at,
        }
    }

    /// The request, open. None when a word of it is not known, or it is not open.
    fn open(self, request_id: RequestId) -> Option<Request> {
        let state = State::parse(&self.state).filter(|state| !state.is_terminal())?;
        let (phase, input_written) = (Phase::parse(&self.phase)?, InputWritten::parse(&self.input_written)?);
        let registration = Registration {
            request_id,
            owner: self.owner,
            input_hash: self.input_hash,
            hash_version: self.hash_version,
            session_id: self.session_id,
            incarnation_id: self.incarnation_id,
            prompt_id: self.prompt_id,
            options: self.options,
            timeout_ms: self.timeout_ms,
            deadline_at: self.deadline_at,
            prompt_hash: self.prompt_hash,
            prompt_bytes: self.prompt_bytes,
            baseline: Baseline { turn: self.baseline_turn, prompt_id: self.baseline_prompt_id },
            created_at: self.created_at,
        };
        Some(Request { state, phase, input_written, submitted_at: self.submitted_at, ..Request::new(registration) })
    }
}

impl Line {
    /// Its request, open, made of what the line says. Where that is nothing, it is one that no caller can ask for again: it has the id, and
    /// an owner and a hash that are nobody's. None when the id is none.
    pub(super) fn into_request(self) -> Option<(Request, Stage)> {
        let request_id = RequestId::parse(&self.request_id).ok()?;
        let request = self.request.and_then(|row| row.open(request_id.clone()));
        let request = request.unwrap_or_else(|| nameless(request_id, self.stage.at_ms));
        Some((request, self.stage))
    }
}

/// A request of which only the id is known, and that its prompt was with the agent: there was an outcome.
fn nameless(request_id: RequestId, at_ms: u64) -> Request {
    let none = Hash([0; 32]);
    let prompt_id = prompt_id(&format!("{LOST}-{}", request_id.as_str()));
    let registration = Registration {
        request_id,
        owner: LOST.to_owned(),
        input_hash: none,
        hash_version: 0,
        session_id: LOST.to_owned(),
        incarnation_id: None,
        prompt_id,
        options: Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: none,
        prompt_bytes: 0,
        baseline: Baseline::default(),
        created_at: at_ms,
    };
    let (state, phase, input_written) = (State::Submitted, Phase::Dispatching, InputWritten::Yes);
    Request { state, phase, input_written, ..Request::new(registration) }
}

/// The requests that have not ended, as the writer last told of them. They are as many as may be open, and small.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<HashMap<RequestId, Request>>);

impl Book {
    /// Those that the last life left open.
    pub(super) fn of(requests: &[Request]) -> Arc<Self> {
        let open = requests.iter().map(|request| (request.id().clone(), request.clone()));
        Arc::new(Self(Mutex::new(open.collect())))
    }

    /// Notes a request that was registered.
    pub(super) fn note(&self, request: &Request) {
        self.with(|open| open.insert(request.id().clone(), request.clone()));
    }

    /// Notes what became of one.
    pub(super) fn follow(&self, applied: &Applied) {
        let request = &applied.request;
        if applied.is_removed || request.state.is_terminal() {
            self.with(|open| open.remove(request.id()));
        } else {
            self.note(request);
        }
    }

    fn row(&self, request_id: &RequestId) -> Option<Row> {
        self.with(|open| open.get(request_id).map(Row::of))
    }

    fn with<T>(&self, what: impl FnOnce(&mut HashMap<RequestId, Request>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What makes the line of an input; only an outcome has one.
pub(super) fn of_input(book: &Arc<Book>, request_id: &RequestId, input: &Input, at_ms: u64) -> Option<MakeLine> {
    let stage = match input {
        Input::Settled(outcome) => Stage::new(outcome.clone(), at_ms),
        Input::SessionEnded { cause, .. } => {
            Stage::new(Outcome::Stopped { cause: *cause, stop_reason: None, evidence: None }, at_ms)
        }
        Input::Recovered(Recovered::Staged(stage) | Recovered::Exact(stage)) => stage.clone(),
        _ => return None,
    };
    Some(of_stage(book, request_id, &stage))
}

/// The same of a staged outcome.
pub(super) fn of_stage(book: &Arc<Book>, request_id: &RequestId, stage: &Stage) -> MakeLine {
    let (book, request_id, stage) = (Arc::clone(book), request_id.clone(), stage.clone());
    Box::new(move || {
        let request = book.row(&request_id);
        let line = Line { v: 1, request_id: request_id.to_string(), stage: stage.clone(), request };
        serde_json::to_string(&line).unwrap_or_default()
    })
}

/// All lines. What is no line is skipped: a kill may have cut it.
pub(super) fn read(place: &Place) -> Vec<Line> {
    let text = std::fs::read(place.lines()).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Outcomes on lines beside a file that opens after all become staged ones: recovery rolls them forward.
///
/// # Errors
/// See [`StoreError`].
pub(super) fn absorb(conn: &Connection, place: &Place, now_ms: u64) -> Result<(), StoreError> {
    if !place.lines().exists() {
        return Ok(());
    }
    let absorbed = conn.unchecked_transaction()?;
    for line in read(place) {
        let Ok(request_id) = RequestId::parse(&line.request_id) else { continue };
        match keep_stage(&absorbed, &request_id, &line.stage) {
            Ok(_) | Err(StoreError::Unknown) => {}
            Err(error) => return Err(error),
        }
    }
    absorbed.commit()?;
    let kept = place.folder().join(format!("kept-outcomes-{now_ms}.jsonl"));
    std::fs::rename(place.lines(), kept).map_err(io)
}
