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
}

impl Announcement {
    /// What the session is called from here on, if that is what changed.
    pub(crate) fn title(&self) -> Option<Title> {
        match self {
            Self::MetadataUpdated { display_name, title_source } => {
                Some(Title { text: display_name.clone(), source: title_source.clone() })
            }
        }
    }

    /// The type of its event.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::MetadataUpdated { .. } => "session_metadata_updated",
        }
    }

    /// The `data` of its event, added to `session`, which names the session.
    pub(crate) fn data(&self, session: Object) -> String {
        match self {
            Self::MetadataUpdated { display_name, title_source } => {
                session.text("displayName", display_name).text("titleSource", title_source).finish()
            }
        }
    }
}
