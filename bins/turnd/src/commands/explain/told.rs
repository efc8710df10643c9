//! What is told of one session: to a program all that is known, to a person what the verdict needs.

use std::fmt;

use attribution::{Explanation, Plan, Reconciliation, Report, Standing};
use transcript::{LockError, Owner, SessionLock};

use super::files::Files;
use super::{Outcome, now_ms};

/// What is told, with the plan it tells of.
pub(super) struct Told {
    look: Look,
    /// Another process has the session, under this name if it has one.
    holder: Option<Option<Owner>>,
}

enum Look {
    Person(Box<Report>),
    Program(Box<Explanation>),
}

impl Told {
    /// Reads the session's files as they are, for whoever holds its lock.
    pub(super) fn held(files: &Files, json: bool) -> Self {
        let session = files.session();
        let look = if json {
            Look::Program(Box::new(attribution::explain(&session)))
        } else {
            Look::Person(Box::new(attribution::report(&session)))
        };
        Self { look, holder: None }
    }

    /// The same without the lock, when it is only looked at: before the files are read, since whoever had the session then
    /// may have written since, and after it, since whoever has it now may have written meanwhile. Fails when nobody can
    /// tell whether the session is live.
    pub(super) fn unheld(files: &Files, json: bool) -> Result<Self, LockError> {
        let before = SessionLock::probe(&files.lock);
        let told = Self::held(files, json);
        match before.and_then(|()| SessionLock::probe(&files.lock)) {
            Ok(()) => Ok(told),
            Err(LockError::Held { owner, .. }) => Ok(told.live(owner)),
            Err(error @ LockError::Io { .. }) => Err(error),
        }
    }

    /// The same of a session that another process has.
    pub(super) fn live(self, owner: Option<Owner>) -> Self {
        let look = match self.look {
            Look::Person(report) => Look::Person(Box::new(report.live(owner.clone()))),
            Look::Program(explanation) => Look::Program(Box::new(Explanation { is_live: true, ..*explanation })),
        };
        Self { look, holder: Some(owner) }
    }

    /// Appends what the plan gives, under the lock, and tells of it.
    pub(super) fn apply(self, files: &Files) -> (Self, Reconciliation) {
        let done = self.plan().apply(&files.ledger, now_ms());
        let look = match self.look {
            Look::Person(report) => Look::Person(Box::new(report.applied(&done))),
            program @ Look::Program(_) => program,
        };
        (Self { look, ..self }, done)
    }

    pub(super) fn plan(&self) -> &Plan {
        match &self.look {
            Look::Person(report) => &report.plan,
            Look::Program(explanation) => &explanation.plan,
        }
    }

    /// Why the transcript is there and cannot be read.
    pub(super) fn error(&self) -> Option<&str> {
        match &self.look {
            Look::Person(report) => report.error.as_deref(),
            Look::Program(explanation) => explanation.error.as_deref(),
        }
    }

    /// Who else has the session, by pid if it has a name.
    pub(super) fn holder(&self) -> Option<String> {
        let owner = self.holder.as_ref()?;
        Some(owner.as_ref().map_or_else(|| "another process".to_owned(), |owner| format!("process {}", owner.pid)))
    }

    pub(super) fn is_live(&self) -> bool {
        self.holder.is_some()
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self.plan().standing() {
            _ if self.error().is_some() => Outcome::Failed,
            Standing::Unreadable => Outcome::Failed,
            Standing::NothingOpen => Outcome::Known,
            Standing::Resolvable if !self.is_live() => Outcome::Known,
            Standing::Resolvable | Standing::Unknown => Outcome::Unknown,
        }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.look {
            Look::Person(report) => formatter.write_str(report.to_string().trim_end()),
            Look::Program(explanation) => formatter.write_str(&explanation.to_json()),
        }
    }
}
