//! Whether an ended request that was read of a damaged store is to be believed. SQLite does not notice a bit that fell over in a text, and
//! an answer that nobody gave must not be told again. Its row and its event say the same twice, and the chain says which one is right where
//! they do not.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::{Connection, Row};
use serde::Deserialize;

use super::chain::{self, BODY_VERSION, has_its_hash};
use super::error::StoreError;
use super::meta::Meta;
use crate::event::link;
use crate::{Code, Evidence, Hash, InputWritten, Request, RequestId, State, TerminalEvent};

/// The rows that were read, and what is known of their chain.
pub(super) struct Doubt<'s> {
    conn: &'s Connection,
    meta: Option<&'s Meta>,
    requests: &'s BTreeMap<i64, Request>,
    /// Where the row of an id is, and of a number.
    by_id: HashMap<&'s str, i64>,
    by_seq: HashMap<u64, i64>,
}

/// What an event says of a row.
pub(super) struct Verdict {
    /// The number of the event.
    pub(super) seq: u64,
    /// The place of the row, where there is one, and the request as it may be told.
    pub(super) told: Option<(i64, Told)>,
}

pub(super) enum Told {
    /// As the row says.
    Same,
    /// Thus.
    Whole(Box<Request>),
    /// Nobody can say which of row and event is right, and whether at least the end is the same in both.
    Doubted { is_end_same: bool },
}

impl<'s> Doubt<'s> {
    pub(super) fn of(conn: &'s Connection, meta: Option<&'s Meta>, requests: &'s BTreeMap<i64, Request>) -> Self {
        let ended = || requests.iter().filter(|(_, request)| request.state.is_terminal());
        let by_id = ended().map(|(place, request)| (request.id().as_str(), *place)).collect();
        let by_seq = ended().filter_map(|(place, request)| Some((request.terminal_seq?, *place))).collect();
        Self { conn, meta, requests, by_id, by_seq }
    }

    /// Compares an event with the row of its request.
    ///
    /// # Errors
    /// When it is no event.
    pub(super) fn verdict(&self, row: &Row<'_>) -> Result<Verdict, StoreError> {
        // As far as it is text.
        let payload = String::from_utf8_lossy(row.get_ref("payload")?.as_bytes().map_err(rusqlite::Error::from)?);
        let event = Event { seq: row.get("seq")?, payload: payload.into_owned(), chain: row.get("chain")? };
        let id = String::from_utf8_lossy(row.get_ref("request_id")?.as_bytes().map_err(rusqlite::Error::from)?);
        let rows = [self.by_seq.get(&event.seq), self.by_id.get(&*id)].into_iter().flatten();
        let rows: Vec<_> = rows.filter_map(|place| Some((*place, self.requests.get(place)?))).collect();
        Ok(Verdict { seq: event.seq, told: self.told(&rows, &event) })
    }

    /// The row of an event among those that may be it.
    fn told(&self, rows: &[(i64, &Request)], event: &Event) -> Option<(i64, Told)> {
        let body: Option<Body> = serde_json::from_str(&event.payload).ok();
        let of_meta = self.meta.map(|meta| meta.stream_id.clone());
        let of_body = || body.as_ref().map(|body| body.stream_id.clone());
        let before = chain::before(self.conn, self.meta, event.seq).ok().flatten();
        let event = Known { stream_id: of_meta.or_else(of_body), before, event };
        let same = rows.iter().find_map(|(place, row)| Some((*place, event.row(row, body.as_ref())?)));
        let (place, row) = *rows.first()?;
        let is_end_same = body.as_ref().is_some_and(|body| body.has_end_of(row));
        let whole = same.or_else(|| Some((place, event.restored(row, body?)?)));
        Some(match whole.filter(|(_, request)| has_its_hash(request)) {
            Some((place, request)) if self.requests.get(&place) == Some(&request) => (place, Told::Same),
            Some((place, request)) => (place, Told::Whole(Box::new(request))),
            None => (place, Told::Doubted { is_end_same }),
        })
    }
}

