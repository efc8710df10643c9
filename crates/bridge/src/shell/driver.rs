//! The one task of a session: it reads what the agent says, writes what it is told, and wakes when something is due.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use acp::{FrameReader, Kind, Message, RequestId};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tracing::debug;
use uuid::Uuid;

use super::ask::hand_over;
use super::generation;
use super::live::{Asked, Live, State};
use super::open::Streams;
use super::settings;
use super::unreadable;
use crate::background::{ACTIVE_WORK, Background};
use crate::incoming;
use crate::input::Input;
use crate::session::steering::Drain;
use crate::succession::succession;

/// Bytes read from the agent at once. Most messages are far smaller; a large one takes several turns of the loop.
const READ_BYTES: usize = 64 * 1024;

/// Drives a session until it is over.
pub(super) async fn drive(live: Arc<Live>, streams: Streams, frames: FrameReader) {
    let _guard = OverGuard(&live);
    let Streams { mut reader, mut writer } = streams;
    {
        let mut listening = pin!(listen(&live, &mut *reader, frames));
        let error = tokio::select! {
            () = &mut listening => None,
            error = live.outbox.drain(&mut writer) => Some(error),
        };
        if let Some(error) = error {
            // The host is gone. What it said before that is still to be read, but not waited for without end.
            debug!(session = live.id, %error, "agent's input is closed");
            let _ = tokio::time::timeout(Duration::from_millis(live.timeouts.end_ms), listening).await;
        }
    }
    live.step(|state| Input::ChannelLost { exit: state.exit });
    let oddities = live.state.lock().oddities;
    debug!(session = live.id, ?oddities, "session is over");
}

/// Takes in what the agent says and what is due, until the agent's stream ends or the session is over.
async fn listen(live: &Live, reader: &mut (dyn AsyncRead + Send + Unpin), mut frames: FrameReader) {
    let mut buffer = vec![0; READ_BYTES];
    // What came in one piece with the answer to the opening.
    take_whole(live, &mut frames);
    while !live.state.lock().machine.is_over() {
        let due_in = due_in(live);
        let length = tokio::select! {
            // What the agent has said by now comes before what is due: it may have been said in time.
            biased;
            read = read(live, reader, &mut buffer) => read,
            () = tokio::time::sleep(due_in.unwrap_or_default()), if due_in.is_some() => {
                settle_due(live);
                continue;
            }
            () = live.alarm.notified() => continue,
        };
        if length == 0 {
            if let Some(Ok(frame)) = frames.finish() {
                take(live, frame, live.clock.now_ms());
            }
            return;
        }
        frames.push(&buffer[..length]);
        take_whole(live, &mut frames);
        // An agent that never pauses holds nothing up.
        settle_due(live);
    }
}

/// Takes in every line that is there as a whole.
fn take_whole(live: &Live, frames: &mut FrameReader) {
    let at_ms = live.clock.now_ms();
    while let Some(frame) = frames.next_frame() {
        match frame {
            Ok(frame) => take(live, frame, at_ms),
            Err(error) => unreadable::take_lost(live, error, at_ms),
        }
    }
}

/// The number of bytes read; none at the end of the stream and after an error, which is an end too.
async fn read(live: &Live, reader: &mut (dyn AsyncRead + Send + Unpin), buffer: &mut [u8]) -> usize {
    live.outbox.has_room().await;
    reader.read(buffer).await.unwrap_or_else(|error| {
        debug!(session = live.id, %error, "agent's output is closed");
        0
    })
}

fn due_in(live: &Live) -> Option<Duration> {
    let (due, _) = live.state.lock().machine.due()?;
    Some(Duration::from_millis(due.since(live.clock.steady())))
}

/// Lets everything happen that is due by now.
fn settle_due(live: &Live) {
    let (now_ms, now) = (live.clock.now_ms(), live.clock.steady());
    let mut state = live.state.lock();
    while let Some((_, input)) = state.machine.due().filter(|(due, _)| *due <= now) {
        live.step_locked(&mut state, input, now_ms);
    }
}

/// Takes one line of the agent.
pub(super) fn take(live: &Live, frame: Bytes, at_ms: u64) {
    match Message::parse(frame.clone()) {
        Ok(message) => take_message(live, &message, at_ms),
        Err(reason) => unreadable::take(live, &frame, reason, at_ms),
    }
}

/// Takes one message of the agent.
pub(super) fn take_message(live: &Live, message: &Message, at_ms: u64) {
    let mut state = live.state.lock();
    if let Some(input) = meaning(live, &mut state, message, at_ms) {
        live.step_locked(&mut state, input, at_ms);
    }
}

