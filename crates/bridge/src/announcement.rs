//! What the crates above tell a session's readers: changes that they brought about and this crate does not decide.

use crate::Title;
use crate::json::Object;

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
}

impl Announcement {
    /// What the session is called from here on, if that is what changed.
    pub(crate) fn title(&self) -> Option<Title> {
        match self {
            Self::MetadataUpdated { display_name, title_source } => {
                Some(Title { text: display_name.clone(), source: title_source.clone() })
            }
            Self::SessionRewound { .. } => None,
        }
    }

    /// The type of its event.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::MetadataUpdated { .. } => "session_metadata_updated",
            Self::SessionRewound { .. } => "session_rewound",
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
        }
    }
}
