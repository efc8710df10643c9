//! How fast the store of return requests is beside the disk it lies on: `cargo bench -p turnd-request`, and with a folder behind `--` on
//! the disk of that folder. `-- --filled 1000000 [FOLDER]` fills it first with so many ended requests.
//!
//! The goals, with every commit flushed: a registration as fast as the disk commits, a thousand requests a second of 64 threads, and none
//! of it slower by more than a factor of two with a million requests in the store.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a bench has nobody to report to")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod filled;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use filled::{NOON, answer, apply, dispatched, id, live, name, register};
use turnd_request as request_crate;
use turnd_request::store::{List, Options, Page, Retention, Store, verify};
use turnd_request::{Input, Position};

fn main() {
    if filled::is_asked() {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let filled = arguments.iter().position(|argument| argument == "--filled");
    let many: u64 = filled.map_or(0, |place| arguments[place + 1].parse().unwrap());
    let on = match filled {
        Some(place) => arguments.get(place + 2),
        None => arguments.first(),
    };
    let on = on.map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = on.join(format!("turnd-request-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    raw(&folder);
    filled::in_a_process_of_its_own(&folder.join("requests"), many);
    let store = open(&folder);
    measure(&store, many);
    drop(store);
    again(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn open(folder: &Path) -> Store {
    let begun = Instant::now();
    let (store, waiting) = Store::open(&folder.join("requests"), Options::default(), NOON).unwrap();
    println!("open: {:.1} ms, {} requests wait", begun.elapsed().as_secs_f64() * 1e3, waiting.len());
    store
}

/// What the disk and SQLite do without us.
fn raw(folder: &Path) {
    use std::io::Write as _;
    let mut file = std::fs::File::create(folder.join("raw")).unwrap();
    report(
        "raw: append 4 KiB and flush",
        times(2_000, |_| {
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        }),
    );
    let conn = rusqlite::Connection::open(folder.join("raw.db")).unwrap();
    conn.execute_batch(
        "PRAGMA journal_mode = wal; PRAGMA synchronous = full; CREATE TABLE t (x INTEGER PRIMARY KEY, y TEXT)",
    )
    .unwrap();
    report(
        "raw: commit of one row, WAL, FULL",
        times(2_000, |_| {
            conn.execute("INSERT INTO t (y) VALUES ('a row of some bytes')", []).unwrap();
        }),
    );
}

fn measure(store: &Store, many: u64) {
    println!("-- with {many} requests in the store");
    report("register", times(2_000, |number| register(store, &name("one", number))));
    report(
        "five commits: register, dispatched, written, bound, terminal",
        times(1_000, |number| {
            live(store, &name("five", number), true, &answer());
        }),
    );
    report(
        "what a 202 waits for: register, admitted, dispatched, written",
        times(1_000, |number| {
            let name = name("accepted", number);
            register(store, &name);
            for input in [Input::Admitted, dispatched(), Input::Written] {
                apply(store, &name, input);
            }
        }),
    );
    threads(store, 64, 200);
    report("get", times(2_000, |number| drop(store.get(&id(&name("five", number % 1_000))).unwrap())));
    report("head", times(2_000, |_| drop(store.head().unwrap())));
    let head = store.head().unwrap().head;
    report(
        "a page of 100 events",
        times(500, |number| {
            let after = Position::Number(head.saturating_sub(100 + number));
            drop(store.events(&Page { limit: 100, ..Page::after(after) }).unwrap());
        }),
    );
    report(
        "the list of open requests, 100",
        times(200, |_| {
            drop(store.list(&List { is_open: true, limit: 100, ..List::default() }).unwrap());
        }),
    );
    println!("memory: {} kB resident", resident());
}

/// Whole requests of many callers at once.
fn threads(store: &Store, threads: u64, each: u64) {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for number in 0..each {
                    live(store, &name(&format!("t{thread}"), number), false, &answer());
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    println!("{threads} threads: {:.0} requests a second, of four commits each", (threads * each) as f64 / seconds);
}

/// Opens the store again, looks it through, and forgets some of it.
fn again(folder: &Path) {
    let store = open(folder);
    let begun = Instant::now();
    let retention =
        Retention { kept_ms: 0, kept_requests: store.newest().saturating_sub(10_000), ..Retention::default() };
    let pruned = store.prune(retention, NOON + 1).unwrap();
    println!("prune: {} requests in {:.2} s", pruned.requests, begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let report = verify(&folder.join("requests")).unwrap();
    println!("verify: {:.2} s, {} requests, {:?}", begun.elapsed().as_secs_f64(), report.requests, report.violations);
    let bytes = std::fs::metadata(folder.join("requests/requests.db")).unwrap().len();
    println!("file: {} MiB; memory: {} kB resident", bytes / 1024 / 1024, resident());
}

fn times(many: u64, mut what: impl FnMut(u64)) -> Vec<Duration> {
    let timed = |number| {
        let begun = Instant::now();
        what(number);
        begun.elapsed()
    };
    (0..many).map(timed).collect()
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!("{what}: p50 {:.3} ms, p99 {:.3} ms", at(0.5), at(0.99));
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}
