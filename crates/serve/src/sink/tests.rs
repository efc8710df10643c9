//! What reaches the disk, and what happens when the disk says no.

use std::path::Path;

use super::*;

struct World {
    store: tempfile::TempDir,
    sink: LedgerSink,
}

impl World {
    fn new() -> Self {
        let store = tempfile::tempdir().unwrap();
        let layout = Layout::new(store.path(), Path::new("/ws"));
        let room = Room::new(layout.room_probe());
        Self { sink: LedgerSink::new(layout, Durability::Process, room), store }
    }

    fn admit(&self, prompt_id: &str, at_ms: u64) {
        self.sink.admitted(&Admission { session_id: "s", prompt_id, at_ms });
    }

    fn end(&self, prompt_id: &str, terminal: &bridge::Terminal, at_ms: u64) {
        self.sink.ended(&Ending { session_id: "s", prompt_id, terminal, at_ms });
    }

    fn wish(&self, prompt_id: &str, at_ms: u64) {
        self.sink.cancel_wished(&bridge::Wish { session_id: "s", prompt_id, at_ms });
    }

    fn lines(&self) -> String {
        std::fs::read_to_string(self.sink.layout.ledger("s")).unwrap_or_default()
    }

    /// Puts a folder where the ledger belongs, so that no append succeeds.
    fn block(&self) {
        std::fs::create_dir_all(self.sink.layout.ledger("s")).unwrap();
    }

    fn unblock(&self) {
        std::fs::remove_dir(self.sink.layout.ledger("s")).unwrap();
    }
}

fn completed() -> bridge::Terminal {
    bridge::Terminal::Completed { stop_reason: "end_turn".into() }
}

#[test]
fn each_fact_is_the_line_that_the_format_asks_for() {
    let world = World::new();
    world.admit("a", 1);
    world.wish("a", 1);
    world.end("a", &completed(), 2);
    world.end("b", &bridge::Terminal::Cancelled { agent_stop_reason: Some("end_turn".into()) }, 3);
    world.end("c", &bridge::Terminal::Error { message: "m".into(), code: Some("-32603".into()) }, 4);
    world.end("d", &bridge::Terminal::Error { message: "m".into(), code: None }, 5);
    let expected = r#"{"v":1,"promptId":"a","state":"in_flight","at":1}
{"v":1,"promptId":"a","state":"cancel_requested","at":1}
{"v":1,"promptId":"a","terminal":"completed","stopReason":"end_turn","at":2}
{"v":1,"promptId":"b","terminal":"cancelled","at":3}
{"v":1,"promptId":"c","terminal":"error","code":"-32603","at":4}
{"v":1,"promptId":"d","terminal":"error","at":5}
"#;
    assert_eq!(world.lines(), expected);
}

#[test]
fn an_admission_names_the_transcripts_last_record() {
    let world = World::new();
    let transcript = world.sink.layout.transcript("s");
    std::fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    std::fs::write(transcript, "{\"uuid\":\"r-1\"}\n").unwrap();
    world.admit("a", 1);
    assert!(world.lines().contains(r#""state":"in_flight","tailUuid":"r-1""#), "{}", world.lines());
}

#[test]
fn what_the_disk_refuses_is_held_and_written_later_in_order() {
    let world = World::new();
    world.block();
    world.admit("a", 1);
    world.end("a", &completed(), 2);
    assert!(world.sink.degraded());
    assert!(world.sink.failures() >= 2);
    assert!(!world.sink.has_room("s"), "nothing is admitted while a fact waits");
    assert!(world.sink.has_room("t"), "another session's ledger is another matter");
    world.unblock();
    world.admit("b", 3);
    let order: Vec<_> = world.lines().lines().map(|line| line.split('"').nth(5).unwrap().to_owned()).collect();
    assert_eq!(order, ["a", "a", "b"]);
    assert!(!world.sink.degraded());
    assert!(world.sink.has_room("s"));
}

#[test]
fn a_wish_that_the_disk_refuses_waits_between_its_admission_and_its_end() {
    let world = World::new();
    world.block();
    world.admit("a", 1);
    world.wish("a", 2);
    world.end("a", &bridge::Terminal::Cancelled { agent_stop_reason: None }, 3);
    assert_eq!(world.sink.held.load(Ordering::Relaxed), 3);
    world.unblock();
    world.sink.retry_held();
    let words: Vec<_> = world.lines().lines().map(|line| line.split('"').nth(9).unwrap().to_owned()).collect();
    assert_eq!(words, ["in_flight", "cancel_requested", "cancelled"]);
    assert!(!world.sink.degraded());
}

#[test]
fn a_retry_without_news_writes_what_waits() {
    let world = World::new();
    world.block();
    world.admit("a", 1);
    world.sink.retry_held();
    assert!(world.sink.degraded());
    world.unblock();
    world.sink.retry_held();
    assert!(!world.sink.degraded());
    assert_eq!(world.lines().lines().count(), 1);
}

#[test]
fn the_ledger_of_a_dead_session_stays_open_while_a_fact_waits() {
    let world = World::new();
    world.block();
    world.end("a", &completed(), 1);
    world.sink.retain(|_| false);
    world.unblock();
    world.sink.retry_held();
    assert_eq!(world.lines().lines().count(), 1);
    world.sink.retain(|_| false);
    assert!(lock(&world.sink.books).is_empty());
}

#[test]
fn more_than_the_bound_is_not_held() {
    let world = World::new();
    world.block();
    for at_ms in 0..HELD_RECORDS_MAX as u64 + 5 {
        world.admit("a", at_ms);
    }
    assert_eq!(world.sink.held.load(Ordering::Relaxed), HELD_RECORDS_MAX);
}

#[test]
fn a_store_that_cannot_be_written_has_no_room() {
    let world = World::new();
    std::fs::create_dir(world.store.path().join(".turnd-room")).unwrap();
    assert!(!world.sink.has_room("s"));
}

#[test]
fn what_cannot_be_a_ledger_is_seen_before_anything_is_admitted() {
    let world = World::new();
    assert!(world.sink.has_room("s"), "a ledger that is not there yet can be made");
    world.block();
    assert!(!world.sink.has_room("s"), "a folder lies in its place");
    world.unblock();
    let ledger = world.sink.layout.ledger("s");
    assert!(std::process::Command::new("mkfifo").arg(&ledger).status().unwrap().success());
    assert!(!world.sink.has_room("s"), "a pipe has no reader");
    std::fs::remove_file(&ledger).unwrap();
    std::os::unix::fs::symlink("/dev/full", world.sink.layout.ledger("s")).unwrap();
    assert!(!world.sink.has_room("s"), "a device takes its lines");
    assert!(world.sink.has_room("t"));
}
