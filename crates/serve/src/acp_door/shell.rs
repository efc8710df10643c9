//! The impure half of the ACP door: one task for each connection, which hears, steps and carries out in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bridge::{AskError, Session, Subscribe, Subscription, Voter};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::opening::{Arrival, open};
use super::socket::{Heard, Socket};
use super::{Admitted, Door, Effect, Entrance, Goodbye, Input, words};
use crate::admission::admit;
use crate::caller::Place;
use crate::daemon::Daemon;
use crate::limits::{DOOR_EVENTS_QUEUED, DOOR_PING_MS};
use crate::lookup::{self, Found};
use crate::refusal::Refusal;
use crate::routes::session::leave;
use crate::routes::turns::Live;
use crate::tasks::spawn;
use crate::unpanicked::unpanicked;
use crate::workspace::Workspace;
use crate::{body, content, settings};

/// Pings in a row that may stay unanswered.
const UNANSWERED_MAX: u32 = 2;
/// The last frame of a reader for whom too much waits.
const EVICTED: &str = "client_evicted";

/// Who came through the door.
pub(crate) struct Visitor {
    /// Whether it calls from this machine, for the policy that asks for that.
    pub(crate) is_local: bool,
    /// Its connection's place, taken until it is over.
    pub(crate) place: Option<Place>,
}

/// Speaks with an editor until either side is done. Its prompts go on; its registrations are taken back as by a detach.
pub(crate) async fn receive<S>(daemon: Arc<Daemon>, stream: S, visitor: Visitor)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let mut socket = Socket::new(stream).await;
    let (mut shell, mut inbox) = Shell::new(daemon, visitor.is_local);
    let ended = unpanicked(shell.converse(&mut socket, &mut inbox)).await;
    if let Some(goodbye) = ended.unwrap_or(Some(Goodbye::Fault)) {
        tracing::debug!(?goodbye, "an editor's connection is ended");
        socket.close(goodbye).await;
    }
    drop(inbox);
    shell.leave().await;
    drop(visitor.place);
}

/// What reaches the task beside the editor's own words.
enum Mail {
    Input(Input),
    Arrived { request: acp::RequestId, outcome: Box<Result<Arrival, Refusal>> },
}

/// The editor's place in a session.
struct Chair {
    workspace: Arc<Workspace>,
    session: Session,
    client: String,
    /// Its events and where they begin, until somebody follows them.
    events: Option<(Subscribe, Subscription)>,
    reader: Option<JoinHandle<()>>,
}

struct Shell {
    daemon: Arc<Daemon>,
    door: Door,
    chairs: HashMap<String, Chair>,
    post: mpsc::Sender<Mail>,
    is_local: bool,
}

impl Shell {
    fn new(daemon: Arc<Daemon>, is_local: bool) -> (Self, mpsc::Receiver<Mail>) {
        let (post, inbox) = mpsc::channel(DOOR_EVENTS_QUEUED);
        let door = Door::new(&daemon.options.version, prompt_capabilities(&daemon));
        (Self { daemon, door, chairs: HashMap::new(), post, is_local }, inbox)
    }

