//! The explanation for a person.

use std::fmt;

use ledger::{Fact, Terminal};
use transcript::Classified;

use super::Explanation;
use crate::judge::{Basis, Settled};
use crate::withheld::Withheld;

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_files(formatter)?;
        let verdict = &self.plan.verdict;
        for settled in &verdict.settled {
            writeln!(formatter, "{}: {}, because {}", settled.prompt_id, ending(settled), because(settled.basis))?;
        }
        match verdict.withheld {
            None => Ok(()),
            Some(withheld @ (Withheld::NoDangling | Withheld::LedgerUnreadable)) => {
                writeln!(formatter, "{}", withheld.explanation())
            }
            Some(withheld) => {
                for prompt_id in self.unknown() {
                    writeln!(formatter, "{prompt_id}: stays unknown, because {} ({withheld})", withheld.explanation())?;
                }
                Ok(())
            }
        }
    }
}

impl Explanation {
    fn write_files(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reading) = &self.plan.reading {
            writeln!(formatter, "ledger: {} records, {} lines dropped", reading.records.len(), reading.dropped_lines)?;
        }
        match &self.projection {
            Some(uuids) => writeln!(formatter, "transcript: {} records on the active branch", uuids.len())?,
            None => writeln!(formatter, "transcript: none that loads")?,
        }
        match &self.classified {
            Some(Classified::Prompt { .. }) => writeln!(formatter, "history: ends with a prompt that was not answered"),
            Some(Classified::Turn { calls }) => {
                writeln!(formatter, "history: ends with {} calls that were not answered", calls.len())
            }
            Some(Classified::None) => writeln!(formatter, "history: nothing is left open"),
            None => Ok(()),
        }
    }

    /// The open prompts that nothing is said about.
    fn unknown(&self) -> impl Iterator<Item = &String> {
        let settled = &self.plan.verdict.settled;
        self.dangling.iter().filter(|id| settled.iter().all(|settled| settled.prompt_id != **id))
    }
}

fn ending(settled: &Settled) -> String {
    let Fact::Terminal { terminal, code, stop_reason } = &settled.fact else { return String::new() };
    let detail = code.as_ref().or(stop_reason.as_ref()).map(|detail| format!(" ({detail})")).unwrap_or_default();
    let word = match terminal {
        Terminal::Completed | Terminal::Cancelled | Terminal::Interrupted => terminal.as_str(),
        Terminal::Error => "failed",
    };
    format!("{word}{detail}")
}

fn because(basis: Basis) -> &'static str {
    match basis {
        Basis::TurnResult => "its own turn result says so",
        Basis::Answer => "the transcript ends with an answer",
        Basis::OpenPrompt => "the transcript ends with a prompt that was not answered",
        Basis::OpenCall => "the transcript ends with a call that was not answered",
        Basis::CallWithoutId => "the transcript ends with a call that nobody could have answered",
    }
}
