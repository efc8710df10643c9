//! Another daemon takes the ledger in: it admits prompts, ends some, dies without warning in the middle of a line, and
//! finds out in its next life what was open. `cargo run -p turnd-ledger --example embed`
//!
//! The daemon's first life is this program started a second time, so that it can really die.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use turnd_ledger::{Durability, Ledger, Record, dangling, recent_terminals};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args_os().nth(1) {
        return first_life(Path::new(&path));
    }
    let folder = std::env::temp_dir().join(format!("turnd-ledger-embed-{}", std::process::id()));
    let path = folder.join("session-1.ledger.jsonl");
    let died = Command::new(std::env::current_exe()?).arg(&path).status()?;
    println!("the first life ended with {died}\n");
    second_life(path)?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Admit, end, admit, admit, die.
fn first_life(path: &Path) -> Result<(), Box<dyn Error>> {
    let ledger = Ledger::new(path, Durability::Fsync);
    // The admission is on disk before the prompt is handed to anybody and before the caller is told.
    ledger.append(&Record::in_flight("prompt-1", None, now_ms()?))?;
    // The ending is on disk before it is published.
    ledger.append(&Record::completed("prompt-1", "end_turn", now_ms()?))?;
    ledger.append(&Record::in_flight("prompt-2", None, now_ms()?))?;
    ledger.append(&Record::in_flight("prompt-3", None, now_ms()?))?;
    // A crash inside the write of prompt-2's ending: half a line, and nobody left to finish it.
    let half = br#"{"v":1,"promptId":"prompt-2","terminal":"comp"#;
    OpenOptions::new().append(true).open(path)?.write_all(half)?;
    std::process::abort();
}

/// Reopen, ask what was open, and settle what there is evidence for.
fn second_life(path: PathBuf) -> Result<(), Box<dyn Error>> {
    let ledger = Ledger::new(path, Durability::Fsync);
    let reading = ledger.read()?;
    println!("{} records, {} torn line", reading.records.len(), reading.dropped_lines);
    let mut proven = Vec::new();
    for id in dangling(&reading.records) {
        match stop_reason_on_record(id) {
            Some(stop_reason) => proven.push(Record::completed(id, stop_reason, now_ms()?)),
            None => println!("{id} was open and stays so: to say nothing is honest, to guess is not"),
        }
    }
    // Only while the ledger is as it was read: what was appended since may contradict the evidence.
    ledger.append_if_unchanged(&proven, reading.len_bytes)?;
    println!("\nwhat a caller who comes back is told:");
    for record in recent_terminals(&ledger)? {
        println!("  {}", record.to_line());
    }
    println!("\nthe file, with the torn line sealed:\n{}", std::fs::read_to_string(ledger.path())?);
    Ok(())
}

/// Stands for what this daemon's agent wrote down itself, under the id of the prompt.
fn stop_reason_on_record(prompt_id: &str) -> Option<&'static str> {
    (prompt_id == "prompt-2").then_some("end_turn")
}

#[expect(clippy::disallowed_methods, reason = "the shell of this small daemon: its only clock")]
fn now_ms() -> Result<u64, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis().try_into()?)
}
