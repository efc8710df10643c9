//! What comes of the request to put another agent in the place of one that does not stop.

use acp::{Message, string_at};

/// The host's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Succession {
    /// The old agent's tree is gone and another process has the session.
    Done {
        /// What it remembers of the session, in the host's word: `resumed`, `loaded` or `fresh`.
        memory: Option<String>,
    },
    /// The agent is the old one, and goes on.
    Kept {
        /// For programs.
        code: String,
        /// For people.
        message: String,
    },
    /// The agent is the old one, and had stopped before the request came.
    Needless,
    /// The session has no agent any more.
    Lost,
}

/// Reads the host's answer. One that is not the host's comes from an agent that was passed the request and so still lives.
pub(crate) fn succession(message: &Message) -> Succession {
    let Some(error) = message.rpc_error() else {
        let memory = message.result().and_then(|result| string_at(result, &["_meta", "turnd/memory"]));
        return Succession::Done { memory };
    };
    let host_code = error.data.as_deref().and_then(|data| string_at(data, &["turnd/code"]));
    let message = error.details().unwrap_or_else(|| error.message.clone());
    match host_code.as_deref() {
        Some("turn_settled") => Succession::Needless,
        Some(code @ ("agent_cannot_restore" | "turn_in_progress")) => {
            Succession::Kept { code: code.to_owned(), message }
        }
        None => Succession::Kept { code: error.code.to_string(), message },
        Some(_) => Succession::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rest: &str, expected: Succession) {
        let message = Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#).into()).unwrap();
        assert_eq!(succession(&message), expected, "{rest}");
    }

    fn refused(code: &str) -> String {
        format!(r#""error":{{"code":-32000,"message":"no","data":{{"turnd/code":"{code}","details":"why"}}}}"#)
    }

    #[test]
    fn an_answer_says_what_the_new_agent_remembers() {
        let done = |memory: Option<&str>| Succession::Done { memory: memory.map(str::to_owned) };
        check(r#""result":{"_meta":{"turnd/memory":"fresh"}}"#, done(Some("fresh")));
        check(r#""result":null"#, done(None));
    }

    #[test]
    fn a_refusal_says_whether_there_is_still_an_agent() {
        let kept = |code: &str, message: &str| Succession::Kept { code: code.into(), message: message.into() };
        check(&refused("agent_cannot_restore"), kept("agent_cannot_restore", "why"));
        check(&refused("turn_settled"), Succession::Needless);
        for code in ["agent_unavailable", "channel_closed", "frame_too_long"] {
            check(&refused(code), Succession::Lost);
        }
        check(r#""error":{"code":-32601,"message":"no method"}"#, kept("-32601", "no method"));
    }
}
