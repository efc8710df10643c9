//! What an agent takes for its user's words (the *echo* of a prompt): whether it is what was asked.
//!
//! Daemon and host both judge it, each with the prompt as it has it, so that the answer is the same whoever of them is left to tell.

/// Pieces of messages which the agent takes for the user's that are heard in one turn: an echo of a prompt has a piece for each of its
/// blocks, and an agent that says more of them tells nothing new.
pub const ECHO_PIECES_MAX: usize = 64;

/// What an echo comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echoed {
    /// There was none, or it was cut off by the bound of what is heard.
    Unknown,
    /// It is what was asked.
    Agrees,
    /// It is something else.
    Differs,
    /// There was more than one message.
    Several,
}

/// The echo of one prompt, without its texts.
#[derive(Debug, Default)]
pub struct Echo {
    message_id: Option<String>,
    pieces: usize,
    has_second: bool,
}

impl Echo {
    /// Takes a piece in, of the message that it names.
    pub fn take(&mut self, message_id: Option<&str>) {
        if self.pieces == 0 {
            self.message_id = message_id.map(str::to_owned);
        }
        self.has_second |= self.message_id.as_deref() != message_id;
        self.pieces += 1;
    }

    /// What all of it comes to, where `agrees` says whether its texts are the prompt's, all of them one behind the other.
    #[must_use]
    pub fn echoed(&self, agrees: bool) -> Echoed {
        if self.pieces == 0 || self.pieces >= ECHO_PIECES_MAX {
            Echoed::Unknown
        } else if self.has_second {
            Echoed::Several
        } else if agrees {
            Echoed::Agrees
        } else {
            Echoed::Differs
        }
    }
}
