//! How a request is made: looked up, registered, admitted, and told when the agent has its prompt (return requests, section 2.6).
//!
//! Nothing is stored of what is refused, and nothing is sent of what is not stored. What was registered goes on whether its caller waits or
//! not.

use std::sync::Arc;
use std::time::Duration;

use bridge::witness::Facts;
use bridge::{AdmitError, Prompt, Session};
use request::store::{Entry as Known, Registered, Tombstone};
use request::{Asked, Baseline, Canonical, Input, Options, Phase, Registration, Request, RequestId, State};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout};

use crate::body::text;
use crate::clock::now_ms;
use crate::content::Content;
use crate::dispatch::Call;
use crate::identity::fresh_uuid;
use crate::limits::{RETURNS_MAX, RETURNS_SESSION_MAX, STAGE_WAIT_MS, SUBMIT_WAIT_MS};
use crate::refusal::Refusal;
use crate::returns::callers::Foremost;
use crate::returns::tracked::{Entry, Standing};
use crate::returns::{RECORD_HASH, Returns, asked, evidence, refusal};
use crate::router::Route;
use crate::workspace::Workspace;
use crate::{admission, dispatch};

/// Whose all requests of a daemon are: it has one token, and so one owner.
pub(crate) const OWNER: &str = "daemon";

/// What a caller asks.
pub(crate) struct Submission {
    pub(crate) request_id: RequestId,
    /// Whether the caller has named it.
    pub(crate) is_named: bool,
    pub(crate) session_id: String,
    pub(crate) client: Option<String>,
    pub(crate) content: Content,
    /// The content blocks again, in the one form that is hashed.
    pub(crate) canonical: Canonical,
    pub(crate) options: Options,
    /// 0 is none.
    pub(crate) timeout_ms: u64,
}

/// What it came to.
pub(crate) enum Submitted {
    /// The request is new.
    New(RequestId),
    /// The same was asked before.
    Replayed(RequestId),
    /// The same was asked long ago.
    Expired(Tombstone),
}

/// Everything that is to be known of a session before a request is stored.
struct Ground {
    workspace: Arc<Workspace>,
    session: Session,
    facts: Facts,
    incarnation_id: Option<String>,
    /// When all this was so.
    at: Instant,
}

impl Returns {
    /// Makes a request, or finds the one that was made before, and waits until its prompt is with the agent or known never to be. Runs to
    /// its end whoever waits for it.
    ///
    /// # Errors
    /// When there is no such request; nothing was sent then.
    pub(crate) async fn submit(self: &Arc<Self>, submission: Submission) -> Result<Submitted, Refusal> {
        let returns = Arc::clone(self);
        let named = submission.is_named.then(|| submission.request_id.clone());
        let submitted = self.spawn(async move { returns.run(submission).await });
        match submitted.await.unwrap_or_else(|_| Err(Refusal::internal())) {
            Err(refusal) => Err(self.doubted(named, refusal).await),
            submitted => submitted,
        }
    }

    /// A refusal with what is true of the caller's id. Where the store cannot take a request, or something broke, it may still be known
    /// whether there is one of that id; where that is not known either, the id may have been sent.
    async fn doubted(&self, named: Option<RequestId>, refusal: Refusal) -> Refusal {
        let is_open = !refusal::is_told(&refusal) && (refusal::is_of_store(&refusal) || refusal::is_fault(&refusal));
        let Some(request_id) = named.filter(|_| is_open) else {
            return refusal::unsent(refusal);
        };
        self.told_of(&request_id, refusal).await
    }

    /// A refusal with what is on record of an id, once nobody is about to put it there.
    async fn told_of(&self, request_id: &RequestId, refusal: Refusal) -> Refusal {
        let _foremost = self.callers.take(request_id).await;
        match self.known(request_id).await {
            Ok(None) => refusal::unsent(refusal),
            Ok(Some(Known::Request(request))) => refusal::stored(refusal, &request),
            // What else is wrong is for an id that can be used.
            Ok(Some(Known::Expired)) => self.expired(request_id),
            Ok(Some(Known::Tombstone(_))) | Err(_) => refusal::doubtful(refusal),
        }
    }

