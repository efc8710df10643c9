//! What is known of an agent that is no more.

/// How an agent ended, for the messages that say so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Its exit status, when it exited.
    pub(crate) code: Option<i32>,
    /// The signal that killed it, when one did.
    pub(crate) signal: Option<i32>,
    /// The end of its standard error.
    pub(crate) stderr_tail: String,
    /// The end of its standard output, when it had not answered yet.
    pub(crate) stdout_tail: String,
}

impl Exit {
    /// What happened, as the end of a sentence that begins with "the agent".
    pub(crate) fn cause(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exited with status {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "closed its input or output".to_owned(),
        }
    }

    /// The cause with what the agent said last.
    pub(crate) fn details(&self) -> String {
        let mut details = format!("the agent {}", self.cause());
        for (name, tail) in [("standard error", &self.stderr_tail), ("standard output", &self.stdout_tail)] {
            if !tail.trim().is_empty() {
                details.push_str(&format!("; {name}: {}", tail.trim()));
            }
        }
        details
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_is_told_with_the_last_words() {
        let exit = Exit { code: Some(0), stderr_tail: "no key\n".to_owned(), ..Exit::default() };
        assert_eq!(exit.details(), "the agent exited with status 0; standard error: no key");
        let killed = Exit { signal: Some(9), ..Exit::default() };
        assert_eq!(killed.details(), "the agent was killed by signal 9");
        assert_eq!(Exit::default().details(), "the agent closed its input or output");
    }
}
