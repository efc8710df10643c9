//! How fast records go in and out, in medians over several rounds: `cargo bench -p turnd-ledger`.
//!
//! The goals, on two cores: an appender kept open 150,000 records a second, open-append-close 40,000, reading 300 MB a
//! second. Synced appends are as fast as the disk and have no goal.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a bench has nobody to report to")]

use std::fs::{self, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use turnd_ledger::{Durability, Ledger, Record, recent_terminals};

/// Rounds of each measurement; the median of an odd number is one of them.
const ROUNDS: usize = 9;

fn main() {
    let folder = std::env::temp_dir().join(format!("turnd-ledger-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let bench = Bench { path: folder.join("s.ledger.jsonl") };
    bench.records("appender kept open", 100_000, |ledger, records| {
        let mut appender = ledger.appender();
        records.iter().for_each(|record| appender.append(record).unwrap());
    });
    bench.records("open, append, close", 50_000, |ledger, records| {
        records.iter().for_each(|record| ledger.append(record).unwrap());
    });
    bench.records("appender, 100 a call", 100_000, |ledger, records| {
        let mut appender = ledger.appender();
        records.chunks(100).for_each(|chunk| appender.append_all(chunk).unwrap());
    });
    bench.records("two threads, two appenders", 100_000, |ledger, records| {
        thread::scope(|scope| {
            for half in records.chunks(records.len().div_ceil(2)) {
                let mut appender = ledger.appender();
                scope.spawn(move || half.iter().for_each(|record| appender.append(record).unwrap()));
            }
        });
    });
    bench.records("baseline: write alone, no lock, no look", 100_000, |ledger, records| {
        let mut file = OpenOptions::new().append(true).create(true).open(ledger.path()).unwrap();
        records.iter().for_each(|record| file.write_all((record.to_line() + "\n").as_bytes()).unwrap());
    });
    bench.records("baseline: look and write, no lock", 100_000, |ledger, records| {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(ledger.path()).unwrap();
        for record in records {
            if let Some(last) = file.metadata().unwrap().len().checked_sub(1) {
                file.read_exact_at(&mut [0], last).unwrap();
            }
            file.write_all((record.to_line() + "\n").as_bytes()).unwrap();
        }
    });
    bench.synced(200);
    bench.reading(400_000);
    fs::remove_dir_all(&folder).unwrap();
}

struct Bench {
    path: PathBuf,
}

impl Bench {
    /// Records a second, each round into a new file.
    fn records(&self, name: &str, count: usize, append: impl Fn(&Ledger, &[Record])) {
        let ledger = Ledger::new(&self.path, Durability::Process);
        let records = records(count);
        let seconds = median(|| {
            let _ = fs::remove_file(&self.path);
            seconds(|| append(&ledger, &records))
        });
        println!("{name:<42}{:>12.0} records/s", count as f64 / seconds);
    }

    fn synced(&self, count: usize) {
        let _ = fs::remove_file(&self.path);
        let ledger = Ledger::new(&self.path, Durability::Fsync);
        let records = records(count);
        let per_round = median(|| {
            let mut appender = ledger.appender();
            seconds(|| records.iter().for_each(|record| appender.append(record).unwrap()))
        });
        println!("{:<42}{:>12.0} records/s", "appender kept open, fsync", count as f64 / per_round);
    }

    fn reading(&self, count: usize) {
        let _ = fs::remove_file(&self.path);
        let ledger = Ledger::new(&self.path, Durability::Process);
        ledger.append_all(&records(count)).unwrap();
        let megabytes = ledger.len_bytes().unwrap() as f64 / 1e6;
        let whole = median(|| seconds(|| drop(black_box(ledger.read().unwrap()))));
        println!("{:<42}{:>12.0} MB/s ({megabytes:.0} MB)", "read whole", megabytes / whole);
        let recent = median(|| seconds(|| drop(black_box(recent_terminals(&ledger).unwrap()))));
        println!("{:<42}{:>12.0} us", "recent terminals", recent * 1e6);
    }
}

/// Admissions and terminals in turn, of the length that real ones have.
fn records(count: usize) -> Vec<Record> {
    let record = |number: usize| {
        let id = format!("{:08x}-6f44-4ac3-8f0c-6ab1f3b2a111", number / 2);
        let at_ms = 1_795_977_220_000 + number as u64;
        match number % 2 {
            0 => Record::in_flight(id, Some("898b318b-8a5b-48de-868e-f4f09c4a0203"), at_ms),
            _ => Record::completed(id, "end_turn", at_ms),
        }
    };
    (0..count).map(record).collect()
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}
