//! Whose words an update carries.

use crate::field::raw_at;

/// Where agents name the tool call below which a subagent runs, each in its own way.
const PARENTS: [&[&str]; 2] = [&["_meta", "parentToolCallId"], &["_meta", "claudeCode", "parentToolUseId"]];

/// Whether an update (the raw object at `params.update`) is of a subagent: what an agent started by a tool says and does belongs to that
/// tool's output and is no part of the turn's answer (turn status seed).
#[must_use]
pub fn of_subagent(update: &str) -> bool {
    parent_call(update).is_some()
}

/// The tool call below which an update happened, as the raw JSON that names it; none at the top.
#[must_use]
pub fn parent_call(update: &str) -> Option<&str> {
    PARENTS.iter().find_map(|path| raw_at(update, path).filter(|raw| *raw != "null"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_below_a_tool_call_is_a_subagents() {
        for meta in
            [r#"{"parentToolCallId":"c"}"#, r#"{"claudeCode":{"parentToolUseId":"c"}}"#, r#"{"parentToolCallId":7}"#]
        {
            assert!(of_subagent(&format!(r#"{{"sessionUpdate":"x","_meta":{meta}}}"#)), "{meta}");
        }
        for meta in ["null", "{}", r#"{"parentToolCallId":null}"#, r#"{"claudeCode":"parentToolUseId"}"#] {
            assert!(!of_subagent(&format!(r#"{{"sessionUpdate":"x","_meta":{meta}}}"#)), "{meta}");
        }
    }
}