    /// Until the editor is gone, or has to go: then why.
    async fn converse<S>(&mut self, socket: &mut Socket<S>, inbox: &mut mpsc::Receiver<Mail>) -> Option<Goodbye>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut over, mut pulse) = (self.daemon.over.subscribe(), pulse());
        let (mut unanswered, mut beats) = (0, 0);
        loop {
            // All that its sessions had to say is said before a daemon's end is.
            let is_over = *over.borrow_and_update();
            if is_over && self.door.is_empty() {
                return Some(Goodbye::Leaving);
            }
            let input = tokio::select! {
                heard = socket.hear() => {
                    unanswered = 0;
                    match heard {
                        Heard::Text(text) => Some(Input::Said(text)),
                        Heard::Sign => None,
                        Heard::Broken(goodbye) => return Some(goodbye),
                        Heard::Gone => return None,
                    }
                }
                Some(mail) = inbox.recv() => Some(self.opened(mail)),
                _ = over.changed(), if !is_over => None,
                _ = pulse.tick() => {
                    unanswered += 1;
                    beats += 1;
                    if unanswered > UNANSWERED_MAX || beats >= UNANSWERED_MAX && !self.door.is_greeted() {
                        return Some(Goodbye::Silent);
                    }
                    if !socket.ping().await {
                        return None;
                    }
                    None
                }
            };
            if let Some(input) = input
                && let Err(ended) = self.carry_out(input, socket).await
            {
                return ended;
            }
        }
    }

    /// Steps, and does what follows; an error is the end of the connection.
    async fn carry_out<S>(&mut self, input: Input, socket: &mut Socket<S>) -> Result<(), Option<Goodbye>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let Input::Ended { session } = &input {
            self.chairs.remove(session);
        }
        let mut effects: VecDeque<Effect> = self.door.step(input).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Say(line) if !socket.say(&line).await => return Err(None),
                Effect::Say(_) => {}
                Effect::Open { request, opening } => self.open(request, opening),
                Effect::Follow { session } => self.follow(&session),
                Effect::Admit { request, session, body } => {
                    let outcome = self.admit(&session, &body).await.map_err(|refusal| words::refused(&refusal));
                    let more = self.door.step(Input::Admitted { request, session, outcome });
                    more.into_iter().rev().for_each(|effect| effects.push_front(effect));
                }
                Effect::Cancel { session, prompts } => self.cancel(&session, &prompts),
                Effect::Vote { session, question, vote } => {
                    if let Some(chair) = self.chairs.get(&session) {
                        let voter = Voter { client_id: Some(chair.client.as_str().into()), is_local: self.is_local };
                        // What came of it is an event, for this editor as for everybody.
                        let outcome = chair.session.vote(&question, &vote, &voter);
                        tracing::debug!(session, question, ?outcome, "an editor votes");
                    }
                }
                Effect::Ask { request, session, method, params } => self.ask(request, &session, method, params),
                Effect::HangUp(goodbye) => return Err(Some(goodbye)),
            }
        }
        Ok(())
    }

    fn open(&self, request: acp::RequestId, opening: super::Opening) {
        let (daemon, post) = (Arc::clone(&self.daemon), self.post.clone());
        spawn(async move {
            let outcome = unpanicked(open(&daemon, &opening)).await.unwrap_or_else(|| Err(Refusal::internal()));
            // An editor that is gone gets nothing, and a session that was made for it is given up.
            let _ = post.send(Mail::Arrived { request, outcome: Box::new(outcome) }).await;
        });
    }

    /// Takes a chair in a session that arrived.
    fn opened(&mut self, mail: Mail) -> Input {
        match mail {
            Mail::Input(input) => input,
            Mail::Arrived { request, outcome } => {
                let outcome = outcome.and_then(|arrival| self.seat(arrival));
                Input::Opened { request, outcome: outcome.map_err(|refusal| words::refused(&refusal)) }
            }
        }
    }

    fn seat(&mut self, arrival: Arrival) -> Result<Entrance, Refusal> {
        let Arrival { workspace, session, entrance, cursor, unclaimed } = arrival;
        let id = session.id().to_owned();
        if let Some(chair) = self.chairs.get(&id) {
            // The end of its life before this one is on its way to us.
            let is_same = chair.session.epoch() == session.epoch();
            let client = chair.client.clone();
            return if is_same { Ok(Entrance { client, ..entrance }) } else { Err(Refusal::archiving(&id)) };
        }
        let events = session.subscribe(&cursor).map_err(|error| crate::routes::events::refused(&session, error))?;
        let client = session.register(None);
        if let Some(unclaimed) = unclaimed {
            unclaimed.claim();
        }
        let entrance = Entrance { client: client.clone(), ..entrance };
        self.chairs.insert(id, Chair { workspace, session, client, events: Some((cursor, events)), reader: None });
        Ok(entrance)
    }

    /// Hands the session's events to the machine, one after the other.
    fn follow(&mut self, session: &str) {
        let Some(chair) = self.chairs.get_mut(session) else { return };
        let Some((mut cursor, mut events)) = chair.events.take() else { return };
        let (post, session, live) = (self.post.clone(), session.to_owned(), chair.session.clone());
        chair.reader = Some(spawn(async move {
            while let Some(frame) = events.next().await {
                let (id, kind, json) = (frame.id, frame.kind, frame.json);
                // An editor cannot come back with a cursor. What it has not heard for a burst is read again where it is still kept;
                // where it is not, the next frame says so.
                if kind == EVICTED
                    && let Ok(again) = live.subscribe(&cursor)
                {
                    events = again;
                    continue;
                }
                cursor.cursor = id.or(cursor.cursor);
                let event = Input::Event { session: session.clone(), id, kind, json };
                if post.send(Mail::Input(event)).await.is_err() {
                    return;
                }
            }
            let _ = post.send(Mail::Input(Input::Ended { session })).await;
        }));
    }

    async fn admit(&self, session: &str, text: &str) -> Result<Admitted, Refusal> {
        let chair = self.chairs.get(session).ok_or_else(|| Refusal::session_not_found(session))?;
        let (workspace, session) = (&chair.workspace, &chair.session);
        let text = acp::repair_surrogates(text);
        let content = content::parse(&body::fields(text.as_bytes())?)?;
        let admission = admit(workspace, session, Some(&chair.client), content).await?;
        let prompt = admission.receipt.prompt_id;
        if !admission.replayed || session.turn(Some(&prompt)).live.is_some() {
            return Ok(Admitted::Open { prompt });
        }
        Ok(match lookup::of_prompt(&Live::new(workspace, session), &prompt).await? {
            Found::Live(_) => Admitted::Open { prompt },
            Found::Ended(ended) | Found::Ledger(ended) => Admitted::Over { prompt, terminal: ended.terminal },
            Found::Nothing => Admitted::Lost { prompt },
        })
    }

    fn cancel(&self, session: &str, prompts: &[String]) {
        let Some(Chair { session, client, .. }) = self.chairs.get(session) else { return };
        // A session that is being closed cancels them itself.
        if prompts.is_empty() {
            let _ = session.cancel(None, Some(client));
        }
        for prompt in prompts {
            let _ = session.remove(prompt, Some(client));
        }
    }

    fn ask(&self, request: acp::RequestId, session: &str, method: String, params: String) {
        let Some(chair) = self.chairs.get(session) else { return };
        let (session, client, post) = (chair.session.clone(), chair.client.clone(), self.post.clone());
        spawn(async move {
            let asked = settings::pass_on(&session, &method, &params, &client).await;
            let outcome = asked.map_err(unanswered);
            let _ = post.send(Mail::Input(Input::Answered { request, outcome })).await;
        });
    }

    /// Gets up from every chair. Readers are gone first, so that none keeps a session that nobody uses.
    async fn leave(&mut self) {
        for (_, Chair { workspace, session, client, events, reader }) in self.chairs.drain() {
            drop(events);
            if let Some(reader) = reader {
                reader.abort();
                let _ = reader.await;
            }
            leave(&workspace, session, &client);
        }
    }
}

