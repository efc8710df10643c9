//! Which session a message of an agent is about.

use crate::Message;
use crate::field::{raw_at, string_at};

/// Whose words a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It names the agent's session.
    Own,
    /// It names none, nothing that is a name, or the session by a name that only its client gives it.
    Unclear,
    /// It names another one: a subagent's, say.
    Other,
}

impl Message {
    /// Whose words a request or a notification carries, to whoever has the agent's session under this name and calls it `ours`.
    #[must_use]
    pub fn whose(&self, agent_session: &str, ours: &str) -> Whose {
        let params = self.params().unwrap_or("{}");
        match string_at(params, &["sessionId"]) {
            Some(named) if named == agent_session => Whose::Own,
            Some(named) if named == ours => Whose::Unclear,
            Some(_) => Whose::Other,
            None => Whose::Unclear,
        }
    }

    /// The tool call that a request for permission is about; none where the request gives nothing to choose from.
    #[must_use]
    pub fn asked_call(&self) -> Option<&str> {
        let params = self.params()?;
        raw_at(params, &["options"]).filter(|options| options.starts_with('['))?;
        raw_at(params, &["toolCall"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_their_sessions_only_where_they_say_so() {
        let whose = |named: &str| {
            let line = format!(r#"{{"method":"session/update","params":{{{named}}}}}"#);
            Message::parse(line.into()).unwrap().whose("ses", "ours")
        };
        assert_eq!(whose(r#""sessionId":"s\u0065s""#), Whose::Own);
        assert_eq!(whose(r#""sessionId":"other""#), Whose::Other);
        for unclear in ["", r#""sessionId":null"#, r#""sessionId":7"#, r#""sessionId":"ours""#] {
            assert_eq!(whose(unclear), Whose::Unclear, "{unclear}");
        }
    }
}
