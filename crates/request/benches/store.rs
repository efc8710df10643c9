//! How fast the store of return requests is beside the disk it lies on: `cargo bench -p turnd-request`, and with a folder behind `--` on
//! the disk of that folder. `-- --filled 1000000 [FOLDER]` fills it first with so many ended requests.
//!
//! The goals, with every commit flushed: a registration as fast as the disk commits, a thousand requests a second of 64 threads, and none
//! of it slower by more than a factor of two with a million requests in the store.
#![expect(clippy::print_stdout, reason = "the figures are what this program is for")]
#![expect(clippy::unwrap_used, reason = "a bench has nobody to report to")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use turnd_request::store::{Entry, List, Options, Page, Retention, Store, verify};
use turnd_request::{
    ArmedCursor, Baseline, Evidence, FinalText, Hash, Input, Outcome, Position, Registration, RequestId, TerminalEvent,
};

/// The time at which all requests are made; nothing here depends on it.
const NOON: u64 = 1_800_000_000_000;

fn main() {
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
    if many > 0 {
        fill(&folder, many);
    }
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
            live(store, &name("five", number), true);
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
                    live(store, &name(&format!("t{thread}"), number), false);
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

/// Ended requests, as many as asked, copied from one that was really made: the rows, the events and their chain are what the store itself
/// would have written, only without a flush for each.
fn fill(folder: &Path, many: u64) {
    let begun = Instant::now();
    let store = open(folder);
    live(&store, &name("filled", 0), false);
    let Some(Entry::Request(mut request)) = store.get(&id(&name("filled", 0))).unwrap() else { return };
    let (stream_id, mut chain) =
        (store.head().unwrap().stream_id, store.event_of(request.id()).unwrap().unwrap().chain);
    drop(store);
    let conn = rusqlite::Connection::open(folder.join("requests/requests.db")).unwrap();
    conn.execute_batch("PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -1000000; BEGIN")
        .unwrap();
    let columns = "SELECT group_concat(CASE name WHEN 'request_id' THEN '?1' WHEN 'prompt_id' THEN '?2' \
        WHEN 'terminal_seq' THEN '?3' ELSE name END) FROM pragma_table_info('request')";
    let columns: String = conn.query_row(columns, [], |row| row.get(0)).unwrap();
    let template = request.id().clone();
    let copy = format!("INSERT INTO request SELECT {columns} FROM request WHERE request_id = '{template}'");
    let (mut copy, mut tell) =
        (conn.prepare(&copy).unwrap(), conn.prepare("INSERT INTO terminal_event VALUES (?1, ?2, ?3, ?4, ?5)").unwrap());
    for number in 1..many {
        let name = name("filled", number);
        request.registration = asked(&name);
        request.terminal_seq = Some(number + 1);
        let event = TerminalEvent::new(&request, &stream_id, number + 1, &chain, NOON);
        copy.execute((&name, format!("prompt-{name}"), number + 1)).unwrap();
        tell.execute((number + 1, &name, NOON, &event.payload, event.chain.0)).unwrap();
        chain = event.chain;
    }
    conn.execute("UPDATE meta SET head_seq = ?1, head_chain = ?2", (many, chain.0)).unwrap();
    conn.execute_batch("COMMIT").unwrap();
    println!("filled with {many} in {:.1} s", begun.elapsed().as_secs_f64());
}

fn live(store: &Store, name: &str, binds: bool) {
    register(store, name);
    apply(store, name, dispatched());
    apply(store, name, Input::Written);
    if binds {
        apply(store, name, Input::Bound { evidence: Evidence::FirstUpdate, user_record_id: None });
    }
    apply(store, name, settled());
}

fn register(store: &Store, name: &str) {
    let (sender, receiver) = mpsc::channel();
    store.register(asked(name), move |answer| sender.send(answer.is_ok()).unwrap());
    assert!(receiver.recv().unwrap());
}

fn apply(store: &Store, name: &str, input: Input) {
    let (sender, receiver) = mpsc::channel();
    store.apply(id(name), input, NOON, move |answer| sender.send(answer.is_ok()).unwrap());
    assert!(receiver.recv().unwrap());
}

/// An id like a caller's: made of a hash, so that it falls anywhere in the index.
fn name(word: &str, number: u64) -> String {
    format!("{:016x}-{word}-{number}", number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn id(name: &str) -> RequestId {
    RequestId::parse(name).unwrap()
}

fn asked(name: &str) -> Registration {
    Registration {
        request_id: id(name),
        owner: "owner".into(),
        input_hash: Hash([7; 32]),
        hash_version: 1,
        session_id: "a-session-id-of-some-length-0000".into(),
        incarnation_id: None,
        prompt_id: format!("prompt-{name}"),
        options: turnd_request::Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([8; 32]),
        prompt_bytes: 11,
        baseline: Baseline::default(),
        created_at: NOON,
    }
}

fn dispatched() -> Input {
    let armed = ArmedCursor { event_id: 5, tail: Some("a-record-id-of-some-length-000000000".into()) };
    Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None }
}

fn settled() -> Input {
    Input::Settled(Outcome::Ended {
        stop_reason: "end_turn".into(),
        final_text: FinalText::new(&"An answer of some length. ".repeat(10)),
        evidence: Evidence::RpcResponse,
        is_strayed: false,
    })
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
