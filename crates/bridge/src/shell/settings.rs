//! Setting an agent: the inquiry, what becomes of it, and what the readers are told.

use std::sync::Arc;
use std::time::Duration;

use acp::{Message, RpcError, string_at};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::ask::AskError;
use super::live::{Asked, Live, State};
use super::session::Session;
use crate::announcement::Announcement;
use crate::input::Input;
use crate::settings::{Setting, Switched, Way};

/// A change that a client asks for, in the words that its agent understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What is to change.
    pub setting: Setting,
    /// Into what.
    pub value: String,
    /// What the agent is asked.
    pub method: String,
    /// Its parameters, but for the session's id: raw JSON object text.
    pub params: String,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
}

/// What is asked of the agent or its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inquiry<'a> {
    /// The method.
    pub method: &'a str,
    /// Its parameters, but for the session's id: raw JSON object text.
    pub params: &'a str,
    /// How long it may take, in milliseconds.
    pub timeout_ms: u64,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// What it was and what it is.
    pub switched: Switched,
    /// The agent's answer: raw JSON text.
    pub answer: String,
}

/// Who waits for the answer to a change. The readers hear of it in the order in which the agent answered, whenever the asker wakes.
pub(super) struct Asker {
    what: What,
    by: Option<Arc<str>>,
    answer: oneshot::Sender<Result<Changed, RpcError>>,
}

/// What becomes of the session when the answer is no error.
enum What {
    /// This setting has this value; the number is the change's.
    Setting { number: u64, setting: Setting, value: String },
    /// The readers are told this.
    Told(Announcement),
}

impl Session {
    /// What the agent is set to, if it says.
    pub fn setting(&self, setting: Setting) -> Option<String> {
        self.live.state.lock().agent.settings.current(setting)
    }

    /// What the agent can be set to.
    pub fn offered(&self, setting: Setting) -> Vec<String> {
        self.live.state.lock().agent.settings.offered(setting)
    }

    /// How the agent is set to `value`; none where it has no word for it.
    pub fn way(&self, setting: Setting, value: &str) -> Option<Way> {
        self.live.state.lock().agent.settings.way(setting, value)
    }

    /// Changes a setting and tells the readers, in the name of `by`. No prompt waits for it and it waits for none.
    ///
    /// # Errors
    /// When the agent did not do it, or nobody knows whether it did.
    pub async fn change(&self, change: &Change, by: Option<&str>) -> Result<Changed, AskError> {
        let Change { setting, value, method, params, timeout_ms } = change;
        let (answer, mut answered) = oneshot::channel();
        let number = {
            let mut state = self.live.state.lock();
            let number = state.agent.settings.begin(*setting, value);
            let what = What::Setting { number, setting: *setting, value: value.clone() };
            let asker = Asker { what, by: by.map(Into::into), answer };
            self.live.put(&mut state, method, params, Asked::Change(asker));
            number
        };
        let outcome = waited(&mut answered, method, *timeout_ms).await;
        if let Err(error @ AskError::Timeout { .. }) = &outcome {
            let now_ms = self.live.clock.now_ms();
            let mut state = self.live.state.lock();
            // An answer of the same instant has been told to the readers already, and is not taken back.
            if let Ok(answer) = answered.try_recv() {
                return answer.map_err(AskError::Refused);
            }
            state.agent.settings.end(number, None);
            if let Some(announcement) = failed(*setting, value, error.to_string()) {
                let input = Input::Announced { announcement, by: by.map(Into::into) };
                self.live.step_locked(&mut state, input, now_ms);
            }
        }
        outcome
    }

    /// Asks for something that is news for the readers once it is done: `announcement`, in the name of `by`. Gives the answer.
    ///
    /// # Errors
    /// When it was not done, or nobody knows whether it was.
    pub async fn ask_and_announce(
        &self,
        inquiry: &Inquiry<'_>,
        announcement: Announcement,
        by: Option<&str>,
    ) -> Result<String, AskError> {
        let (answer, mut answered) = oneshot::channel();
        let asker = Asker { what: What::Told(announcement), by: by.map(Into::into), answer };
        let Inquiry { method, params, timeout_ms } = inquiry;
        self.live.put(&mut self.live.state.lock(), method, params, Asked::Change(asker));
        waited(&mut answered, method, *timeout_ms).await.map(|changed| changed.answer)
    }
}

async fn waited(
    answered: &mut oneshot::Receiver<Result<Changed, RpcError>>,
    method: &str,
    timeout_ms: u64,
) -> Result<Changed, AskError> {
    match timeout(Duration::from_millis(timeout_ms), answered).await {
        Ok(Ok(outcome)) => outcome.map_err(AskError::Refused),
        Ok(Err(_)) => Err(AskError::Gone),
        Err(_) => Err(AskError::Timeout { method: method.to_owned(), timeout_ms }),
    }
}

