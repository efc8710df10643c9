//! Where a session comes from.

/// Who made a session, in the words of whoever did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// What kind of caller.
    pub kind: String,
    /// Which one.
    pub id: Option<String>,
}
