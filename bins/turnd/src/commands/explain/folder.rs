//! Every session below a folder: what is open in which of them, and how many there are of each kind.

use std::fmt;
use std::io;
use std::path::Path;

use attribution::{Standing, printable, printable_path};
use serde_json::{Value, json};
use transcript::LockError;

use super::files::Files;
use super::ledgers::Ledgers;
use super::told::Told;
use super::{Outcome, apply, complain, failed, said, unprinted};
use crate::cli::ExplainArgs;
use crate::output::line;

/// Explains every session below `folder`, one after the other, and ends with the worst outcome.
pub(super) fn explain(folder: &Path, workspace: Option<&Path>, args: &ExplainArgs) -> Outcome {
    let mut tally = Tally { is_applied: args.apply, ..Tally::default() };
    let mut worst = Outcome::Known;
    let mut ledgers = Ledgers::below(folder);
    for found in &mut ledgers {
        let outcome = match found.map(|path| Files::beside(&path, workspace)) {
            Ok(Some(files)) => visit(&files, args, &mut tally),
            Ok(None) => Ok(Outcome::Known),
            Err((folder, error)) => Ok(failed(&format!("{}: {error}", printable_path(&folder)))),
        };
        match outcome {
            Ok(outcome) => worst = worst.max(outcome),
            Err(error) => return unprinted(&error),
        }
    }
    tally.links = ledgers.links_left_out();
    if args.json {
        if tally.links > 0 {
            complain(&Links(tally.links).to_string());
        }
        return worst;
    }
    line(&tally).map_or_else(|error| unprinted(&error), |()| worst)
}

/// Explains one of them. Fails when nobody reads what is printed.
fn visit(files: &Files, args: &ExplainArgs, tally: &mut Tally) -> io::Result<Outcome> {
    let (told, applied) = match look(files, args) {
        Ok(told) => told,
        Err(error) => {
            tally.failed += 1;
            return Ok(match error {
                LockError::Io { cause, path } => failed(&format!("{}: {cause}", printable_path(&path))),
                held @ LockError::Held { .. } => failed(&held.to_string()),
            });
        }
    };
    let standing = told.plan().standing();
    let is_open = standing != Standing::NothingOpen;
    // Whoever has a session live knows more than its files: it is left alone.
    let skipped = told.holder().filter(|_| args.apply && is_open);
    if args.json {
        line(object(files, skipped.as_ref().map(|_| "live"), &told.to_string()))?;
    } else if let Some(holder) = skipped {
        let session = printable(&files.session_id);
        line(format_args!("{}\nsession {session}: live and skipped, {holder} has it\n", heading(files)))?;
    } else if is_open {
        line(format_args!("{}\n{told}\n", heading(files)))?;
    }
    let outcome = said(&told, files).max(applied);
    tally.count(standing, outcome, told.is_live());
    Ok(outcome)
}

/// Reads one of them, and with `--apply` appends what it gives. A lock that nobody ever took is not made for a session in
/// which there is nothing to append.
fn look(files: &Files, args: &ExplainArgs) -> Result<(Told, Outcome), LockError> {
    let told = Told::unheld(files, args.json)?;
    if !args.apply || told.is_live() || told.plan().verdict.settled.is_empty() {
        return Ok((told, Outcome::Known));
    }
    // Read again under the lock: what is told is what is appended.
    match apply(files, args.json) {
        Err(LockError::Held { owner, .. }) => Ok((told.live(owner), Outcome::Known)),
        applied => applied,
    }
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
    /// That another process has.
    live: usize,
    /// That were not followed.
    links: usize,
    is_applied: bool,
}

impl Tally {
    fn count(&mut self, standing: Standing, outcome: Outcome, is_live: bool) {
        *match (standing, outcome) {
            (Standing::Unreadable, _) | (_, Outcome::Failed) => &mut self.failed,
            _ if is_live => &mut self.live,
            (Standing::NothingOpen, _) => &mut self.nothing_open,
            (Standing::Resolvable, _) => &mut self.resolvable,
            (Standing::Unknown, _) => &mut self.unknown,
        } += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nothing_open, resolvable, unknown, failed, live, links, is_applied } = self;
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
            write!(formatter, ", {live} live{}", if *is_applied { " and skipped" } else { "" })?;
        }
        if *links > 0 {
            write!(formatter, ", {}", Links(*links))?;
        }
        Ok(())
    }
}

/// How many links were not followed, in words.
struct Links(usize);

impl fmt::Display for Links {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} link{} left out", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_written_down_is_not_resolved() {
        let mut tally = Tally { is_applied: true, ..Tally::default() };
        tally.count(Standing::Resolvable, Outcome::Failed, false);
        tally.count(Standing::Resolvable, Outcome::Known, false);
        tally.count(Standing::Unreadable, Outcome::Failed, false);
        assert_eq!(tally.to_string(), "3 sessions: 0 nothing open, 1 resolved, 0 unknown, 2 failed");
    }

    #[test]
    fn one_session_is_no_plural_and_a_plan_resolves_nothing() {
        let mut tally = Tally::default();
        tally.count(Standing::Resolvable, Outcome::Known, false);
        assert_eq!(tally.to_string(), "1 session: 0 nothing open, 1 resolvable, 0 unknown");
    }
}