/// Puts what events say in the place of the rows. Gives what must not be told again, of which the id and the end remain.
pub(super) fn settle(requests: &mut BTreeMap<i64, Request>, verdicts: impl Iterator<Item = Verdict>) -> Vec<Request> {
    let (mut sure, mut unsure) = (BTreeSet::new(), BTreeMap::new());
    for (place, told) in verdicts.filter_map(|verdict| verdict.told) {
        match told {
            Told::Same => drop(sure.insert(place)),
            Told::Whole(request) => {
                sure.insert(place);
                requests.insert(place, *request);
            }
            Told::Doubted { is_end_same } => drop(unsure.insert(place, is_end_same)),
        }
    }
    let seen: BTreeSet<i64> = sure.iter().chain(unsure.keys()).copied().collect();
    unsure.retain(|place, _| !sure.contains(place));
    let mut doubted = Vec::new();
    for (place, is_end_same) in unsure {
        let Some(request) = requests.remove(&place) else { continue };
        doubted.push(match is_end_same {
            true => request,
            false => Request { state: State::Indeterminate, code: Some(Code::StoreRecovered), ..request },
        });
    }
    // Those whose event is lost.
    let is_doubted = |place: &i64, request: &mut Request| !seen.contains(place) && !has_its_hash(request);
    doubted.extend(requests.extract_if(.., is_doubted).map(|(_, request)| request));
    doubted
}

struct Event {
    seq: u64,
    payload: String,
    chain: Hash,
}

/// An event, and what the chain is made of with it.
struct Known<'e> {
    event: &'e Event,
    stream_id: Option<String>,
    before: Option<Hash>,
}

impl Known<'_> {
    /// The row, if it is the event's: the same is said in both, or the chain says that it was.
    fn row(&self, row: &Request, body: Option<&Body>) -> Option<Request> {
        let row = Request { terminal_seq: Some(self.event.seq), ..row.clone() };
        // Another program's cannot be compared.
        let is_newer = body.is_some_and(|body| body.v != BODY_VERSION && body.request_id == row.id().as_str());
        let any = Hash([0; 32]);
        let is_same = || self.makes(&row, any, link(&any, &self.event.payload));
        (is_newer || is_same() || self.is_proven(&row)).then_some(row)
    }

    /// The row with what the event says, if the chain says that this was so.
    fn restored(&self, row: &Request, body: Body) -> Option<Request> {
        let row = Request { terminal_seq: Some(self.event.seq), ..row.clone() };
        body.restore(row).filter(|restored| self.is_proven(restored))
    }

    fn is_proven(&self, request: &Request) -> bool {
        self.before.is_some_and(|before| self.makes(request, before, self.event.chain))
    }

    /// Whether the event of a request has this chain behind the other one.
    fn makes(&self, request: &Request, before: Hash, chain: Hash) -> bool {
        let Some(stream_id) = &self.stream_id else { return false };
        TerminalEvent::new(request, stream_id, self.event.seq, &before, 0).chain == chain
    }
}

/// What a body says, but for the number and the cursor.
#[derive(Deserialize)]
struct Body {
    v: u64,
    stream_id: String,
    request_id: String,
    state: String,
    code: Option<String>,
    detail: Option<String>,
    final_message: Option<String>,
    final_truncated: Option<bool>,
    final_bytes: Option<u64>,
    final_sha256: Option<Hash>,
    stop_reason: Option<String>,
    evidence: Option<String>,
    input_written: String,
    session_id: String,
    prompt_id: String,
    incarnation_id: Option<String>,
    created_at: u64,
    submitted_at: Option<u64>,
    ended_at: Option<u64>,
}

impl Body {
    fn has_end_of(&self, request: &Request) -> bool {
        self.state == request.state.as_str() && self.code.as_deref() == request.code.as_ref().map(Code::as_str)
    }

    /// The request with all that a body says of it. None when a word is not known.
    fn restore(self, request: Request) -> Option<Request> {
        let mut registration = request.registration;
        registration.request_id = RequestId::parse(&self.request_id).ok()?;
        registration.session_id = self.session_id;
        registration.prompt_id = self.prompt_id;
        registration.incarnation_id = self.incarnation_id;
        registration.created_at = self.created_at;
        let code = self.code.map(|word| Code::parse(&word).ok_or(())).transpose().ok()?;
        let evidence = self.evidence.map(|word| Evidence::parse(&word).ok_or(())).transpose().ok()?;
        Some(Request {
            registration,
            state: State::parse(&self.state)?,
            code,
            detail: self.detail,
            final_message: self.final_message,
            final_truncated: self.final_truncated.unwrap_or(false),
            final_bytes: self.final_bytes,
            final_sha256: self.final_sha256,
            stop_reason: self.stop_reason,
            evidence,
            input_written: InputWritten::parse(&self.input_written)?,
            submitted_at: self.submitted_at,
            ended_at: self.ended_at,
            ..request
        })
    }
}
