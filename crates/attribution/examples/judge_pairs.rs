//! What a reconciliation says of many pairs of files: `cargo run -p turnd-attribution --example judge_pairs -- FOLDER`.
//!
//! Each folder in FOLDER is a pair: `ledger.jsonl` and `transcript.jsonl`, either of which may be missing, of one session
//! in one workspace. For each a line of JSON says what is appended and why the rest is withheld. The pairs themselves are
//! left as they are. `e2e/differential.py` compares the lines with those of another program.

#![expect(clippy::print_stdout, reason = "an example that tells")]

use std::error::Error;
use std::fs;
use std::path::Path;

use ledger::{Durability, Ledger, Record, recent_terminals};
use serde_json::{Value, json};
use turnd_attribution::{Session, reconcile};

/// The session of every pair.
const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
/// The workspace of every pair.
const WORKSPACE: &str = "/ws";
/// When every pair is judged, in epoch milliseconds: after everything that is written in any.
const NOW_MS: u64 = 1_999_999_999_999;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("which folder?")?;
    let mut names =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, std::io::Error>>()?;
    names.sort();
    for name in names {
        let mut line = judged(&Path::new(&folder).join(&name))?;
        line["id"] = json!(name.to_string_lossy());
        println!("{line}");
    }
    Ok(())
}

/// Judges a fresh copy of one pair, so that nothing leaks from one to the next.
fn judged(pair: &Path) -> Result<Value, Box<dyn Error>> {
    let copy = tempfile::tempdir()?;
    for file in ["ledger.jsonl", "transcript.jsonl"] {
        if pair.join(file).exists() {
            fs::copy(pair.join(file), copy.path().join(file))?;
        }
    }
    let ledger = Ledger::new(copy.path().join("ledger.jsonl"), Durability::Process);
    let transcript = copy.path().join("transcript.jsonl");
    let terminals = recent_terminals(&ledger)?;
    let session =
        Session { ledger: &ledger, transcript: &transcript, session_id: SESSION_ID, workspace: Path::new(WORKSPACE) };
    let outcome = reconcile(&session, NOW_MS);
    if let Some(failure) = outcome.failure {
        return Err(failure.into());
    }
    Ok(json!({
        "appended": outcome.appended.iter().map(untimed).collect::<Result<Vec<_>, _>>()?,
        "withheld": outcome.withheld.map(|withheld| withheld.as_str()),
        "tailUuid": transcript::tail_uuid(&transcript),
        "terminals": terminals.iter().map(value).collect::<Result<Vec<_>, _>>()?,
    }))
}

fn value(record: &Record) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&record.to_line())
}

/// A record without its time, which is each program's own.
fn untimed(record: &Record) -> Result<Value, serde_json::Error> {
    let mut value = value(record)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("at");
    }
    Ok(value)
}
