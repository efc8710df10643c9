//! One thing for the writer to do, and whom it tells.

use rusqlite::Connection;

use super::error::StoreError;
use crate::fail_points::FailPoints;

/// What becomes of a command while the store cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is answered with the trouble: nothing was sent yet, and whoever asked can ask again.
    Refusable,
    /// It is kept and tried again without limit: it is a fact, and whoever told it will not see it twice.
    Lasting,
}

/// Makes the line that is left of a command when the file takes nothing more.
pub(super) type MakeLine = Box<dyn Fn() -> String + Send>;
/// Makes the command that undoes one.
pub(super) type MakeUndo = Box<dyn Fn() -> Box<dyn Command> + Send>;

/// What a command works on: the open transaction of its batch.
pub(super) struct Turn<'t> {
    pub(super) conn: &'t Connection,
    pub(super) fail_points: &'t FailPoints,
    /// The last number that was given in this batch.
    pub(super) newest: Option<u64>,
}

/// A command as the writer sees it.
pub(super) trait Command: Send {
    /// What becomes of it while the store cannot write.
    fn keep(&self) -> Keep;
    /// The step it is, for the fail points.
    fn step(&self) -> &'static str;
    /// Does it. May be asked again, after the transaction was rolled back.
    fn run(&mut self, turn: &mut Turn<'_>) -> Result<(), StoreError>;
    /// The line that is left of it when the file takes no more at all.
    fn line(&self) -> Option<String>;
    /// What makes it as if it had never been, for when nobody knows whether it is in the file.
    fn undo(&self) -> Option<Box<dyn Command>>;
    /// Tells how it went: after the commit, or instead of it.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A command made of what it does and whom it tells.
pub(super) struct Job<T, W, R> {
    pub(super) keep: Keep,
    pub(super) step: &'static str,
    pub(super) work: W,
    pub(super) line: Option<MakeLine>,
    pub(super) undo: Option<MakeUndo>,
    pub(super) done: Option<T>,
    pub(super) reply: R,
}

impl<T, W, R> Job<T, W, R>
where
    W: FnMut(&mut Turn<'_>) -> Result<T, StoreError>,
{
    /// A command that may be refused.
    pub(super) const fn refusable(step: &'static str, work: W, reply: R) -> Self {
        Self { keep: Keep::Refusable, step, work, line: None, undo: None, done: None, reply }
    }

    /// A command that is kept until it is done.
    pub(super) const fn lasting(step: &'static str, work: W, reply: R) -> Self {
        Self { keep: Keep::Lasting, step, work, line: None, undo: None, done: None, reply }
    }
}

impl<T, W, R> Command for Job<T, W, R>
where
    T: Send,
    W: FnMut(&mut Turn<'_>) -> Result<T, StoreError> + Send,
    R: FnOnce(Result<T, StoreError>) + Send,
{
    fn keep(&self) -> Keep {
        self.keep
    }

    fn step(&self) -> &'static str {
        self.step
    }

    fn run(&mut self, turn: &mut Turn<'_>) -> Result<(), StoreError> {
        self.done = Some((self.work)(turn)?);
        Ok(())
    }

    fn line(&self) -> Option<String> {
        self.line.as_ref().map(|line| line())
    }

    fn undo(&self) -> Option<Box<dyn Command>> {
        self.undo.as_ref().map(|undo| undo())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Self { done, reply, .. } = *self;
        reply(outcome.and_then(|()| done.ok_or(StoreError::Closed)));
    }
}