fn unanswered(error: AskError) -> acp::RpcError {
    match error {
        AskError::Refused(error) => error,
        AskError::Timeout { .. } => words::error(acp::rpc_error::INTERNAL_ERROR, "agent_timeout", error.to_string()),
        AskError::Gone => words::error(words::RESOURCE_NOT_FOUND, "session_not_found", error.to_string()),
    }
}

/// What the agent takes in a prompt beside text, which all workspaces have in common. Nothing, as long as none has said so.
fn prompt_capabilities(daemon: &Daemon) -> Value {
    let welcome = daemon.workspaces().find_map(|workspace| workspace.welcome());
    let said = welcome.as_deref().and_then(|raw| acp::raw_at(raw, &["agentCapabilities", "promptCapabilities"]));
    let can = |key: &str| said.and_then(|raw| acp::raw_at(raw, &[key])) == Some("true");
    json!({ "image": can("image"), "audio": can("audio"), "embeddedContext": can("embeddedContext") })
}

/// When pings are due. The first one is not at once.
fn pulse() -> Interval {
    let period = Duration::from_millis(DOOR_PING_MS);
    let mut pulse = interval(period);
    pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pulse.reset();
    pulse
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use tokio::io::DuplexStream;
    use tokio::time::Instant;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::hosts::ProcessStarter;
    use crate::neighbours::tests::options;
    use crate::returns::Returns;

    /// An editor at the door of a daemon that has no agent to start.
    async fn at_the_door() -> (WebSocketStream<DuplexStream>, tempfile::TempDir) {
        let store = tempfile::tempdir().unwrap();
        let hosts = Arc::new(ProcessStarter { launcher: "/nonexistent".into() });
        let (primary, address) = (std::path::Path::new("/one"), "127.0.0.1:1".parse().unwrap());
        let returns = Returns::new(Arc::default());
        returns.open(store.path().join("requests")).await;
        let daemon = Daemon::new(options(store.path()), (primary, &[]), hosts, address, returns).unwrap();
        let (near, far) = tokio::io::duplex(64 * 1024);
        spawn(receive(Arc::new(daemon), far, Visitor { is_local: true, place: None }));
        (WebSocketStream::from_raw_socket(near, Role::Client, None).await, store)
    }

    /// Reads on, which answers pings, until the daemon says that it is over: the code, and how many pings there were.
    async fn last_word(editor: &mut WebSocketStream<DuplexStream>, pings_max: usize) -> (Option<u16>, usize) {
        let mut pings = 0;
        while pings < pings_max {
            match editor.next().await {
                Some(Ok(Message::Close(frame))) => return (frame.map(|frame| frame.code.into()), pings),
                Some(Ok(Message::Ping(_))) => pings += 1,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return (None, pings),
            }
        }
        (None, pings)
    }

    #[tokio::test(start_paused = true)]
    async fn an_editor_that_answers_is_kept_for_as_long_as_it_likes() {
        let (mut editor, _store) = at_the_door().await;
        editor.send(Message::text(r#"{"id":1,"method":"initialize","params":{}}"#)).await.unwrap();
        assert_eq!(last_word(&mut editor, 50).await, (None, 50));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_introduce_itself_is_hung_up_on_although_it_is_there() {
        let (mut editor, _store) = at_the_door().await;
        let (began, limit) = (Instant::now(), Duration::from_millis(3 * DOOR_PING_MS));
        let (code, pings) = last_word(&mut editor, 50).await;
        assert!(code == Some(1008) && pings <= 2 && began.elapsed() <= limit, "{code:?} after {pings} pings");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_gone_without_a_word_is_hung_up_on() {
        let (mut editor, _store) = at_the_door().await;
        editor.send(Message::text(r#"{"id":1,"method":"initialize","params":{}}"#)).await.unwrap();
        // Nobody reads, so nobody answers.
        let began = Instant::now();
        let mut raw = editor.into_inner();
        let mut sink = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut raw, &mut sink).await.unwrap();
        assert!(began.elapsed() <= Duration::from_millis(4 * DOOR_PING_MS), "{:?}", began.elapsed());
    }
}
