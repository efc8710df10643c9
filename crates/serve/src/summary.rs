//! The reduced form of a replay: what was said, and of tools that they ran (wire rules, section 7.3).

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};

/// What a tool was given and what it gave.
const DETAILS: [&str; 3] = ["content", "rawInput", "rawOutput"];

/// An object whose values are passed on as they are.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// An event without the details of tools. What is about no tool is left as it is.
pub(crate) fn reduced(frame: Bytes) -> Bytes {
    // Most events are about no tool, and need not be looked into.
    let is_of_tool = std::str::from_utf8(&frame).is_ok_and(|text| text.contains("\"tool_call"));
    let short = if is_of_tool { without_details(&frame) } else { None };
    short.map_or(frame, Bytes::from)
}

/// The event with a shorter update, whether that is its data or stands in it; none when it is about no tool.
fn without_details(frame: &[u8]) -> Option<String> {
    let mut envelope: Members<'_> = serde_json::from_slice(frame).ok()?;
    let mut data: Members<'_> = serde_json::from_str(envelope.get("data")?.get()).ok()?;
    let nested = data.get("update").and_then(|update| shorter(update.get()));
    let short = match &nested {
        Some(update) => {
            data.insert("update".to_owned(), update);
            to_raw_value(&data).ok()?
        }
        None => shorter(envelope.get("data")?.get())?,
    };
    envelope.insert("data".to_owned(), &short);
    serde_json::to_string(&envelope).ok()
}

/// An update about a tool without its details; none when it is about something else.
fn shorter(update: &str) -> Option<Box<RawValue>> {
    let mut members: Members<'_> = serde_json::from_str(update).ok()?;
    let is_of_tool = matches!(members.get("sessionUpdate")?.get(), "\"tool_call\"" | "\"tool_call_update\"");
    members.retain(|name, _| !DETAILS.contains(&name.as_str()));
    is_of_tool.then(|| to_raw_value(&members).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(event: &Value, expected: &Value) {
        let short = reduced(event.to_string().into());
        assert_eq!(serde_json::from_slice::<Value>(&short).unwrap(), *expected);
    }

    #[test]
    fn of_a_tool_it_is_said_that_it_ran() {
        let whole = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "status": "completed",
            "locations": [], "content": [1], "rawInput": {"a": 1}, "rawOutput": "x", "_meta": {"toolName": "ls"}});
        let short = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "status": "completed",
            "locations": [], "_meta": {"toolName": "ls"}});
        let event =
            |update: &Value| json!({"id": 1, "v": 1, "data": {"sessionId": "s", "update": update}, "promptId": "p"});
        check(&event(&whole), &event(&short));
        // A page's events are their updates.
        check(&json!({"v": 1, "data": whole}), &json!({"v": 1, "data": short}));
    }

    #[test]
    fn whatever_else_is_said_stays() {
        let text = json!({"id": 1, "data": {"update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "\"tool_call\""}}}});
        check(&text, &text);
        let asked =
            json!({"type": "permission_request", "data": {"toolCall": {"content": [1], "sessionUpdate": "tool_call"}}});
        check(&asked, &asked);
        let odd = Bytes::from_static(b"{\"tool_call\":");
        assert_eq!(reduced(odd.clone()), odd);
    }
}
