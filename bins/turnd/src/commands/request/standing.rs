//! How a request stands: what a command that waits for it has to know.

use serde_json::Value;

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may still become anything.
    Pending,
    /// It ended with the agent's final message.
    Completed,
    /// It ended without one.
    Otherwise,
}

impl Standing {
    /// Reads it off a request; nothing where the state is none that this program knows, which is told and not guessed (return request
    /// rules, section 2.15).
    pub(super) fn of(request: &Value) -> Option<Self> {
        match request["state"].as_str()? {
            "registered" | "submitted" | "bound" => Some(Self::Pending),
            "completed" => Some(Self::Completed),
            "aborted" | "timed_out" | "cancelled" | "delivery_failed" | "indeterminate" => Some(Self::Otherwise),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_state_of_the_rules_stands_somewhere_and_another_one_nowhere() {
        for (states, expected) in [
            (&["registered", "submitted", "bound"][..], Some(Standing::Pending)),
            (&["completed"], Some(Standing::Completed)),
            (&["aborted", "timed_out", "cancelled", "delivery_failed", "indeterminate"], Some(Standing::Otherwise)),
            (&["", "Completed", "done"], None),
        ] {
            for state in states {
                assert_eq!(Standing::of(&json!({"state": state})), expected, "{state}");
            }
        }
        assert_eq!(Standing::of(&json!({})), None);
    }
}
