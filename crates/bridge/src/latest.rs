//! What a client that joins late has to know: said once by the agent, at odd times.

use crate::incoming::{StateKind, Update};
use crate::limits::LATEST_UPDATE_BYTES_MAX;
use crate::{Source, Title};

/// The newest update of each kind that is state.
#[derive(Debug, Default)]
pub(crate) struct Latest {
    updates: Vec<(StateKind, String)>,
    title: Option<Title>,
    source: Option<Source>,
}

impl Latest {
    pub(crate) fn note(&mut self, update: &Update) {
        let Some(kind) = update.state else { return };
        if kind == StateKind::Info {
            self.note_title(acp::string_at(&update.raw, &["title"]));
        }
        self.updates.retain(|(known, _)| *known != kind);
        if update.raw.len() <= LATEST_UPDATE_BYTES_MAX {
            self.updates.push((kind, update.raw.clone()));
        }
    }

    /// What the agent calls the session, unless a person has named it.
    fn note_title(&mut self, title: Option<String>) {
        if let Some(title) = title.map(Title::of_agent).filter(|title| self.takes(title)) {
            self.title = Some(title);
        }
    }

    /// Whether the session may be called so: what a person chose gives way only to what a person chose.
    pub(crate) fn takes(&self, title: &Title) -> bool {
        title.is_chosen() || !self.title.as_ref().is_some_and(Title::is_chosen)
    }

    /// The session is called so from here on.
    pub(crate) fn name(&mut self, title: Title) {
        self.title = Some(title);
    }

    pub(crate) fn title(&self) -> Option<&Title> {
        self.title.as_ref()
    }

    /// The session comes from there.
    pub(crate) fn originate(&mut self, source: Source) {
        self.source = Some(source);
    }

    pub(crate) fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Raw JSON texts, in the order in which they came.
    pub(crate) fn updates(&self) -> impl Iterator<Item = &str> {
        self.updates.iter().map(|(_, raw)| raw.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incoming::update;

    fn latest(updates: &[&str]) -> Latest {
        let mut latest = Latest::default();
        for raw in updates {
            latest.note(&update(&format!(r#"{{"update":{raw}}}"#), acp::Whose::Own).unwrap());
        }
        latest
    }

    #[test]
    fn the_newest_of_each_kind_is_kept() {
        let (one, two) = (
            r#"{"sessionUpdate":"current_mode_update","currentModeId":"a"}"#,
            r#"{"sessionUpdate":"current_mode_update","currentModeId":"b"}"#,
        );
        let usage = r#"{"sessionUpdate":"usage_update","used":1}"#;
        let chunk = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}"#;
        assert_eq!(latest(&[one, usage, chunk, two]).updates().collect::<Vec<_>>(), [usage, two]);
    }

    #[test]
    fn a_title_stays_until_another_one_comes() {
        let titled = r#"{"sessionUpdate":"session_info_update","title":"Named"}"#;
        let untitled = r#"{"sessionUpdate":"session_info_update","updatedAt":"now"}"#;
        assert_eq!(latest(&[titled, untitled]).title(), Some(&Title::of_agent("Named".into())));
        assert_eq!(latest(&[untitled]).title(), None);
    }

    #[test]
    fn a_name_that_a_person_gave_outlives_the_agents_ideas() {
        let titled = |title| {
            update(
                &format!(r#"{{"update":{{"sessionUpdate":"session_info_update","title":"{title}"}}}}"#),
                acp::Whose::Own,
            )
        };
        let chosen = |text: &str| Title { text: text.into(), source: Title::MANUAL.into() };
        let mut latest = Latest::default();
        latest.note(&titled("idea").unwrap());
        latest.name(chosen("mine"));
        latest.note(&titled("other idea").unwrap());
        assert_eq!(latest.title(), Some(&chosen("mine")));
        latest.name(chosen("mine too"));
        assert_eq!(latest.title(), Some(&chosen("mine too")));
        latest.name(Title::of_agent("remembered".into()));
        latest.note(&titled("newer").unwrap());
        assert_eq!(latest.title(), Some(&Title::of_agent("newer".into())));
    }

    #[test]
    fn an_update_that_is_too_large_displaces_the_old_one_and_is_not_kept() {
        let old = r#"{"sessionUpdate":"usage_update","used":1}"#;
        let large = format!(r#"{{"sessionUpdate":"usage_update","x":"{}"}}"#, "x".repeat(LATEST_UPDATE_BYTES_MAX));
        assert_eq!(latest(&[old, &large]).updates().count(), 0);
    }
}
