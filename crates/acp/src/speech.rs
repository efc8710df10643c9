//! What an update is to the answer of a turn, and where that answer begins.
//!
//! Daemon and host each put an answer together, the one for whoever waits and the other for the transcript. Two readings would make two
//! answers of one turn, both of them certain; so both read by what stands here.

use std::collections::HashMap;

use crate::field::{raw_at, string_at};
use crate::subagent::of_subagent;

/// Tool calls of one turn that are told apart. Busy turns have some hundreds.
pub const TURN_CALLS_MAX: usize = 4_096;

/// An update as part of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speech {
    /// Text meant for the user, of the top level.
    Text(String),
    /// A tool call begins.
    ToolCall {
        /// Its id; empty where it has none.
        call_id: String,
    },
    /// A tool call goes on or (`over`) ends.
    ToolCallUpdate {
        /// Its id; empty where it has none.
        call_id: String,
        /// It has ended.
        over: bool,
    },
    /// A piece of a message that the agent takes for the user's.
    User {
        /// The message, if the agent gives it an id.
        message_id: Option<String>,
        /// Raw JSON text.
        content: String,
    },
    /// A piece of the agent's message of which nobody can tell what of the answer it is.
    Unclear,
    /// Anything else: thoughts, plans, what a tool's own agent says.
    Other,
}

impl Speech {
    /// Reads an update (the raw object at `params.update`).
    #[must_use]
    pub fn read(update: &str) -> Self {
        if of_subagent(update) {
            return Self::Other;
        }
        let kind = string_at(update, &["sessionUpdate"]).unwrap_or_default();
        match kind.as_str() {
            "agent_message_chunk" => Self::of_chunk(update),
            "user_message_chunk" => Self::User {
                message_id: string_at(update, &["messageId"]),
                content: raw_at(update, &["content"]).unwrap_or("null").to_owned(),
            },
            "tool_call" => Self::ToolCall { call_id: call_id(update) },
            "tool_call_update" => Self::of_call(update),
            _ => Self::Other,
        }
    }

    /// A text has its type, and what has another one is none. A content that cannot be told from a text is unclear; to say nothing at
    /// all is a way to tell what it cost.
    fn of_chunk(update: &str) -> Self {
        let Some(content) = raw_at(update, &["content"]).filter(|content| *content != "null") else {
            return Self::Other;
        };
        match string_at(content, &["type"]).as_deref() {
            Some("text") => string_at(content, &["text"]).map_or(Self::Unclear, Self::Text),
            Some(_) => Self::Other,
            None => Self::Unclear,
        }
    }

    fn of_call(call: &str) -> Self {
        let status = string_at(call, &["status"]);
        let over = matches!(status.as_deref(), Some("completed" | "failed" | "cancelled" | "canceled"));
        Self::ToolCallUpdate { call_id: call_id(call), over }
    }

    /// What it is that an agent asks permission for (the raw object at `params.toolCall`): news of a call that has a name.
    #[must_use]
    pub fn asked_about(call: &str) -> Self {
        if of_subagent(call) || call_id(call).is_empty() { Self::Other } else { Self::of_call(call) }
    }

    /// Whether it is a part of an answer, or lies between what was said and the answer. Agents also say nothing, to tell what it cost.
    #[must_use]
    pub fn is_words(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::ToolCall { .. } | Self::ToolCallUpdate { .. } | Self::Unclear => true,
            Self::User { .. } | Self::Other => false,
        }
    }
}

fn call_id(call: &str) -> String {
    string_at(call, &["toolCallId"]).unwrap_or_default()
}

/// The tool calls of one turn, as far as they say where its answer begins. What comes before a tool call is no answer (turn status seed).
#[derive(Debug, Default)]
pub struct Course {
    /// Those seen, and whether they ended.
    calls: HashMap<String, bool>,
}

/// What something that is said makes of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// It goes on.
    GoesOn,
    /// It begins behind this.
    BeginsAnew,
    /// Nobody can tell what of it is the answer. It goes on, and is certain no more.
    Unclear,
}

impl Course {
    /// Takes in what is said. An update may be the first sign of a call, or its end; both lie between what was said and the answer. Agents
    /// also repeat the state of a call that ended long ago, which must not cost the answer.
    pub fn hear(&mut self, speech: &Speech) -> Bearing {
        match speech {
            Speech::ToolCall { call_id } => {
                self.note(call_id, false);
                Bearing::BeginsAnew
            }
            Speech::ToolCallUpdate { call_id, over } => match self.calls.get(call_id) {
                Some(was_over) if *was_over || !over => Bearing::GoesOn,
                None if self.calls.len() >= TURN_CALLS_MAX => Bearing::Unclear,
                _ => {
                    self.note(call_id, *over);
                    Bearing::BeginsAnew
                }
            },
            Speech::Unclear => Bearing::Unclear,
            Speech::Text(_) | Speech::User { .. } | Speech::Other => Bearing::GoesOn,
        }
    }

    fn note(&mut self, call_id: &str, over: bool) {
        if self.calls.len() < TURN_CALLS_MAX || self.calls.contains_key(call_id) {
            self.calls.insert(call_id.to_owned(), over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_text_when_it_says_so_and_unclear_when_it_says_nothing() {
        let of = |content: &str| Speech::read(&format!(r#"{{"sessionUpdate":"agent_message_chunk"{content}}}"#));
        assert_eq!(of(r#","content":{"type":"text","text":"a"}"#), Speech::Text("a".into()));
        for other in ["", r#","content":null"#, r#","content":{"type":"image","text":"a"}"#] {
            assert_eq!(of(other), Speech::Other, "{other}");
        }
        for unclear in [
            r#"{"text":"a"}"#,
            r#"{"type":7,"text":"a"}"#,
            r#"{"type":"text"}"#,
            r#"{"type":"text","text":{}}"#,
            r#"[{"type":"text","text":"a"}]"#,
            r#""a""#,
        ] {
            assert_eq!(of(&format!(r#","content":{unclear}"#)), Speech::Unclear, "{unclear}");
        }
    }

    #[test]
    fn a_question_about_a_call_is_news_of_it_where_it_has_a_name() {
        let call = |call_id: &str, over| Speech::ToolCallUpdate { call_id: call_id.into(), over };
        assert_eq!(Speech::asked_about(r#"{"toolCallId":"c"}"#), call("c", false));
        assert_eq!(Speech::asked_about(r#"{"toolCallId":"c","status":"cancelled"}"#), call("c", true));
        for other in ["{}", "null", r#"{"toolCallId":7}"#, r#"{"toolCallId":"c","_meta":{"parentToolCallId":"p"}}"#] {
            assert_eq!(Speech::asked_about(other), Speech::Other, "{other}");
        }
    }

    #[test]
    fn calls_beyond_those_told_apart_leave_nobody_certain() {
        let mut course = Course::default();
        let goes_on = |call_id: usize| Speech::ToolCallUpdate { call_id: call_id.to_string(), over: true };
        for number in 0..TURN_CALLS_MAX {
            assert_eq!(course.hear(&goes_on(number)), Bearing::BeginsAnew);
        }
        assert_eq!(course.hear(&goes_on(0)), Bearing::GoesOn);
        assert_eq!(course.hear(&goes_on(TURN_CALLS_MAX)), Bearing::Unclear);
        assert_eq!(course.hear(&Speech::ToolCall { call_id: "new".into() }), Bearing::BeginsAnew);
    }
}
