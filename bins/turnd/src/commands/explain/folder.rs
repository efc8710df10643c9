//! Every session below a folder: what is open in which of them, and how many there are of each kind.

use std::fmt;
use std::io;
use std::path::Path;

use attribution::{Standing, printable, printable_path};
use serde_json::{Value, json};
use transcript::LockError;

use super::files::Files;
use super::ledgers::Ledgers;
use super::{Outcome, Told, apply, failed, lock};
use crate::cli::ExplainArgs;
use crate::output::line;

/// Explains every session below `folder`, one after the other, and ends with the worst outcome.
pub(super) fn explain(folder: &Path, workspace: Option<&Path>, args: &ExplainArgs) -> Outcome {
    let mut tally = Tally { is_applied: args.apply, ..Tally::default() };
    let mut worst = Outcome::Known;
    for found in Ledgers::below(folder) {
        let outcome = match found.map(|path| Files::beside(&path, workspace)) {
            Ok(Some(files)) => visit(&files, args, &mut tally),
            Ok(None) => Ok(Outcome::Known),
            Err((folder, error)) => Ok(failed(&format!("{}: {error}", printable_path(&folder)))),
        };
        match outcome {
            Ok(outcome) => worst = worst.max(outcome),
            Err(error) => return failed(&error.to_string()),
        }
    }
    match (!args.json).then(|| line(&tally)) {
        Some(Err(error)) => failed(&error.to_string()),
        _ => worst,
    }
}

/// Explains one of them. Fails when nobody reads what is printed.
fn visit(files: &Files, args: &ExplainArgs, tally: &mut Tally) -> io::Result<Outcome> {
    let standing = attribution::plan(&files.session()).standing();
    // A lock that nobody ever took is not made for a session in which there is nothing to append.
    let is_held =
        args.apply && (standing == Standing::Resolvable || standing == Standing::Unknown && files.lock.exists());
    let lock = match is_held.then(|| lock(files)).transpose() {
        Ok(lock) => lock,
        Err(LockError::Held { owner, .. }) => {
            let holder = owner.map_or_else(|| "another process".to_owned(), |owner| format!("process {}", owner.pid));
            return skip(files, args, tally, &holder);
        }
        Err(LockError::Io { cause, path }) => {
            tally.failed += 1;
            return Ok(failed(&format!("{}: {cause}", printable_path(&path))));
        }
    };
    // Read only now, under the lock: what is printed is what is appended.
    let told = Told::of(&files.session(), args.json);
    let (standing, mut outcome) = (told.plan.standing(), Outcome::of(&told.plan));
    if args.json {
        line(object(files, None, &told.text))?;
    } else if standing != Standing::NothingOpen {
        line(format_args!("{}\n{}\n", heading(files), told.text))?;
    }
    if lock.is_some() {
        outcome = outcome.max(apply(told.plan, files));
    }
    tally.count(standing, outcome);
    Ok(outcome)
}

/// Leaves a session alone that somebody writes: whoever has it live knows more than its files.
fn skip(files: &Files, args: &ExplainArgs, tally: &mut Tally, holder: &str) -> io::Result<Outcome> {
    tally.live += 1;
    if args.json {
        let told = Told::of(&files.session(), true);
        line(object(files, Some("live"), &told.text))?;
    } else {
        let session = printable(&files.session_id);
        line(format_args!("{}\nsession {session}: live and skipped, {holder} has it\n", heading(files)))?;
    }
    Ok(Outcome::Unknown)
}

fn heading(files: &Files) -> String {
    let archived = if files.is_archived { " (archived)" } else { "" };
    format!("{}{archived}", printable_path(files.ledger.path()))
}

/// The explanation's object with the session and its files in front.
fn object(files: &Files, skipped: Option<&str>, explanation: &str) -> String {
    let text = |path: &Path| json!(path.to_string_lossy());
    let skipped = skipped.map(|why| format!("\"skipped\":{},", json!(why))).unwrap_or_default();
    format!(
        "{{\"session\":{},\"ledger\":{},\"transcript\":{},\"workspace\":{},\"archived\":{},{skipped}{}",
        json!(files.session_id),
        text(files.ledger.path()),
        text(&files.transcript),
        files.known_workspace().map_or(Value::Null, text),
        files.is_archived,
        explanation.strip_prefix('{').unwrap_or(explanation),
    )
}

/// How many sessions there are of each kind.
#[derive(Debug, Default)]
struct Tally {
    nothing_open: usize,
    resolvable: usize,
    unknown: usize,
    /// That could not be read, or not be written.
    failed: usize,
    live: usize,
    is_applied: bool,
}

impl Tally {
    fn count(&mut self, standing: Standing, outcome: Outcome) {
        *match (standing, outcome) {
            (Standing::Unreadable, _) | (_, Outcome::Failed) => &mut self.failed,
            (Standing::NothingOpen, _) => &mut self.nothing_open,
            (Standing::Resolvable, _) => &mut self.resolvable,
            (Standing::Unknown, _) => &mut self.unknown,
        } += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nothing_open, resolvable, unknown, failed, live, is_applied } = self;
        let sessions = nothing_open + resolvable + unknown + failed + live;
        let plural = if sessions == 1 { "" } else { "s" };
        let word = if *is_applied { "resolved" } else { "resolvable" };
        write!(
            formatter,
            "{sessions} session{plural}: {nothing_open} nothing open, {resolvable} {word}, {unknown} unknown"
        )?;
        if *failed > 0 {
            write!(formatter, ", {failed} failed")?;
        }
        if *live > 0 {
            write!(formatter, ", {live} live and skipped")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_down_is_not_resolved() {
        let mut tally = Tally { is_applied: true, ..Tally::default() };
        tally.count(Standing::Resolvable, Outcome::Failed);
        tally.count(Standing::Resolvable, Outcome::Known);
        tally.count(Standing::Unreadable, Outcome::Failed);
        assert_eq!(tally.to_string(), "3 sessions: 0 nothing open, 1 resolved, 0 unknown, 2 failed");
    }

    #[test]
    fn one_session_is_no_plural_and_a_plan_resolves_nothing() {
        let mut tally = Tally::default();
        tally.count(Standing::Resolvable, Outcome::Known);
        assert_eq!(tally.to_string(), "1 session: 0 nothing open, 1 resolvable, 0 unknown");
    }
}
