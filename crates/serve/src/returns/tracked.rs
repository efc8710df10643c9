//! The requests whose prompts are on their way in this life of the daemon: what is known of each beside its row, and who waits for it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use acp::{Echo, Echoed};
use bridge::Session;
use request::store::Applied;
use request::{Phase, Request, RequestId, State};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::limits::RETURNS_ENDED_MAX;
use crate::refusal::Refusal;
use crate::sync::lock;

/// One of them.
pub(crate) struct Entry {
    pub(crate) request_id: RequestId,
    pub(crate) prompt_id: String,
    pub(crate) session_id: String,
    /// Whether it may wait in the session's queue; then nobody waits for its dispatch.
    pub(crate) queue: bool,
    /// Whether its deadline cancels the agent's turn too.
    pub(crate) cancel_on_timeout: bool,
    /// The agent's process that its caller wants.
    pub(crate) expected_incarnation: Option<String>,
    /// The life of the session.
    pub(crate) life: String,
    /// How often the session had been rewound when it was registered.
    pub(crate) rewinds: u64,
    /// Of all texts of the prompt, one behind the other.
    texts: [u8; 32],
    standing: watch::Sender<Standing>,
    is_prompt_over: AtomicBool,
    live: Mutex<Live>,
}

/// How a request stands, as far as the store has said so.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) state: State,
    pub(crate) phase: Phase,
    /// Why there is no such request any more.
    pub(crate) refused: Option<Refusal>,
}

impl Standing {
    /// Whether nothing changes any more.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_terminal() || self.refused.is_some()
    }
}

/// What the turn has shown so far.
#[derive(Default)]
struct Live {
    incarnation_id: Option<String>,
    due: Option<Instant>,
    deadline: Option<AbortHandle>,
    heard: Heard,
    /// Somebody has said something into the turn.
    has_extra_message: bool,
}

/// What the agent takes for the user's words.
#[derive(Default)]
struct Heard {
    echo: Echo,
    texts: Sha256,
}

impl Entry {
    /// The entry of a row that was just written.
    pub(crate) fn new(request: &Request, session: &Session, texts: [u8; 32]) -> Self {
        Self::of(request, (session.epoch().to_owned(), session.rewinds()), texts)
    }

    pub(super) fn of(request: &Request, (life, rewinds): (String, u64), texts: [u8; 32]) -> Self {
        let (registration, options) = (&request.registration, &request.registration.options);
        Self {
            request_id: registration.request_id.clone(),
            prompt_id: registration.prompt_id.clone(),
            session_id: registration.session_id.clone(),
            queue: options.queue,
            cancel_on_timeout: options.cancel_on_timeout,
            expected_incarnation: options.expected_incarnation.clone(),
            life,
            rewinds,
            texts,
            standing: watch::Sender::new(Standing { state: request.state, phase: request.phase, refused: None }),
            is_prompt_over: AtomicBool::new(false),
            live: Mutex::default(),
        }
    }

    /// How it stands.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Follows how it stands.
    pub(crate) fn follow(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Notes that its prompt has ended, though the store may not know how.
    pub(crate) fn note_prompt_over(&self) {
        self.is_prompt_over.store(true, Ordering::SeqCst);
    }

    /// Whether its prompt has ended.
    pub(crate) fn is_prompt_over(&self) -> bool {
        self.is_prompt_over.load(Ordering::SeqCst)
    }

    /// Notes what the store has said, and tells whoever waits. Behind the end there is nothing more to say.
    pub(crate) fn note(&self, applied: &Applied) {
        let request = &applied.request;
        self.standing.send_if_modified(|standing| {
            let is_new = (standing.state, standing.phase) != (request.state, request.phase) && !standing.is_over();
            (standing.state, standing.phase) = (request.state, request.phase);
            is_new
        });
        if request.state.is_terminal() || applied.is_removed {
            self.forget_deadline();
        }
    }

    /// Notes that there is no such request any more, and why. The first word on that stands.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.forget_deadline();
        self.standing.send_if_modified(|standing| {
            let is_new = !standing.is_over();
            if is_new {
                standing.refused = Some(refusal);
            }
            is_new
        });
    }

