//! What the crates above tell a session's readers: changes that they brought about and this crate does not decide.

use crate::Title;
use crate::json::Object;
use crate::settings::Switched;

/// A change of the session, for its readers (wire specification, section 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// The session has another name.
    MetadataUpdated {
        /// The name for people.
        display_name: String,
        /// Who gave it: `manual` for a client.
        title_source: String,
    },
    /// The conversation was taken back to before a prompt.
    SessionRewound {
        /// The prompt, by the name that the caller gave it.
        prompt_id: String,
        /// How many prompts stay.
        target_turn_index: u64,
        /// Files that were put back: a raw JSON array.
        files_changed: String,
        /// Files that could not be: a raw JSON array.
        files_failed: String,
        /// What the agent remembers now, in its host's word; absent when it keeps its own history.
        memory: Option<String>,
    },
    /// A user began to run a command in the workspace.
    ShellCommand {
        /// What is run.
        command: String,
        /// Where.
        cwd: String,
    },
    /// What that command gave.
    ShellOutput {
        /// Both of its streams.
        output: String,
        /// Whether there was more of it than is kept.
        is_cut: bool,
    },
    /// How it ended. The session may outlive it without that being known.
    ShellResult {
        /// Its exit code.
        exit_code: Option<i64>,
        /// The signal that ended it.
        signal: Option<i64>,
        /// Whether the daemon ended it.
        aborted: bool,
    },
    /// The agent asks before it acts at other times than before.
    ApprovalModeChanged {
        /// The mode it had, and the one it has.
        switched: Switched,
    },
    /// The agent uses this model.
    ModelSwitched {
        /// Its name for it.
        model_id: String,
    },
    /// The agent does not use the model that a client asked for, or nobody knows whether it does.
    ModelSwitchFailed {
        /// The model.
        requested: String,
        /// Why, for people.
        error: String,
    },
    /// A setting that the agent keeps, beyond this session.
    SettingsChanged {
        /// Its name.
        key: String,
        /// What it is now.
        value: String,
    },
}

impl Announcement {
    /// What the session is called from here on, if that is what changed.
    pub(crate) fn title(&self) -> Option<Title> {
        match self {
            Self::MetadataUpdated { display_name, title_source } => {
                Some(Title { text: display_name.clone(), source: title_source.clone() })
            }
            _ => None,
        }
    }

    /// The type of its event.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::MetadataUpdated { .. } => "session_metadata_updated",
            Self::SessionRewound { .. } => "session_rewound",
            Self::ShellCommand { .. } => "user_shell_command",
            Self::ShellOutput { .. } => "session_update",
            Self::ShellResult { .. } => "user_shell_result",
            Self::ApprovalModeChanged { .. } => "approval_mode_changed",
            Self::ModelSwitched { .. } => "model_switched",
            Self::ModelSwitchFailed { .. } => "model_switch_failed",
            Self::SettingsChanged { .. } => "settings_changed",
        }
    }

    /// The `data` of its event, added to `session`, which names the session.
    pub(crate) fn data(&self, session: Object) -> String {
        match self {
            Self::MetadataUpdated { display_name, title_source } => {
                session.text("displayName", display_name).text("titleSource", title_source).finish()
            }
            Self::SessionRewound { prompt_id, target_turn_index, files_changed, files_failed, memory } => session
                .text("promptId", prompt_id)
                .number("targetTurnIndex", *target_turn_index)
                .raw("filesChanged", files_changed)
                .raw("filesFailed", files_failed)
                .maybe_text("memory", memory.as_deref())
                .finish(),
            Self::ShellCommand { command, cwd } => session.text("command", command).text("cwd", cwd).finish(),
            Self::ShellOutput { output, is_cut } => session.raw("update", &shell_output(output, *is_cut)).finish(),
            Self::ShellResult { exit_code, signal, aborted } => session
                .number_or_null("exitCode", *exit_code)
                .number_or_null("signal", *signal)
                .flag("aborted", *aborted)
                .finish(),
            // The clients that know the event insist on both words.
            Self::ApprovalModeChanged { switched: Switched { previous, next } } => session
                .text("previous", previous.as_deref().unwrap_or_default())
                .text("next", next)
                .flag("persisted", false)
                .finish(),
            Self::ModelSwitched { model_id } => session.text("modelId", model_id).finish(),
            Self::ModelSwitchFailed { requested, error } => {
                session.text("requestedModelId", requested).text("error", error).finish()
            }
            Self::SettingsChanged { key, value } => Object::new().text("key", key).text("value", value).finish(),
        }
    }
}

/// The update that shows what a command of a user gave.
fn shell_output(output: &str, is_cut: bool) -> String {
    let meta = Object::new().text("source", "user-shell").maybe_raw("outputTruncated", is_cut.then_some("true"));
    Object::new().text("sessionUpdate", "shell_output").text("output", output).raw("_meta", &meta.finish()).finish()
}
