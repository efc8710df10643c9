//! A store that has much in it already, and the requests that it is filled with: shared by the benches of the store and of the daemon, and
//! by the daemon's tests.
//!
//! Filling takes memory that the measured process is not to have, and so a bench calls itself for it: `filled::in_a_process_of_its_own`,
//! and `filled::is_asked` at its start. Each names the crate of return requests `request_crate`.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Instant;

use crate::request_crate::store::{Entry, Options, Store};
use crate::request_crate::{
    ArmedCursor, Baseline, Evidence, FinalText, Hash, Input, Outcome, Registration, RequestId, TerminalEvent,
};

/// Whose the requests are: of those who call a daemon, so that its stream shows them.
const OWNER: &str = "daemon";

/// The time at which all requests are made; nothing here depends on it.
pub(crate) const NOON: u64 = 1_800_000_000_000;

/// The first argument of a bench that was called to fill.
const FILL: &str = "--fill";

/// Fills the store in `folder`, or does nothing for `many` of 0.
pub(crate) fn in_a_process_of_its_own(folder: &Path, many: u64) {
    if many > 0 {
        let bench = std::env::current_exe().unwrap();
        let status = Command::new(bench).arg(FILL).arg(folder).arg(many.to_string()).status().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// Whether this process was called to fill; then it has done so.
#[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
pub(crate) fn is_asked() -> bool {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [first, folder, many, ..] = &arguments[..] else { return false };
    let is_asked = first == FILL;
    if is_asked {
        let begun = Instant::now();
        fill(Path::new(folder), many.parse().unwrap(), &answer());
        println!("filled with {many} requests: {:.1} s", begun.elapsed().as_secs_f64());
    }
    is_asked
}

/// Ended requests, as many as asked, all with this answer, copied from one that was really made: the rows, the events and their chain are what the store itself
/// would have written, only without a flush for each.
pub(crate) fn fill(folder: &Path, many: u64, answer: &str) {
    let (store, _) = Store::open(folder, Options::default(), NOON).unwrap();
    let first = name("filled", 0);
    live(&store, &first, false, answer);
    let looked = store.look(&id(&first)).unwrap();
    let (Some(Entry::Request(mut request)), Some(event)) = (looked.entry, looked.event) else { return };
    // Which comes without its answer.
    request.final_message = Some(answer.to_owned());
    let (stream_id, mut chain) = (store.head().unwrap().stream_id, event.chain);
    drop(store);
    let conn = rusqlite::Connection::open(folder.join("requests.db")).unwrap();
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
}

pub(crate) fn live(store: &Store, name: &str, binds: bool, answer: &str) {
    register(store, name);
    apply(store, name, dispatched());
    apply(store, name, Input::Written);
    if binds {
        apply(store, name, Input::Bound { evidence: Evidence::FirstUpdate, user_record_id: None });
    }
    apply(store, name, settled(answer));
}

pub(crate) fn register(store: &Store, name: &str) {
    let (sender, receiver) = mpsc::channel();
    store.register(asked(name), move |answer| sender.send(answer.is_ok()).unwrap());
    assert!(receiver.recv().unwrap());
}

pub(crate) fn apply(store: &Store, name: &str, input: Input) {
    let (sender, receiver) = mpsc::channel();
    store.apply(id(name), input, NOON, move |answer| sender.send(answer.is_ok()).unwrap());
    assert!(receiver.recv().unwrap());
}

/// An id like a caller's: made of a hash, so that it falls anywhere in the index.
pub(crate) fn name(word: &str, number: u64) -> String {
    format!("{:016x}-{word}-{number}", number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

pub(crate) fn id(name: &str) -> RequestId {
    RequestId::parse(name).unwrap()
}

pub(crate) fn asked(name: &str) -> Registration {
    Registration {
        request_id: id(name),
        owner: OWNER.into(),
        input_hash: Hash([7; 32]),
        hash_version: 1,
        session_id: "a-session-id-of-some-length-0000".into(),
        incarnation_id: None,
        prompt_id: format!("prompt-{name}"),
        options: crate::request_crate::Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([8; 32]),
        prompt_bytes: 11,
        baseline: Baseline::default(),
        created_at: NOON,
    }
}

pub(crate) fn dispatched() -> Input {
    let armed = ArmedCursor { event_id: 5, tail: Some("a-record-id-of-some-length-000000000".into()) };
    Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None }
}

pub(crate) fn answer() -> String {
    "An answer of some length. ".repeat(10)
}

fn settled(answer: &str) -> Input {
    Input::Settled(Outcome::Ended {
        stop_reason: "end_turn".into(),
        final_text: FinalText::new(answer),
        evidence: Evidence::RpcResponse,
        is_strayed: false,
        is_unreadable: false,
    })
}
