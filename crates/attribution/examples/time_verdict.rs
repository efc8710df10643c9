//! How long a verdict on a given session takes: `time_verdict LEDGER TRANSCRIPT ROUNDS` prints the milliseconds of every
//! round, one a line, and the terminal that each gives. `e2e/load_cost.py` compares them with those of another program.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example that measures and tells")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ledger::{Durability, Ledger};
use turnd_attribution::{Session, plan};

/// The session and the workspace of the file that is judged.
const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
const WORKSPACE: &str = "/ws";

fn main() -> Result<(), Box<dyn Error>> {
    let [ledger, transcript, rounds] = &std::env::args_os().skip(1).collect::<Vec<_>>()[..] else {
        return Err("LEDGER TRANSCRIPT ROUNDS".into());
    };
    let transcript = PathBuf::from(transcript);
    let rounds: usize = rounds.to_str().ok_or("how many rounds?")?.parse()?;
    for _ in 0..rounds {
        let start = Instant::now();
        let ledger = Ledger::new(ledger, Durability::Process);
        let session = Session {
            ledger: &ledger,
            transcript: &transcript,
            session_id: SESSION_ID,
            workspace: Path::new(WORKSPACE),
        };
        let verdict = plan(&session).verdict;
        let millis = start.elapsed().as_secs_f64() * 1000.0;
        let [settled] = &verdict.settled[..] else { return Err(format!("{verdict:?}").into()) };
        let terminal = settled.record(0).terminal().ok_or("no terminal")?;
        println!("{millis:.3} {}", terminal.as_str());
    }
    Ok(())
}
