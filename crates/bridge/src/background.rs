//! Work of an agent that is no prompt's: what it started and lets run, as it tells in its own notification (wire specification, section
//! 14.3). An agent that does not know the notification tells nothing.

use serde::Deserialize;

/// The notification, which an agent repeats as long as it lives.
pub(crate) const ACTIVE_WORK: &str = "qwen/notify/channel/active-work";
/// How often it is asked to, in milliseconds.
pub(crate) const HEARTBEAT_MS: u64 = 15_000;
/// What it is asked to tell of.
pub(crate) const CATEGORIES: [&str; 5] = ["agent", "notification", "shell", "session", "workflow"];
/// After so many milliseconds without a word nobody knows any more: three of its reports are missing then.
const STALE_MS: u64 = 3 * HEARTBEAT_MS;

/// What an agent said last of its work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Background {
    /// Tasks run that were started by a turn and outlive it.
    pub has_running_tasks: bool,
    /// Something keeps it from being ended without loss.
    pub is_held: bool,
    /// When it said so, in epoch milliseconds.
    pub told_at_ms: u64,
}

/// What is known of an agent's work in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// There is none, or the agent has never spoken of any.
    None,
    /// There is some.
    Some,
    /// The agent used to tell, and has stopped.
    Unknown,
}

impl Background {
    /// What this means at a time, in epoch milliseconds.
    #[must_use]
    pub fn work(background: Option<&Self>, now_ms: u64) -> Work {
        match background {
            Some(told) if now_ms > told.told_at_ms.saturating_add(STALE_MS) => Work::Unknown,
            Some(told) if told.has_running_tasks || told.is_held => Work::Some,
            Some(_) | None => Work::None,
        }
    }

    /// What the parameters of the notification say of the session that one of `ids` names. One that is not named has no work. None when
    /// they cannot be read.
    pub(crate) fn read(params: &str, ids: [&str; 2], told_at_ms: u64) -> Option<Self> {
        let report: Report = serde_json::from_str(params).ok()?;
        let of_session = report.sessions.iter().find(|told| ids.contains(&told.session_id.as_str()));
        Some(Self {
            has_running_tasks: of_session.is_some_and(|told| told.has_running_background_tasks),
            is_held: of_session.is_some_and(|told| !told.holds.is_empty()),
            told_at_ms,
        })
    }
}

#[derive(Deserialize)]
struct Report {
    sessions: Vec<Told>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    session_id: String,
    #[serde(default)]
    has_running_background_tasks: bool,
    #[serde(default)]
    holds: Vec<serde::de::IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_its_session_does_and_nothing_of_others() {
        let read = |params: &str| {
            Background::read(params, ["theirs", "ours"], 7).map(|told| (told.has_running_tasks, told.is_held))
        };
        let held = r#"{"category":"shell","id":"background-shells"}"#;
        for (params, expected) in [
            (r#"{"v":1,"seq":1,"sessions":[]}"#.to_owned(), Some((false, false))),
            (
                r#"{"sessions":[{"sessionId":"other","hasRunningBackgroundTasks":true}]}"#.to_owned(),
                Some((false, false)),
            ),
            (
                r#"{"sessions":[{"sessionId":"ours","hasRunningBackgroundTasks":true,"holds":[]}]}"#.to_owned(),
                Some((true, false)),
            ),
            (format!(r#"{{"sessions":[{{"sessionId":"theirs","holds":[{held}]}}]}}"#), Some((false, true))),
            (r#"{"sessions":5}"#.to_owned(), None),
            ("[]".to_owned(), None),
        ] {
            assert_eq!(read(&params), expected, "{params}");
        }
    }

    #[test]
    fn an_agent_that_stops_telling_leaves_it_unknown() {
        let told = |has_running_tasks, is_held| Background { has_running_tasks, is_held, told_at_ms: 1_000 };
        let work = |background: Option<Background>, now_ms| Background::work(background.as_ref(), now_ms);
        assert_eq!(work(None, u64::MAX), Work::None);
        assert_eq!(work(Some(told(false, false)), 46_000), Work::None);
        assert_eq!(work(Some(told(true, false)), 46_000), Work::Some);
        assert_eq!(work(Some(told(false, true)), 46_000), Work::Some);
        assert_eq!(work(Some(told(false, false)), 46_001), Work::Unknown);
    }
}