    /// The refusal of an id that may be forgotten.
    pub(crate) fn expired(&self, request_id: &RequestId) -> Refusal {
        refusal::expired(request_id.as_str(), self.store().map_or(0, |store| store.born_ms(0)))
    }

    /// An id of ours, made of this time and of random bytes.
    pub(crate) fn fresh_id(&self) -> RequestId {
        let mut random = [0; 10];
        let digits: Vec<u8> = fresh_uuid().bytes().filter(u8::is_ascii_hexdigit).collect();
        // The first digits of a version-4 UUID are random; those that are not are overwritten.
        for (byte, pair) in random.iter_mut().zip(digits.chunks(2)) {
            let text = std::str::from_utf8(pair).unwrap_or("0");
            *byte = u8::from_str_radix(text, 16).unwrap_or_default();
        }
        let now_ms = now_ms();
        RequestId::version_7(self.store().map_or(now_ms, |store| store.born_ms(now_ms)), random)
    }

    /// The refusal of what cannot be understood. Of a submission it says also whether the id that it names was sent before, in words that
    /// could be.
    pub(crate) async fn malformed(&self, call: &Call<'_>, refusal: Refusal) -> Refusal {
        if call.matched.route != Route::SubmitReturn {
            return refusal;
        }
        let named = text(&call.fields, "requestId").ok().flatten().and_then(|id| RequestId::parse(&id).ok());
        match named {
            Some(request_id) => self.told_of(&request_id, refusal).await,
            None => refusal::unsent(refusal),
        }
    }

    async fn run(self: &Arc<Self>, submission: Submission) -> Result<Submitted, Refusal> {
        self.store()?;
        let foremost = self.callers.take(&submission.request_id).await;
        // What is on its way under this id, as it is before the row is looked at: a refusal takes both away.
        let earlier = self.tracked.of_request(&submission.request_id);
        let ground = match self.ground(&submission).await {
            Ok(ground) => ground,
            // Whatever keeps a new prompt out does not take back what was promised; and what keeps it out may be its own first copy, which
            // was registered before it made the session busy.
            Err(refusal) if submission.is_named && self.known(&submission.request_id).await?.is_some() => {
                let registered = self.replay(&submission, refusal).await?;
                drop(foremost);
                return self.known_already(&submission, registered, earlier).await;
            }
            Err(refusal) => return Err(refusal),
        };
        let registration = registration(&submission, Some(&ground));
        match self.register(registration).await? {
            Registered::New(request) => self.begin(submission, ground, *request, foremost).await.map(Submitted::New),
            registered => {
                drop(foremost);
                self.known_already(&submission, registered, earlier).await
            }
        }
    }

    /// What is said of an id that is stored, though a new prompt is kept out.
    async fn replay(&self, submission: &Submission, keeps_out: Refusal) -> Result<Registered, Refusal> {
        match self.register(registration(submission, None)).await? {
            // It was refused and removed in that moment, so that it is as new as any.
            Registered::New(request) => {
                let store = self.store()?;
                let gone = asked(|reply| store.apply(request.id().clone(), Input::Refused, now_ms(), reply)).await;
                gone.map_err(|error| refusal::of_store(&error))?;
                Err(keeps_out)
            }
            registered => Ok(registered),
        }
    }

    async fn register(&self, registration: Registration) -> Result<Registered, Refusal> {
        let store = self.store()?;
        asked(|reply| store.register(registration, reply)).await.map_err(|error| refusal::of_store(&error))
    }

