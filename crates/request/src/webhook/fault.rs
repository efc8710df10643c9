//! Why a try did not deliver, as fixed words: nothing that a receiver says is passed on.

/// What became of a try that was no delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An answer with another status than 2xx. A redirect is one of these: it is never followed.
    Answered(u16),
    /// No whole answer in time.
    Timeout,
    /// The name is not known, or nobody takes the connection.
    Unreachable,
    /// The receiver's certificate does not prove who it is, or there is no common TLS.
    Tls,
    /// The connection ended, or what came was no HTTP, before the answer was whole.
    Torn,
    /// The daemon ended during the try.
    CutOff,
    /// The event was pruned before it could be read.
    Pruned,
}

impl Fault {
    /// The fixed word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Answered(410) => "gone",
            Self::Answered(300..=399) => "redirect",
            Self::Answered(_) => "status",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::Torn => "torn",
            Self::CutOff => "cut_off",
            Self::Pruned => "pruned",
        }
    }

    /// The status, where there was an answer.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        if let Self::Answered(status) = self { Some(status) } else { None }
    }

    /// The fault that a word and a status are; none when they are of a newer program.
    #[must_use]
    pub fn parse(word: &str, status: Option<u16>) -> Option<Self> {
        let fault = match (word, status) {
            ("gone" | "redirect" | "status", Some(status)) => Self::Answered(status),
            ("timeout", None) => Self::Timeout,
            ("unreachable", None) => Self::Unreachable,
            ("tls", None) => Self::Tls,
            ("torn", None) => Self::Torn,
            ("cut_off", None) => Self::CutOff,
            ("pruned", None) => Self::Pruned,
            _ => return None,
        };
        (fault.as_str() == word).then_some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_back_from_its_word_and_its_status() {
        use Fault::{Answered, CutOff, Pruned, Timeout, Tls, Torn, Unreachable};
        let all = [Answered(500), Answered(301), Answered(410), Timeout, Unreachable, Tls, Torn, CutOff, Pruned];
        for fault in all {
            assert_eq!(Fault::parse(fault.as_str(), fault.status()), Some(fault));
        }
        assert_eq!(Fault::parse("gone", Some(500)), None);
        assert_eq!(Fault::parse("timeout", Some(500)), None);
        assert_eq!(Fault::parse("status", None), None);
        assert_eq!(Fault::parse("", None), None);
    }
}