impl Asker {
    /// Whether somebody still waits.
    pub(super) fn is_awaited(&self) -> bool {
        !self.answer.is_closed()
    }

    /// Takes the answer in, tells the readers, and hands it over.
    pub(super) fn hear(self, live: &Live, state: &mut State, message: &Message, at_ms: u64) {
        let Self { what, by, answer } = self;
        let error = message.rpc_error();
        let result = message.result().unwrap_or("null");
        let (switched, told) = match what {
            What::Told(announcement) => {
                (Switched::default(), error.is_none().then_some(announcement).into_iter().collect())
            }
            What::Setting { number, setting, value } => match &error {
                Some(error) => {
                    state.agent.settings.end(number, None);
                    let why = error.details().unwrap_or_else(|| error.message.clone());
                    (Switched::default(), failed(setting, &value, why).into_iter().collect())
                }
                None => {
                    // One agent says in its answer what it is set to now.
                    let next = string_at(result, &["current"]).unwrap_or(value);
                    let settings = &mut state.agent.settings;
                    // Nobody waits any more for one that comes late, but it is done.
                    let switched = settings.end(number, Some(&next)).or_else(|| settings.hear(setting, &next));
                    let told = switched.clone().map_or_else(Vec::new, |switched| done(setting, switched, result));
                    (switched.unwrap_or_default(), told)
                }
            },
        };
        for announcement in told {
            live.step_locked(state, Input::Announced { announcement, by: by.clone() }, at_ms);
        }
        let _ = answer.send(match error {
            Some(error) => Err(error),
            None => Ok(Changed { switched, answer: result.to_owned() }),
        });
    }
}

/// What the readers are told of a change that was made.
fn done(setting: Setting, switched: Switched, result: &str) -> Vec<Announcement> {
    let named = string_at(result, &["_meta", "qwenModelSwitch", "modelId"]).filter(|_| setting == Setting::Model);
    let kept = named.map(|value| Announcement::SettingsChanged { key: "model.name".to_owned(), value });
    std::iter::once(announcement(setting, switched)).chain(kept).collect()
}

/// The same of one that was not.
fn failed(setting: Setting, value: &str, error: String) -> Option<Announcement> {
    let requested = value.to_owned();
    (setting == Setting::Model).then_some(Announcement::ModelSwitchFailed { requested, error })
}

fn announcement(setting: Setting, switched: Switched) -> Announcement {
    match setting {
        Setting::Mode => Announcement::ApprovalModeChanged { switched },
        Setting::Model => Announcement::ModelSwitched { model_id: switched.next },
    }
}

/// Another agent, or another session of it, has the place and answers so. The readers are told what is different with it.
pub(super) fn succeed(live: &Live, state: &mut State, answer: &str, at_ms: u64) {
    for (setting, switched) in state.agent.settings.succeed(answer.to_owned()) {
        let announcement = announcement(setting, switched);
        live.step_locked(state, Input::Announced { announcement, by: None }, at_ms);
    }
}

/// Takes in what the agent says of its settings, and of the session's name, and tells the readers what no client asked for.
pub(super) fn hear(live: &Live, state: &mut State, method: &str, params: &str, at_ms: u64) {
    let text = |path: &[&str]| string_at(params, path);
    let settings = &mut state.agent.settings;
    let (mut set, mut named) = (Vec::new(), None);
    let mut one = |setting, value: Option<String>| {
        set.extend(value.and_then(|value| Some((setting, settings.hear(setting, &value)?))));
    };
    match method {
        "session/update" => match text(&["update", "sessionUpdate"]).as_deref() {
            Some("current_mode_update") => one(Setting::Mode, text(&["update", "currentModeId"])),
            Some("config_option_update") => {
                let options = acp::raw_at(params, &["update", "configOptions"]).unwrap_or_default();
                set = settings.hear_options(options);
            }
            _ => return,
        },
        "qwen/notify/session/mode-update" => one(Setting::Mode, text(&["currentModeId"])),
        "qwen/notify/session/model-update" => one(Setting::Model, text(&["currentModelId"])),
        "qwen/notify/session/title-update" => {
            let title_source = text(&["titleSource"]).unwrap_or_else(|| crate::Title::AUTO.to_owned());
            let title = text(&["title"]).map(|text| crate::Title { text, source: title_source });
            // An agent that writes the transcript has written the name there, and the last one that is written counts.
            let counts = |title: &crate::Title| state.agent.writes_transcript || state.machine.takes(title);
            named = title.filter(|title| state.machine.title() != Some(title) && counts(title));
        }
        _ => return,
    }
    let named =
        named.map(|title| Announcement::MetadataUpdated { display_name: title.text, title_source: title.source });
    let set = set.into_iter().map(|(setting, switched)| announcement(setting, switched));
    for announcement in set.chain(named).collect::<Vec<_>>() {
        live.step_locked(state, Input::Announced { announcement, by: None }, at_ms);
    }
}
