//! The ids of the prompts of requests: of a form that nobody else's prompt may have.
//!
//! A row is there before its prompt is in any ledger, and a crash may leave it at that. Were its prompt's id like any other, nothing but the
//! store could tell that it is taken, and not a store that is being opened, or is damaged, or has forgotten the row. The form tells it.

/// What each of them begins with.
const PREFIX: &str = "turnd-return-";

/// The prompt id that a unique word makes.
#[must_use]
pub fn prompt_id(unique: &str) -> String {
    format!("{PREFIX}{unique}")
}

/// Whether a prompt id is only a request's, of whatever store.
#[must_use]
pub fn is_prompt_id(text: &str) -> bool {
    text.starts_with(PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_made_here_is_known_by_its_form_alone() {
        assert_eq!(prompt_id("7"), "turnd-return-7");
        for ours in [&*prompt_id("7"), "turnd-return-", &prompt_id("lost-x")] {
            assert!(is_prompt_id(ours), "{ours}");
        }
        for other in ["", "7", "turnd-return", "return-7", "TURND-RETURN-7", "x-turnd-return-7"] {
            assert!(!is_prompt_id(other), "{other}");
        }
    }
}