    /// Keeps its deadline and the timer of it, unless it is over already.
    pub(crate) fn keep_deadline(&self, due: Instant, timer: AbortHandle) {
        let mut live = lock(&self.live);
        live.due = Some(due);
        if self.standing.borrow().is_over() {
            timer.abort();
        } else {
            live.deadline = Some(timer);
        }
    }

    /// Whether its deadline has passed, though its timer may not have said so yet.
    pub(crate) fn is_due(&self) -> bool {
        lock(&self.live).due.is_some_and(|due| due <= Instant::now())
    }

    fn forget_deadline(&self) {
        if let Some(timer) = lock(&self.live).deadline.take() {
            timer.abort();
        }
    }

    /// Notes the process that the prompt is handed to.
    pub(crate) fn dispatched_to(&self, incarnation_id: Option<String>) {
        lock(&self.live).incarnation_id = incarnation_id;
    }

    /// The process that the prompt was handed to.
    pub(crate) fn incarnation_id(&self) -> Option<String> {
        lock(&self.live).incarnation_id.clone()
    }

    /// Notes that somebody has said something into the turn.
    pub(crate) fn note_extra_message(&self) {
        lock(&self.live).has_extra_message = true;
    }

    /// Whether somebody has.
    pub(crate) fn has_extra_message(&self) -> bool {
        lock(&self.live).has_extra_message
    }

    /// Takes a piece of what the agent takes for the user's words, and says what all of them come to so far.
    pub(crate) fn hear_echo(&self, message_id: Option<&str>, text: &str) -> Echoed {
        self.take_echo(message_id, text);
        self.echoed()
    }

    fn take_echo(&self, message_id: Option<&str>, text: &str) {
        let heard = &mut lock(&self.live).heard;
        heard.echo.take(message_id);
        heard.texts.update(text.as_bytes());
    }

    /// What all of it comes to.
    pub(crate) fn echoed(&self) -> Echoed {
        let live = lock(&self.live);
        let texts: [u8; 32] = live.heard.texts.clone().finalize().into();
        live.heard.echo.echoed(texts == self.texts)
    }
}

/// All of them, by both of their names.
#[derive(Default)]
pub(crate) struct Tracked {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    by_prompt: HashMap<String, Arc<Entry>>,
    by_request: HashMap<RequestId, Arc<Entry>>,
    /// Those whose prompts have ended, the oldest first: their agents may still answer.
    ended: VecDeque<Arc<Entry>>,
}

impl Tables {
    /// Whether this very one was found by its id; it is not any more.
    fn take_request(&mut self, entry: &Entry) -> bool {
        let is_it = self.by_request.get(&entry.request_id).is_some_and(|found| found.prompt_id == entry.prompt_id);
        is_it && self.by_request.remove(&entry.request_id).is_some()
    }
}

impl Tracked {
    /// Takes one in. One of the same id before it was refused, and there is no more to hear of it.
    pub(crate) fn insert(&self, entry: &Arc<Entry>) {
        let mut tables = lock(&self.tables);
        tables.by_prompt.insert(entry.prompt_id.clone(), Arc::clone(entry));
        if let Some(refused) = tables.by_request.insert(entry.request_id.clone(), Arc::clone(entry)) {
            tables.by_prompt.remove(&refused.prompt_id);
        }
    }

    /// Lets go of one whose row is gone.
    pub(crate) fn remove(&self, entry: &Entry) {
        let mut tables = lock(&self.tables);
        tables.by_prompt.remove(&entry.prompt_id);
        tables.take_request(entry);
    }

    /// Notes that the prompt of one has ended, and that the store knows how. It is found by its prompt for a while.
    pub(crate) fn end(&self, entry: &Arc<Entry>) {
        let mut tables = lock(&self.tables);
        if !tables.take_request(entry) {
            return;
        }
        tables.ended.push_back(Arc::clone(entry));
        if tables.ended.len() > RETURNS_ENDED_MAX
            && let Some(oldest) = tables.ended.pop_front()
        {
            tables.by_prompt.remove(&oldest.prompt_id);
        }
    }

    /// The one of a prompt.
    pub(crate) fn of_prompt(&self, prompt_id: &str) -> Option<Arc<Entry>> {
        lock(&self.tables).by_prompt.get(prompt_id).cloned()
    }

    /// The one of an id, unless its prompt has ended and the store knows how.
    pub(crate) fn of_request(&self, request_id: &RequestId) -> Option<Arc<Entry>> {
        lock(&self.tables).by_request.get(request_id).cloned()
    }