/// What a message of the agent is to the machine.
fn meaning(live: &Live, state: &mut State, message: &Message, at_ms: u64) -> Option<Input> {
    match message.kind() {
        Kind::Request { id, method } if method == "craft/drainMidTurnQueue" => {
            let is_ours = is_of_session(live, state, message);
            let prompt_id = message.params().and_then(|params| acp::string_at(params, &["promptId"]));
            Some(Input::Drain(Drain { agent_request: id.clone(), prompt_id, is_ours }))
        }
        Kind::Request { id, method } => {
            let whose = message.whose(&state.agent.id, &live.id);
            let asked =
                (method == "session/request_permission").then(|| incoming::ask(id, message.params()?, whose)).flatten();
            Some(match asked {
                Some(ask) => {
                    Input::Asked { ask, request_id: Uuid::new_v4().to_string().into(), registered: state.clients.ids() }
                }
                None => Input::AskedUnknown { agent_request: id.clone(), method: method.clone() },
            })
        }
        Kind::Notification { method } if method == "session/update" => {
            if !is_of_session(live, state, message) {
                state.oddities.foreign_updates += 1;
                return None;
            }
            let params = message.params()?;
            settings::hear(live, state, method, params, at_ms);
            incoming::update(params, message.whose(&state.agent.id, &live.id)).map(Input::Updated)
        }
        Kind::Notification { method } if method == "turnd/agent_exited" => {
            state.exit = Some(incoming::exit(message.params().unwrap_or("{}")));
            None
        }
        Kind::Notification { method } if method == "turnd/prompt_written" => {
            let prompt_id = message.params().and_then(|params| acp::string_at(params, &["promptId"]))?;
            Some(Input::Written { prompt_id })
        }
        Kind::Notification { method } if method == "turnd/strayed" => Some(Input::Strayed),
        Kind::Notification { method } if method == "turnd/unreadable" => Some(unreadable::told(live, state)),
        Kind::Notification { method } if method == "turnd/recording_degraded" => {
            Some(Input::Recording(incoming::recording(message.params().unwrap_or("{}"))))
        }
        Kind::Notification { method } if method == ACTIVE_WORK => {
            let ids = [state.agent.id.as_str(), &live.id];
            let told = message.params().and_then(|params| Background::read(params, ids, at_ms));
            state.background = told.or(state.background);
            None
        }
        Kind::Notification { method }
            if method == generation::EVENT
                && message.params().is_some_and(|params| generation::hand_on(state, params)) =>
        {
            None
        }
        Kind::Notification { method } if method.starts_with("qwen/notify/session/") => {
            if !is_of_session(live, state, message) {
                state.oddities.foreign_updates += 1;
                return None;
            }
            settings::hear(live, state, method, message.params().unwrap_or("{}"), at_ms);
            None
        }
        Kind::Notification { .. } => {
            state.oddities.unknown_notifications += 1;
            None
        }
        Kind::Response { id } => answered(live, state, id.as_ref(), message, at_ms),
    }
}

/// Whether a message is about the session: it names it, by either name, or none.
fn is_of_session(live: &Live, state: &State, message: &Message) -> bool {
    message.session_id().is_none_or(|named| named == state.agent.id || named == live.id)
}

/// What an answer of the agent or its host is to the machine. Most are for somebody else, who waits for them.
fn answered(live: &Live, state: &mut State, id: Option<&RequestId>, message: &Message, at_ms: u64) -> Option<Input> {
    match id.and_then(|id| state.asked.take(id)) {
        Some(Asked::Prompt(prompt_id)) => Some(Input::Settled { prompt_id, answer: incoming::answer(message) }),
        Some(Asked::Replacement) => Some(succeed(live, state, message, at_ms)),
        Some(Asked::Inquiry(answer)) => {
            hand_over(answer, message);
            None
        }
        Some(Asked::Generation { request_id, answer }) => {
            // First the answer: the end of the events is where its reader looks for it.
            hand_over(answer, message);
            state.generations.remove(&request_id);
            None
        }
        Some(Asked::Change(asker)) => {
            asker.hear(live, state, message, at_ms);
            None
        }
        None => {
            state.oddities.stray_answers += 1;
            None
        }
    }
}

/// The host has answered the request for another agent. What that one calls the session counts before anything is told to it.
fn succeed(live: &Live, state: &mut State, message: &Message, at_ms: u64) -> Input {
    if let Some(result) = message.result() {
        state.background = None;
        state.agent.id = acp::string_at(result, &["sessionId"]).unwrap_or_else(|| live.id.clone());
        let (answer, process) = incoming::without_process(result);
        state.agent.process = process;
        settings::succeed(live, state, &answer, at_ms);
    }
    Input::Replaced(succession(message))
}

/// Says that the session is over however its task ends, so that nobody waits for it in vain.
struct OverGuard<'a>(&'a Live);

impl Drop for OverGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A fault of ours in one session: its prompts still get their one outcome, and the other sessions do not notice.
            self.0.step(|state| Input::ChannelLost { exit: state.exit });
        }
        // Whoever still waits for an answer hears that none will come.
        {
            let mut state = self.0.state.lock();
            state.asked.drain();
            state.generations.clear();
        }
        self.0.over.send_replace(true);
    }
}