    async fn known_already(
        self: &Arc<Self>,
        submission: &Submission,
        registered: Registered,
        earlier: Option<Arc<Entry>>,
    ) -> Result<Submitted, Refusal> {
        let request_id = &submission.request_id;
        match registered {
            Registered::New(request) => Ok(Submitted::New(request.id().clone())),
            Registered::Known(request) => {
                // What is still on its way to the agent is waited for.
                if let Some(entry) = earlier.filter(|_| !request.state.is_terminal()) {
                    self.arrived(&entry).await?;
                }
                Ok(Submitted::Replayed(request.id().clone()))
            }
            Registered::Tombstone(tombstone) => Ok(Submitted::Expired(tombstone)),
            Registered::Expired => Err(self.expired(request_id)),
            Registered::Ahead => Err(refusal::ahead(request_id.as_str())),
            Registered::Mismatch | Registered::OtherRecipe { .. } | Registered::ForeignOwner => {
                Err(refusal::reused(request_id.as_str()))
            }
        }
    }

    /// Looks at the session before anything is stored (S2).
    async fn ground(&self, submission: &Submission) -> Result<Ground, Refusal> {
        let id = &submission.session_id;
        if self.is_draining() {
            return Err(refusal::draining());
        }
        let Some(workspace) = self.home(id) else {
            return Err(refusal::unsent(Refusal::session_not_found(id)));
        };
        let session = workspace.session(id).map_err(refusal::unsent)?;
        dispatch::registered(&session, submission.client.as_deref()).map_err(refusal::unsent)?;
        if workspace.desk.is_closing(id) {
            return Err(refusal::closed(id));
        }
        let facts = session.facts();
        if facts.tainted {
            return Err(refusal::tainted(id));
        }
        if !facts.idle && !submission.options.queue {
            return Err(refusal::busy(id));
        }
        let (all, here) = self.tracked.open(id);
        if all >= RETURNS_MAX {
            return Err(refusal::too_many("daemon", RETURNS_MAX));
        }
        if here >= RETURNS_SESSION_MAX {
            return Err(refusal::too_many("session", RETURNS_SESSION_MAX));
        }
        if !workspace.sink.has_room(id) {
            return Err(refusal::unsent(admission::no_room()));
        }
        let noted = self.note_incarnation(&workspace, facts.incarnation.as_ref(), session.epoch()).await;
        let incarnation_id = noted.map_err(|error| refusal::of_store(&error))?;
        let expected = &submission.options.expected_incarnation;
        if expected.is_some() && *expected != incarnation_id {
            return Err(refusal::stale(id, incarnation_id.as_deref()));
        }
        Ok(Ground { workspace, session, facts, incarnation_id, at: Instant::now() })
    }

    /// Admits the prompt of a row that was just written (S4), and waits until the agent has it (S8). Who else asks for the id has its turn
    /// when the prompt is admitted, or the row gone.
    async fn begin(
        self: &Arc<Self>,
        submission: Submission,
        ground: Ground,
        request: Request,
        foremost: Foremost,
    ) -> Result<RequestId, Refusal> {
        let texts = texts_hash(&submission.content.blocks);
        let entry = Arc::new(Entry::new(&request, &ground.session, texts));
        self.tracked.insert(&entry);
        if submission.timeout_ms > 0 {
            self.arm(&entry, ground.at, submission.timeout_ms);
        }
        match ground.session.admit(prompt(submission, &entry)) {
            Ok(_) => {
                ground.workspace.chosen.note(&entry.session_id, &entry.prompt_id);
                self.tell_of(&entry, Input::Admitted);
            }
            Err(error) => {
                self.refuse(&entry, not_admitted(&entry.session_id, error)).await;
                self.tracked.remove(&entry);
            }
        }
        drop(foremost);
        self.arrived(&entry).await?;
        Ok(entry.request_id.clone())
    }

