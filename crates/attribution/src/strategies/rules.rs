//! What can happen in a world, and what is known to stay open in it.

/// What the programs of a world do, and what befalls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether the session stamps its user records with their prompts.
    pub stamps: bool,
    /// Whether a turn that did not end well has its result written before what it had said. The other order is that of
    /// writers that record an answer as it comes.
    pub writes_result_first: bool,
    /// Whether every admission carries its dispatch marker. Else some do.
    pub marks_always: bool,
    /// Whether the clock is set back and forward now and then.
    pub clock_steps: bool,
    /// Whether ledger lines are lost without anybody's stopping for it.
    pub loses_lines: bool,
    /// Whether the next prompt is dispatched while a turn that ran into its deadline still writes.
    pub overlaps: bool,
    /// Whether the session's writer outlives its daemon.
    pub lingers: bool,
    /// Whether a client's cancel of a running prompt is in the ledger before the agent hears of it. Else it is nowhere.
    pub wishes: bool,
    /// Who else writes into the transcript.
    pub second: Second,
}

/// Another program that writes into the same transcript, and knows nothing of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Second {
    /// None: the session's lock is held.
    Nobody,
    /// One that stamps its prompts: another daemon's.
    Stamped,
    /// One that does not: a person at a terminal.
    Unstamped,
    /// The session itself, for work that was scheduled: its questions are marked as its own.
    Session,
}

impl Rules {
    /// The world of this daemon: every prompt is stamped, by a second daemon's session too, and whatever else can happen,
    /// happens. No verdict may be wrong here.
    pub const STAMPED: Self = Self {
        stamps: true,
        writes_result_first: true,
        marks_always: false,
        clock_steps: true,
        loses_lines: false,
        overlaps: true,
        lingers: true,
        wishes: false,
        second: Second::Stamped,
    };

    /// The same, where the ledger loses lines and therefore no turn may be overtaken.
    pub const STAMPED_LOSSY: Self = Self { loses_lines: true, overlaps: false, ..Self::STAMPED };

    /// The world of the design: nothing is stamped, but the clock goes forward, no line is lost, and there is one writer, which
    /// dies with its daemon. No verdict may be wrong here either.
    pub const UNSTAMPED: Self = Self {
        stamps: false,
        writes_result_first: true,
        marks_always: false,
        clock_steps: false,
        loses_lines: false,
        overlaps: true,
        lingers: false,
        wishes: false,
        second: Second::Nobody,
    };

    /// The same world, where wishes to cancel are in the ledger and clients cancel more.
    #[must_use]
    pub const fn with_wishes(self) -> Self {
        Self { wishes: true, ..self }
    }
}

/// A class of worlds in which a verdict can be wrong, because nothing in the two files tells them from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residual {
    /// A person at a terminal wrote a turn into the session after the admission, and the prompt's own turn wrote nothing.
    UnstampedSecondWriter,
    /// The session began a turn by itself after the admission, and the prompt's own turn wrote nothing.
    SessionsOwnTurn,
    /// A writer recorded what a turn had said before it recorded that the turn was cancelled or had failed.
    AnswerBeforeOutcome,
    /// A prompt of which the ledger lost every line ran past its deadline, and wrote into the next one's turn.
    UnrecordedOverlap,
    /// Nothing is stamped, and the clock was set back; not even markers help a prompt that waited behind another one's turn.
    ClockSetBack,
    /// Nothing is stamped, and the ledger lost the lines of an earlier prompt.
    LostLine,
    /// Nothing is stamped, and an earlier prompt's writer went on after its daemon had gone.
    LingeringWriter,
}

impl Residual {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::UnstampedSecondWriter,
        Self::SessionsOwnTurn,
        Self::AnswerBeforeOutcome,
        Self::UnrecordedOverlap,
        Self::ClockSetBack,
        Self::LostLine,
        Self::LingeringWriter,
    ];

    /// The rules of a closed world, with the one thing changed that opens it.
    #[must_use]
    pub fn rules(self) -> Rules {
        match self {
            Self::UnstampedSecondWriter => Rules { second: Second::Unstamped, ..Rules::STAMPED },
            Self::SessionsOwnTurn => Rules { second: Second::Session, ..Rules::STAMPED },
            Self::AnswerBeforeOutcome => Rules { writes_result_first: false, ..Rules::STAMPED },
            Self::UnrecordedOverlap => Rules { loses_lines: true, ..Rules::STAMPED },
            Self::ClockSetBack => Rules { clock_steps: true, marks_always: true, ..Rules::UNSTAMPED },
            Self::LostLine => Rules { loses_lines: true, marks_always: true, ..Rules::UNSTAMPED },
            Self::LingeringWriter => Rules { lingers: true, marks_always: true, ..Rules::UNSTAMPED },
        }
    }
}
