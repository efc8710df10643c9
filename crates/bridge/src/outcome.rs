//! From the agent's answer to the outcome of a prompt.

use crate::{InputWritten, Terminal};

/// The agent's answer to a prompt, as it came through the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A result.
    Settled {
        /// The agent's word.
        stop_reason: Option<String>,
        /// What the host decided and recorded, when it says so.
        host: Option<HostWord>,
        /// The agent's word, where the host replaced it.
        agent_stop_reason: Option<String>,
        /// Where the conversation can be branched: raw JSON object text.
        branch_point: Option<String>,
    },
    /// An error.
    Failed {
        message: String,
        code: String,
        /// The host itself says so: the agent did not start, died, or could not be recorded.
        from_host: bool,
        /// Whether the agent had the input, when the host knows.
        input_written: Option<InputWritten>,
    },
}

/// The host's words for an end that is its own too: its agent is gone, or it was told to go. Nothing sent to it after that
/// reaches an agent.
const LAST_WORDS: [&str; 3] = ["channel_closed", "host_terminated", "linger_expired"];

/// The host's word for an agent that it ended because it did not stop. By then a client had cancelled, or nobody waits any more.
const AGENT_REPLACED: &str = "agent_replaced";

/// The host's word for an answer that could not be read.
const UNREADABLE_ANSWER: &str = "unreadable_answer";

impl Answer {
    /// The answer for a prompt whose agent is gone, should the host not have given it.
    pub(crate) fn replaced() -> Self {
        let message = "the agent was replaced before the prompt completed".to_owned();
        Self::Failed { message, code: AGENT_REPLACED.to_owned(), from_host: true, input_written: None }
    }

    /// What may have been the answer and could not be read.
    pub(crate) fn unreadable() -> Self {
        let message = "the agent's answer cannot be read".to_owned();
        Self::Failed { message, code: UNREADABLE_ANSWER.to_owned(), from_host: true, input_written: None }
    }

    /// Whether the agent itself has answered, which it can only do with the whole prompt.
    pub(crate) fn is_agents(&self) -> bool {
        !matches!(self, Self::Failed { from_host: true, .. })
    }

    /// Whether the host ends with this answer.
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Failed { from_host: true, code, .. } if LAST_WORDS.contains(&code.as_str()))
    }
}

/// The state of a turn as its host recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostWord {
    Completed,
    Cancelled,
}

/// The outcome. Once a cancel was written to the agent the turn is cancelled, whatever the agent says: several say `end_turn` for
/// a cut answer. Only the host knows that the turn was over before the cancel arrived, so its word counts more.
pub(crate) fn judge(answer: &Answer, cancel_written: bool) -> Terminal {
    match answer {
        Answer::Settled { stop_reason, host, agent_stop_reason, .. } => {
            let agent = agent_stop_reason.clone().or_else(|| stop_reason.clone());
            match (host, stop_reason.as_deref()) {
                (Some(HostWord::Completed), _) => completed(agent.as_deref()),
                (Some(HostWord::Cancelled), _) => Terminal::Cancelled { agent_stop_reason: agent_stop_reason.clone() },
                (None, _) if cancel_written => Terminal::Cancelled { agent_stop_reason: agent },
                (None, Some("cancelled")) => Terminal::Cancelled { agent_stop_reason: agent },
                (None, Some(stop_reason)) => completed(Some(stop_reason)),
                (None, None) => Terminal::Error {
                    message: "agent answered without a stop reason".to_owned(),
                    code: Some("no_stop_reason".to_owned()),
                },
            }
        }
        Answer::Failed { from_host: false, .. } if cancel_written => Terminal::Cancelled { agent_stop_reason: None },
        Answer::Failed { code, .. } if cancel_written && code == AGENT_REPLACED => {
            Terminal::Cancelled { agent_stop_reason: None }
        }
        Answer::Failed { message, code, .. } => Terminal::error(message, Some(code)),
    }
}

fn completed(stop_reason: Option<&str>) -> Terminal {
    // The host says that the turn completed, and nobody says how; the set of stop reasons is open.
    Terminal::Completed { stop_reason: stop_reason.unwrap_or("unspecified").to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(stop_reason: Option<&str>, host: Option<HostWord>, agent: Option<&str>) -> Answer {
        Answer::Settled {
            stop_reason: stop_reason.map(str::to_owned),
            host,
            agent_stop_reason: agent.map(str::to_owned),
            branch_point: None,
        }
    }

    fn failed(from_host: bool) -> Answer {
        Answer::Failed { message: "no".into(), code: "-1".into(), from_host, input_written: None }
    }

    fn short(terminal: &Terminal) -> String {
        match terminal {
            Terminal::Completed { stop_reason } => format!("completed {stop_reason}"),
            Terminal::Cancelled { agent_stop_reason } => {
                format!("cancelled ({})", agent_stop_reason.as_deref().unwrap_or("-"))
            }
            Terminal::Error { code, .. } => format!("error {}", code.as_deref().unwrap_or("-")),
        }
    }

    fn check(answer: &Answer, untouched: &str, cancel_written: &str) {
        assert_eq!(short(&judge(answer, false)), untouched, "{answer:?}");
        assert_eq!(short(&judge(answer, true)), cancel_written, "{answer:?} after a cancel");
    }

    #[test]
    fn without_a_host_the_agents_word_counts_until_a_cancel_was_written() {
        check(&settled(Some("end_turn"), None, None), "completed end_turn", "cancelled (end_turn)");
        check(&settled(Some("refusal"), None, None), "completed refusal", "cancelled (refusal)");
        check(&settled(Some("cancelled"), None, None), "cancelled (cancelled)", "cancelled (cancelled)");
    }

    #[test]
    fn the_hosts_word_counts_more_than_a_cancel() {
        let completed = Some(HostWord::Completed);
        check(&settled(Some("end_turn"), completed, None), "completed end_turn", "completed end_turn");
        check(&settled(None, completed, None), "completed unspecified", "completed unspecified");
        check(&settled(Some("x"), completed, Some("end_turn")), "completed end_turn", "completed end_turn");
        let cancelled = Some(HostWord::Cancelled);
        check(&settled(Some("cancelled"), cancelled, Some("end_turn")), "cancelled (end_turn)", "cancelled (end_turn)");
        check(&settled(Some("cancelled"), cancelled, None), "cancelled (-)", "cancelled (-)");
    }

    #[test]
    fn an_error_after_a_cancel_is_a_cancelled_turn_unless_the_host_says_it() {
        check(&failed(false), "error -1", "cancelled (-)");
        check(&failed(true), "error -1", "error -1");
    }

    #[test]
    fn a_cancelled_turn_whose_agent_had_to_be_ended_is_cancelled() {
        check(&Answer::replaced(), "error agent_replaced", "cancelled (-)");
        assert!(!Answer::replaced().is_last(), "another agent is in its place");
    }

    #[test]
    fn only_the_hosts_own_word_for_its_end_is_its_last() {
        let failed = |code: &str, from_host| {
            Answer::Failed { message: "no".into(), code: code.into(), from_host, input_written: None }.is_last()
        };
        for code in LAST_WORDS {
            assert!(failed(code, true), "{code}");
            assert!(!failed(code, false), "an agent may say {code} and live");
        }
        assert!(!failed("transcript_unwritable", true));
        assert!(!settled(Some("channel_closed"), None, None).is_last());
    }

    #[test]
    fn an_answer_that_says_nothing_is_no_success() {
        check(&settled(None, None, None), "error no_stop_reason", "cancelled (-)");
    }
}
