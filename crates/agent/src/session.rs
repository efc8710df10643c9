//! Sessions: what was said, and the turn that runs.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use acp::rpc_error::{INTERNAL_ERROR, INVALID_REQUEST};
use acp::{Message, RpcError, compose, with_member};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;

use crate::limits::{HISTORY_BYTES_MAX, SESSIONS_MAX};
use crate::permission::Standing;
use crate::settings::Settings;

/// What ACP calls a resource that is not there.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// All sessions of the process, by id.
pub(crate) struct Sessions {
    prefix: String,
    made: u64,
    turns: u64,
    by_id: BTreeMap<String, Session>,
}

/// One conversation.
pub(crate) struct Session {
    /// Where commands run.
    pub(crate) cwd: PathBuf,
    /// Lines to say again when the session is loaded.
    pub(crate) history: History,
    /// What it is set to.
    pub(crate) settings: Settings,
    /// What an "always" has settled.
    pub(crate) standing: Option<Standing>,
    /// Tool calls so far, which numbers the next.
    pub(crate) calls: u64,
    /// Prompts so far, and the newest of them.
    pub(crate) prompts: u64,
    pub(crate) last_prompt: String,
    running: Option<Running>,
}

struct Running {
    turn: u64,
    cancel: watch::Sender<bool>,
}

/// A turn that has just become a session's only one.
pub(crate) struct Started {
    /// Tells this turn from those before and after it.
    pub(crate) turn: u64,
    /// Becomes true when the client cancels.
    pub(crate) cancelled: watch::Receiver<bool>,
}

impl Sessions {
    pub(crate) fn new(prefix: String) -> Self {
        Self { prefix, made: 0, turns: 0, by_id: BTreeMap::new() }
    }

    /// Makes a session and gives its id, which is never given again.
    pub(crate) fn make(&mut self, cwd: PathBuf) -> Result<String, RpcError> {
        if self.by_id.len() == SESSIONS_MAX {
            return Err(RpcError::new(INTERNAL_ERROR, format!("no more than {SESSIONS_MAX} sessions")));
        }
        self.made += 1;
        let id = format!("{}{}", self.prefix, self.made);
        self.by_id.insert(id.clone(), Session::new(cwd));
        Ok(id)
    }

    pub(crate) fn get(&mut self, id: &str) -> Result<&mut Session, RpcError> {
        self.by_id.get_mut(id).ok_or_else(|| RpcError::new(RESOURCE_NOT_FOUND, format!("no session {id:?}")))
    }

    /// Forgets a session; its turn, if one runs, is cancelled.
    pub(crate) fn close(&mut self, id: &str) -> Result<(), RpcError> {
        self.get(id)?.cancel();
        self.by_id.remove(id);
        Ok(())
    }

    /// The sessions of one folder, or of all.
    pub(crate) fn list(&self, cwd: Option<&Path>) -> Vec<(String, PathBuf)> {
        let wanted = |session: &Session| cwd.is_none_or(|cwd| session.cwd == cwd);
        let listed = self.by_id.iter().filter(|(_, session)| wanted(session));
        listed.map(|(id, session)| (id.clone(), session.cwd.clone())).collect()
    }

    /// Makes a session that remembers what another one was told before a prompt of that id, and gives its id.
    pub(crate) fn fork_before(&mut self, id: &str, prompt_id: &str) -> Result<String, RpcError> {
        let source = self.get(id)?;
        if source.running.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "a prompt is running"));
        }
        let (cwd, settings, history) = (source.cwd.clone(), source.settings, source.history.before(prompt_id));
        let lines = history.ok_or_else(|| RpcError::new(RESOURCE_NOT_FOUND, format!("no prompt {prompt_id:?}")))?;
        let made = self.make(cwd)?;
        let mut history = History::default();
        for Said { line, begins } in lines {
            history.say(Said { line: renamed(&line, &made), begins });
        }
        let session = self.get(&made)?;
        (session.history, session.settings) = (history, settings);
        Ok(made)
    }

    /// Starts a turn, unless one runs.
    pub(crate) fn start(&mut self, id: &str) -> Result<Started, RpcError> {
        let turn = self.turns;
        self.turns += 1;
        let session = self.get(id)?;
        if session.running.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "a prompt is already running"));
        }
        let (cancel, cancelled) = watch::channel(false);
        session.running = Some(Running { turn, cancel });
        Ok(Started { turn, cancelled })
    }
}

impl Session {
    fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            settings: Settings::default(),
            history: History::default(),
            standing: None,
            calls: 0,
            prompts: 0,
            last_prompt: String::new(),
            running: None,
        }
    }

    /// Asks the running turn to stop. Without one nothing happens, and the next turn is not harmed.
    pub(crate) fn cancel(&self) {
        if let Some(running) = &self.running {
            running.cancel.send_replace(true);
        }
    }

    /// The turn is answered, so that the next may start. A turn that is not the running one (it
    /// answers again) changes nothing.
    pub(crate) fn end(&mut self, turn: u64) {
        self.running.take_if(|running| running.turn == turn);
    }
}

/// The updates of a session as they were sent, the newest within a limit.
#[derive(Default)]
pub(crate) struct History {
    lines: VecDeque<Said>,
    bytes: usize,
}

/// One update of a history.
#[derive(Clone)]
pub(crate) struct Said {
    /// As it was sent.
    pub(crate) line: Bytes,
    /// The prompt that begins with it, by its client's id.
    pub(crate) begins: Option<String>,
}

impl History {
    pub(crate) fn push(&mut self, line: Bytes) {
        self.say(Said { line, begins: None });
    }

