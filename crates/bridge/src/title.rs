//! What a session is called.

/// A session's name for people, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Title {
    /// The name.
    pub text: String,
    /// Who gave it: [`Title::MANUAL`] for a person, [`Title::AUTO`] for the agent.
    pub source: String,
}

impl Title {
    /// The source of a name that a client gave.
    pub const MANUAL: &str = "manual";
    /// The source of a name that an agent made up.
    pub const AUTO: &str = "auto";

    /// A name that the agent gave.
    pub(crate) fn of_agent(text: String) -> Self {
        Self { text, source: Self::AUTO.to_owned() }
    }

    /// Whether a person chose it. An agent's idea does not take its place.
    pub(crate) fn is_chosen(&self) -> bool {
        self.source == Self::MANUAL
    }
}