    /// How many have not ended, and how many of them are this session's.
    pub(crate) fn open(&self, session_id: &str) -> (usize, usize) {
        let tables = lock(&self.tables);
        let open = || tables.by_request.values().filter(|entry| !entry.standing.borrow().is_over());
        (open().count(), open().filter(|entry| entry.session_id == session_id).count())
    }

    /// The one that has not ended and whose prompt a session's agent has, or is about to have.
    pub(crate) fn running_in(&self, session_id: &str) -> Option<Arc<Entry>> {
        let tables = lock(&self.tables);
        let is_running = |entry: &&Arc<Entry>| {
            let standing = entry.standing.borrow();
            entry.session_id == session_id && standing.phase == Phase::Dispatching && !standing.is_over()
        };
        tables.by_request.values().find(is_running).cloned()
    }

    /// All whose prompts have not ended.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        lock(&self.tables).by_request.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use request::Registration;

    use super::*;
    use crate::returns::fixture::registration;

    fn entry(prompt: &str) -> Entry {
        let request = Request::new(Registration { prompt_id: prompt.into(), ..registration(prompt) });
        Entry::of(&request, ("life".into(), 0), Sha256::digest("one two").into())
    }

    #[test]
    fn scenario_46_an_echo_is_what_was_asked_or_it_is_not_whatever_its_pieces_are() {
        let echoed = |pieces: &[(Option<&str>, &str)]| {
            let entry = entry("p");
            let heard = pieces.iter().map(|(id, text)| entry.hear_echo(*id, text)).last();
            heard.unwrap_or_else(|| entry.echoed())
        };
        assert_eq!(echoed(&[]), Echoed::Unknown);
        assert_eq!(echoed(&[(None, "one two")]), Echoed::Agrees);
        assert_eq!(echoed(&[(Some("m"), "one"), (Some("m"), " two")]), Echoed::Agrees);
        assert_eq!(echoed(&[(Some("m"), "one")]), Echoed::Differs);
        assert_eq!(echoed(&[(None, "one two ")]), Echoed::Differs);
        assert_eq!(echoed(&[(Some("m"), "one two"), (Some("n"), "")]), Echoed::Several);
        assert_eq!(echoed(&[(None, "x"); bridge::limits::HEARD_USER_MESSAGES_MAX]), Echoed::Unknown);
    }

    #[test]
    fn an_entry_is_found_by_its_prompt_for_a_while_after_its_end() {
        let tracked = Tracked::default();
        let entries: Vec<_> = (0..=RETURNS_ENDED_MAX).map(|number| Arc::new(entry(&format!("p{number}")))).collect();
        entries.iter().for_each(|entry| tracked.insert(entry));
        assert_eq!(tracked.open("s"), (entries.len(), entries.len()));
        assert_eq!(tracked.open("t"), (entries.len(), 0));
        for entry in &entries {
            tracked.end(entry);
            tracked.end(entry);
        }
        assert_eq!(tracked.open("s"), (0, 0));
        assert!(tracked.of_prompt("p0").is_none(), "the first has made room");
        assert!(tracked.of_prompt("p1").is_some() && tracked.of_request(&entries[1].request_id).is_none());
    }

    #[test]
    fn one_that_was_refused_takes_nothing_with_it_of_the_next_one_of_its_id() {
        let tracked = Tracked::default();
        let refused = Arc::new(entry("p"));
        let next = Arc::new(Entry { prompt_id: "q".into(), ..entry("p") });
        tracked.insert(&refused);
        tracked.insert(&next);
        tracked.end(&refused);
        tracked.remove(&refused);
        assert!(tracked.of_prompt("p").is_none());
        let [by_prompt, by_request] = [tracked.of_prompt("q"), tracked.of_request(&next.request_id)];
        assert!([by_prompt, by_request].iter().flatten().all(|found| Arc::ptr_eq(found, &next)));
        assert_eq!(tracked.all().len(), 1);
    }

    #[test]
    fn the_first_word_on_why_there_is_no_request_stands() {
        let entry = entry("p");
        entry.refuse(Refusal::internal());
        entry.refuse(Refusal::archiving("s"));
        assert_eq!(entry.standing().refused, Some(Refusal::internal()));
        assert!(entry.standing().is_over());
    }
}