    pub(crate) fn say(&mut self, said: Said) {
        self.bytes += said.line.len();
        self.lines.push_back(said);
        while self.bytes > HISTORY_BYTES_MAX {
            self.bytes -= self.lines.pop_front().map_or(self.bytes, |said| said.line.len());
        }
    }

    pub(crate) fn lines(&self) -> Vec<Bytes> {
        self.lines.iter().map(|said| said.line.clone()).collect()
    }

    /// What was said before the prompt of that id; none when it is not remembered.
    fn before(&self, prompt_id: &str) -> Option<Vec<Said>> {
        let place = self.lines.iter().position(|said| said.begins.as_deref() == Some(prompt_id))?;
        Some(self.lines.range(..place).cloned().collect())
    }
}

/// An update as another session says it.
fn renamed(line: &Bytes, session_id: &str) -> Bytes {
    let Ok(message) = Message::parse(line.clone()) else { return line.clone() };
    let params = with_member(message.params().unwrap_or("{}"), "sessionId", &json!(session_id).to_string());
    compose::notification_raw("session/update", &params)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> (Sessions, String) {
        let mut sessions = Sessions::new("s-".to_owned());
        let id = sessions.make("/ws".into()).unwrap();
        (sessions, id)
    }

    #[test]
    fn a_session_has_one_turn_at_a_time() {
        let (mut sessions, id) = sessions();
        let first = sessions.start(&id).ok().unwrap();
        let refused = sessions.start(&id).err().unwrap();
        assert_eq!(refused, RpcError::new(INVALID_REQUEST, "a prompt is already running"));
        sessions.get(&id).unwrap().end(first.turn);
        assert!(sessions.start(&id).is_ok());
    }

    #[test]
    fn a_turn_that_answers_again_does_not_end_the_next() {
        let (mut sessions, id) = sessions();
        let first = sessions.start(&id).ok().unwrap();
        sessions.get(&id).unwrap().end(first.turn);
        let second = sessions.start(&id).ok().unwrap();
        sessions.get(&id).unwrap().end(first.turn);
        assert!(sessions.start(&id).is_err());
        assert!(second.turn > first.turn);
    }

    #[test]
    fn a_cancel_reaches_the_running_turn_and_no_later_one() {
        let (mut sessions, id) = sessions();
        sessions.get(&id).unwrap().cancel();
        let first = sessions.start(&id).ok().unwrap();
        assert!(!*first.cancelled.borrow());
        sessions.get(&id).unwrap().cancel();
        assert!(*first.cancelled.borrow());
        sessions.get(&id).unwrap().end(first.turn);
        assert!(!*sessions.start(&id).ok().unwrap().cancelled.borrow());
    }

    #[test]
    fn closing_cancels_and_forgets() {
        let (mut sessions, id) = sessions();
        let turn = sessions.start(&id).ok().unwrap();
        sessions.close(&id).unwrap();
        assert!(*turn.cancelled.borrow());
        assert_eq!(sessions.get(&id).err().unwrap().code, RESOURCE_NOT_FOUND);
        assert_ne!(sessions.make("/ws".into()).unwrap(), id);
    }

    #[test]
    fn sessions_are_listed_by_folder_or_all() {
        let (mut sessions, id) = sessions();
        let other = sessions.make("/other".into()).unwrap();
        assert_eq!(sessions.list(Some(Path::new("/ws"))), [(id, "/ws".into())]);
        assert_eq!(sessions.list(None).len(), 2);
        assert_eq!(sessions.list(Some(Path::new("/other")))[0].0, other);
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (mut sessions, id) = sessions();
        for _ in 1..SESSIONS_MAX {
            sessions.make("/ws".into()).unwrap();
        }
        assert!(sessions.make("/ws".into()).is_err());
        sessions.close(&id).unwrap();
        assert!(sessions.make("/ws".into()).is_ok());
    }

    #[test]
    fn a_session_is_made_of_what_was_said_before_a_prompt() {
        let (mut sessions, id) = sessions();
        let line = |text: &str| compose::notification("session/update", &json!({"sessionId": "s-1", "update": text}));
        let history = &mut sessions.get(&id).unwrap().history;
        for prompt in ["p1", "p2"] {
            history.say(Said { line: line(prompt), begins: Some(prompt.to_owned()) });
            history.push(line("answer"));
        }
        let made = sessions.fork_before(&id, "p2").unwrap();
        let said: Vec<_> = sessions.get(&made).unwrap().history.lines();
        let said: Vec<_> = said.iter().map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
        assert_eq!(said.len(), 2);
        assert!(said.iter().all(|line| line.contains(r#""sessionId":"s-2""#)), "{said:?}");
        assert!(said[0].contains("p1"), "{said:?}");
        let made = sessions.fork_before(&made, "p1").unwrap();
        assert!(sessions.get(&made).unwrap().history.lines().is_empty(), "its prompts are known there too");
        assert_eq!(sessions.fork_before(&made, "p1").err().unwrap().code, RESOURCE_NOT_FOUND);
        sessions.start(&id).ok().unwrap();
        assert_eq!(sessions.fork_before(&id, "p1").err().unwrap().code, INVALID_REQUEST);
    }

    #[test]
    fn history_keeps_the_newest_within_its_limit() {
        let mut history = History::default();
        for n in 0..5_u8 {
            history.push(vec![n; HISTORY_BYTES_MAX / 2].into());
        }
        let kept: Vec<u8> = history.lines().iter().map(|line| line[0]).collect();
        assert_eq!(kept, [3, 4]);
        history.push(vec![9; HISTORY_BYTES_MAX + 1].into());
        assert!(history.lines().is_empty());
        history.push(vec![7].into());
        assert_eq!(history.lines().len(), 1);
    }
}
