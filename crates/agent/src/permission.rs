//! Asking before a tool runs, and understanding the answer.

use acp::schema::{PermissionOption, PermissionOptionKind};
use acp::{RpcError, string_at};

use crate::ending::Cancelled;

/// What the agent may do with a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Allow,
    Reject,
}

/// A decision that holds for the rest of the session.
pub(crate) type Standing = Decision;

/// What the client chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) decision: Decision,
    /// Whether not to ask again.
    pub(crate) always: bool,
}

/// Option id, what a person reads, kind, and what choosing it means.
const OPTIONS: [(&str, &str, PermissionOptionKind, Choice); 4] = {
    use Decision::{Allow, Reject};
    use PermissionOptionKind as Kind;
    const fn choice(decision: Decision, always: bool) -> Choice {
        Choice { decision, always }
    }
    [
        ("allow_once", "Allow", Kind::AllowOnce, choice(Allow, false)),
        ("allow_always", "Always allow in this session", Kind::AllowAlways, choice(Allow, true)),
        ("reject_once", "Reject", Kind::RejectOnce, choice(Reject, false)),
        ("reject_always", "Always reject in this session", Kind::RejectAlways, choice(Reject, true)),
    ]
};

/// The options as the client sees them.
pub(crate) fn options() -> Vec<PermissionOption> {
    OPTIONS.iter().map(|(id, name, kind, _)| PermissionOption::new(*id, *name, *kind)).collect()
}

/// Reads the client's answer. What is neither a known option nor a cancel rejects this once: a tool
/// runs only when it was plainly allowed.
pub(crate) fn choice(answer: &Result<String, RpcError>) -> Result<Choice, Cancelled> {
    let rejected = Choice { decision: Decision::Reject, always: false };
    let Ok(result) = answer else { return Ok(rejected) };
    if string_at(result, &["outcome", "outcome"]).as_deref() == Some("cancelled") {
        return Err(Cancelled);
    }
    let chosen = string_at(result, &["outcome", "optionId"]);
    let known = OPTIONS.iter().find(|(id, ..)| chosen.as_deref() == Some(id));
    Ok(known.map_or(rejected, |(.., choice)| *choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Option<(Decision, bool)>) {
        let read = choice(&Ok(answer.to_owned())).ok().map(|choice| (choice.decision, choice.always));
        assert_eq!(read, expected, "{answer}");
    }

    #[test]
    fn each_option_means_what_it_says() {
        for (option, expected) in [
            ("allow_once", (Decision::Allow, false)),
            ("allow_always", (Decision::Allow, true)),
            ("reject_once", (Decision::Reject, false)),
            ("reject_always", (Decision::Reject, true)),
        ] {
            check(&format!(r#"{{"outcome":{{"outcome":"selected","optionId":"{option}"}}}}"#), Some(expected));
        }
    }

    #[test]
    fn a_cancel_is_a_cancel() {
        check(r#"{"outcome":{"outcome":"cancelled"}}"#, None);
    }

    #[test]
    fn anything_else_rejects_this_once() {
        let rejected = Some((Decision::Reject, false));
        check(r#"{"outcome":{"outcome":"selected","optionId":"made up"}}"#, rejected);
        check(r#"{"outcome":{"outcome":"selected"}}"#, rejected);
        check("null", rejected);
        let error = choice(&Err(RpcError::new(-32601, "unknown method")));
        assert_eq!(error.ok().map(|choice| choice.decision), Some(Decision::Reject));
    }

    #[test]
    fn every_kind_is_offered_once() {
        let kinds: Vec<PermissionOptionKind> = options().into_iter().map(|option| option.kind).collect();
        assert_eq!(kinds.len(), 4);
        assert!((1..4).all(|n| !kinds[..n].contains(&kinds[n])));
    }
}
