//! A usable record.

/// Whether system records of this subtype stand beside the branch: never anyone's parent, never its end (evidence
/// rules, section 2).
#[must_use]
pub fn is_off_branch_subtype(subtype: &str) -> bool {
    matches!(subtype, "session_artifact_event" | "session_artifact_snapshot" | "session_sources_snapshot")
        || subtype.starts_with("managed_session_")
}