    /// Removes the row of a request that there is not to be, and tells its callers why. They hear it when the id is free again; a store
    /// that cannot say so holds them up only for a while.
    pub(super) async fn refuse(&self, entry: &Arc<Entry>, refusal: Refusal) {
        let _ = timeout(Duration::from_millis(STAGE_WAIT_MS), self.applied(entry, Input::Refused)).await;
        entry.refuse(refusal);
    }

    /// Waits until a request is where its caller is answered: with the agent, or in the queue if it may be there, or over.
    ///
    /// # Errors
    /// When there is no such request any more.
    async fn arrived(&self, entry: &Entry) -> Result<(), Refusal> {
        let mut follow = entry.follow();
        let has_arrived = |standing: &Standing| {
            let is_queued = entry.queue && standing.phase >= Phase::Admitted;
            standing.state != State::Registered || standing.refused.is_some() || is_queued
        };
        // Whoever has waited long enough is told how it stands.
        let _ = timeout(Duration::from_millis(SUBMIT_WAIT_MS), follow.wait_for(has_arrived)).await;
        match entry.standing().refused {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }
}

/// What is registered. Of an id that is there already only the hash of the input counts.
fn registration(submission: &Submission, ground: Option<&Ground>) -> Registration {
    let now_ms = now_ms();
    let baseline = ground.map(|ground| &ground.facts.baseline);
    let (content, options) = (&submission.canonical, &submission.options);
    let asked = Asked {
        session_id: &submission.session_id,
        expected_incarnation: options.expected_incarnation.as_deref(),
        content,
        timeout_ms: submission.timeout_ms,
        queue: options.queue,
        cancel_on_timeout: options.cancel_on_timeout,
    };
    let texts = texts_of(&submission.content.blocks);
    let mut options = options.clone();
    options.others.insert(RECORD_HASH.to_owned(), evidence::record_hash(&texts).to_string().into());
    Registration {
        request_id: submission.request_id.clone(),
        owner: OWNER.to_owned(),
        input_hash: request::input_hash(&asked),
        hash_version: request::HASH_VERSION,
        session_id: submission.session_id.clone(),
        incarnation_id: ground.and_then(|ground| ground.incarnation_id.clone()),
        prompt_id: request::prompt_id(&fresh_uuid()),
        options,
        timeout_ms: submission.timeout_ms,
        deadline_at: (submission.timeout_ms > 0).then(|| now_ms.saturating_add(submission.timeout_ms)),
        prompt_hash: request::prompt_hash(content),
        prompt_bytes: content.as_str().len() as u64,
        baseline: Baseline {
            prompt_id: baseline.and_then(|baseline| baseline.prompt_id.as_deref().map(str::to_owned)),
            turn: baseline.map_or(0, |baseline| baseline.turn),
        },
        created_at: now_ms,
    }
}

fn prompt(submission: Submission, entry: &Entry) -> Prompt {
    Prompt {
        content: submission.content.blocks,
        text: submission.content.text,
        prompt_id: Some(entry.prompt_id.clone()),
        originator: submission.client,
        alone: !entry.queue,
        witnessed: true,
        ..Prompt::default()
    }
}

/// The texts of a prompt as its user record has them.
fn texts_of(blocks: &str) -> Vec<String> {
    transcript::prompt_texts(&serde_json::from_str(blocks).unwrap_or_default())
}

/// Of all texts of a prompt, one behind the other, as an agent's echo is heard.
fn texts_hash(blocks: &str) -> [u8; 32] {
    texts_of(blocks).iter().fold(Sha256::new(), |hash, text| hash.chain_update(text)).finalize().into()
}

/// Why the bridge did not admit it.
fn not_admitted(session: &str, error: AdmitError) -> Refusal {
    match error {
        AdmitError::Busy => refusal::busy(session),
        AdmitError::QueueFull { limit, .. } => refusal::too_many("session", limit),
        AdmitError::Closing | AdmitError::Gone => refusal::closed(session),
        error => refusal::unsent(admission::refused(session, error)),
    }
}

#[cfg(test)]
mod tests;
