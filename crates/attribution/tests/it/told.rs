//! A story told to a session's files, and a verdict told in the words of a story.

use attribution::strategies::{Remains, Story};
use attribution::{Basis, Settled, Withheld};
use ledger::{Fact, Terminal};

use crate::files::Files;

/// A story from its notation.
pub(crate) fn story(notation: &str) -> Story {
    notation.parse().unwrap_or_else(|error| panic!("{notation}: {error}"))
}

/// What the story leaves on the disk; a file that nothing was written to is not there.
pub(crate) fn files(remains: &Remains) -> Files {
    let file = |bytes: &Vec<u8>| Some(bytes.clone()).filter(|bytes| !bytes.is_empty());
    Files::with(file(&remains.ledger).as_deref(), file(&remains.transcript).as_deref())
}

/// What is said of the open prompts of these files.
pub(crate) fn verdict(files: &Files) -> String {
    let verdict = files.plan().verdict;
    words(&verdict.settled, verdict.withheld)
}

/// `A completed`, `A interrupted (open call)`, `A result failed boom` for each ending, then the reason for the rest.
pub(crate) fn words(settled: &[Settled], withheld: Option<Withheld>) -> String {
    let reason = withheld.map(|withheld| withheld.to_string());
    let words: Vec<_> = settled.iter().map(ending).chain(reason).collect();
    words.join("; ")
}

fn ending(settled: &Settled) -> String {
    let Fact::Terminal { terminal, code, stop_reason } = &settled.fact else { panic!("{settled:?}") };
    let id = &settled.prompt_id;
    let detail = code.as_ref().or(stop_reason.as_ref()).map(|detail| format!(" {detail}")).unwrap_or_default();
    match (settled.basis, terminal) {
        (Basis::TurnResult, Terminal::Error) => format!("{id} result failed{detail}"),
        (Basis::TurnResult, terminal) => format!("{id} result {}{detail}", terminal.as_str()),
        (Basis::Answer, terminal) => format!("{id} {}", terminal.as_str()),
        (Basis::OpenPrompt, terminal) => format!("{id} {} (open prompt)", terminal.as_str()),
        (Basis::OpenCall, terminal) => format!("{id} {} (open call)", terminal.as_str()),
        (Basis::Wish, terminal) => format!("{id} {} (wish)", terminal.as_str()),
        (Basis::CallWithoutId, terminal) => format!("{id} {} (blind call)", terminal.as_str()),
    }
}

/// The lines that such words stand for in the ledger, as they must be written byte for byte.
pub(crate) fn lines(words: &str, at_ms: u64) -> String {
    let line = |ending: &str| {
        let (id, how) = ending.split_once(' ')?;
        let how: Vec<_> = how.split(' ').collect();
        let terminal = match how[..] {
            ["completed"] => r#""completed","stopReason":"reconstructed_from_transcript""#.to_owned(),
            ["interrupted", ..] => r#""interrupted","code":"daemon_lost""#.to_owned(),
            ["result", "completed", stop_reason] => format!(r#""completed","stopReason":"{stop_reason}""#),
            ["cancelled", "(wish)"] | ["result", "cancelled"] => r#""cancelled""#.to_owned(),
            ["result", "failed", code] => format!(r#""error","code":"{code}""#),
            _ => panic!("no ending: {ending}"),
        };
        Some(format!("{{\"v\":1,\"promptId\":\"{id}\",\"terminal\":{terminal},\"at\":{at_ms}}}\n"))
    };
    words.split("; ").filter_map(line).collect()
}
