//! What is expected stands in files: the cases of `cases/`, and `reports.txt`.
//!
//! `REWRITE_EXPECTED=1 cargo test -p turnd-attribution` writes what was found in its place; the difference is for a person
//! to judge.

/// Whether what is expected is to be written anew.
#[expect(clippy::disallowed_methods, reason = "the one wish that a person can have of these tests")]
pub(crate) fn is_to_be_rewritten() -> bool {
    std::env::var("REWRITE_EXPECTED").is_ok()
}
