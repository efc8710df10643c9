//! What a verdict costs on a transcript of a given size: the time of each, and the most memory the process ever held.
//!
//! `cargo run --release -p turnd-attribution --example verdict_cost -- MEGABYTES [--huge-record]` writes a session of
//! that size, half of its bytes off the active branch, with an open prompt at its end, and judges it over and over.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example that measures and tells")]

use std::error::Error;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use ledger::{Durability, Ledger, Record};
use turnd_attribution::{Session, plan};

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";
const ROUNDS: usize = 51;
/// A tick of the system's accounting, in milliseconds, as every Linux of today has it.
const TICK_MS: f64 = 10.0;
const HUGE_RECORD_BYTES: usize = 300 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let megabytes: u64 = arguments.next().ok_or("how many megabytes?")?.parse()?;
    let has_huge_record = arguments.next().as_deref() == Some("--huge-record");
    let folder = tempfile::tempdir()?;
    let transcript = folder.path().join("s.jsonl");
    let ledger = Ledger::new(folder.path().join("s.ledger.jsonl"), Durability::Process);
    let marker = write_transcript(&transcript, megabytes * 1024 * 1024, has_huge_record)?;
    ledger.append(&Record::in_flight("p", Some(&marker), 1_795_977_220_000))?;

    let before = peak_kib();
    let cpu_before = cpu_ticks();
    let session =
        Session { ledger: &ledger, transcript: &transcript, session_id: SESSION_ID, workspace: Path::new("/ws") };
    let mut millis = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let verdict = plan(&session).verdict;
        millis.push(start.elapsed().as_secs_f64() * 1000.0);
        assert!(verdict.withheld.is_none(), "{verdict:?}");
    }
    let first = millis[0];
    millis.sort_by(f64::total_cmp);
    println!(
        "{megabytes} MiB: first {first:.1} ms, median {:.1} ms, slowest {:.1} ms, processor {:.1} ms each; \
         peak {} KiB before, {} KiB after",
        millis[ROUNDS / 2],
        millis[ROUNDS - 1],
        (cpu_ticks() - cpu_before) as f64 * TICK_MS / ROUNDS as f64,
        before,
        peak_kib()
    );
    Ok(())
}

/// Writes turns of about 20 KiB until there are enough bytes, and one more behind the marker that is given back.
fn write_transcript(path: &Path, bytes: u64, has_huge_record: bool) -> Result<String, Box<dyn Error>> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let mut written = 0;
    let mut turn = 0_u64;
    let mut parent = String::from("null");
    let text = "the quick brown fox says \\\"hello\\\" and jumps over the lazy dog\\n".repeat(150);
    while written < bytes {
        let start = parent.clone();
        for (index, kind) in ["user", "assistant", "user", "assistant"].iter().enumerate() {
            let uuid = format!("{turn:08}-{index}");
            let role = if *kind == "user" { "user" } else { "model" };
            let line = record(&uuid, &parent, kind, role, &text);
            written += line.len() as u64;
            file.write_all(line.as_bytes())?;
            parent = format!("\"{uuid}\"");
        }
        // Every other turn is rewound.
        if turn % 2 == 1 {
            parent = start;
        }
        turn += 1;
    }
    let marker = parent.trim_matches('"').to_owned();
    file.write_all(record("last-0", &parent, "user", "user", "q").as_bytes())?;
    let last = record("last-1", "\"last-0\"", "assistant", "model", "¤");
    let (before, behind) = last.split_once('¤').ok_or("no place for the text")?;
    file.write_all(before.as_bytes())?;
    // Written piece by piece, so that the measurement is not about writing it.
    for _ in 0..if has_huge_record { HUGE_RECORD_BYTES / text.len() } else { 1 } {
        file.write_all(text.as_bytes())?;
    }
    file.write_all(behind.as_bytes())?;
    file.into_inner()?.sync_all()?;
    Ok(marker)
}

fn record(uuid: &str, parent: &str, kind: &str, role: &str, text: &str) -> String {
    format!(
        "{{\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"{SESSION_ID}\",\"timestamp\":\"2026-11-29T18:33:41.000Z\",\
         \"type\":\"{kind}\",\"cwd\":\"/ws\",\"version\":\"0\",\"message\":{{\"role\":\"{role}\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}\n"
    )
}

/// Processor time this process has used, in the system's ticks.
fn cpu_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The most memory this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
