//! What each reading of a transcript costs, shape by shape: its mean processor time, which is its time when nobody else
//! runs and the file is in the page cache, and the most memory the process ever held.
//!
//! `cargo run --release -p turnd-attribution --example reading_cost -- [SHAPE…]` writes one file for each shape, measures
//! every reading of it in a process of its own, and prints a row of a table. Without a shape it measures all of them.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example that measures and tells")]

mod shapes;

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ledger::{Durability, Ledger, Record};
use shapes::{SESSION_ID, SHAPES, Shape};
use transcript::display::{Bounds, replay_within};
use turnd_attribution::{Session, plan};

/// How long one reading is measured, unless a single one takes longer.
const BUDGET: Duration = Duration::from_millis(500);
/// What a load shows at most, in bytes.
const REPLAY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The readings, in the order of the table's columns.
const READINGS: [&str; 6] = ["verdict", "marker", "result", "no-result", "replay", "rewind"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, reading, folder] = &arguments[..]
        && word == "measure"
    {
        println!("{}", measure(reading, Path::new(folder)));
        return Ok(());
    }
    println!("| transcript | {} |", READINGS.join(" | "));
    println!("|{}", "---|".repeat(READINGS.len() + 1));
    for shape in SHAPES.iter().filter(|shape| arguments.is_empty() || arguments.iter().any(|name| name == shape.name)) {
        row(shape)?;
    }
    Ok(())
}

fn row(shape: &Shape) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let marker = shape.write(&folder.path().join("s.jsonl"))?;
    ledger_of(folder.path()).append(&Record::in_flight("p", marker.as_deref(), 1_795_977_220_000))?;
    let mut cells = Vec::new();
    for reading in READINGS {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.args(["measure", reading]).arg(folder.path()).output()?;
        cells.push(String::from_utf8(output.stdout)?.trim().to_owned());
    }
    println!("| {} | {} |", shape.what, cells.join(" | "));
    Ok(())
}

fn ledger_of(folder: &Path) -> Ledger {
    Ledger::new(folder.join("s.ledger.jsonl"), Durability::Process)
}

/// One reading, over and over: its mean time, the peak, and what it gave.
fn measure(reading: &str, folder: &Path) -> String {
    let mut rounds = 0;
    let mut gave = String::new();
    let (begin, begin_processor) = (Instant::now(), processor_time());
    while rounds == 0 || begin.elapsed() < BUDGET {
        gave = read(reading, folder);
        rounds += 1;
    }
    format!("{}, {} MB, {gave}", shown((processor_time() - begin_processor) / rounds), peak_kib().div_ceil(1024))
}

fn read(reading: &str, folder: &Path) -> String {
    let transcript = folder.join("s.jsonl");
    let result = |prompt| match transcript::find_turn_result(&transcript, Some(prompt)) {
        Ok(found) => if found.is_some() { "found" } else { "none" }.to_owned(),
        Err(error) => error.code().to_owned(),
    };
    match reading {
        "verdict" => {
            let ledger = ledger_of(folder);
            let workspace = Path::new("/ws");
            let session = Session { ledger: &ledger, transcript: &transcript, session_id: SESSION_ID, workspace };
            let verdict = plan(&session).verdict;
            verdict.withheld.map_or("settled", |reason| reason.as_str()).to_owned()
        }
        "marker" => transcript::tail_uuid(&transcript).map_or("none", |_| "found").to_owned(),
        "result" => result("last"),
        "no-result" => result("nobody"),
        "replay" => match replay_within(&transcript, Bounds { bytes_max: REPLAY_BYTES_MAX, records_max: usize::MAX }) {
            Ok(shown) => format!("{} frames", shown.frames.len()),
            Err(error) => error.code().to_owned(),
        },
        _ => transcript::last_rewind_at_ms(&transcript).map_or_else(|error| error.code(), |_| "told").to_owned(),
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        seconds => format!("{:.0} µs", seconds * 1e6),
    }
}

/// How long this process, which has one thread, was run so far.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// The most memory this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
