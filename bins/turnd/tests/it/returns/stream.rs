//! The terminal stream as readers get it: pages, lines and events, each complete and in order, and never a silent gap.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{all_events, ended, events, submit, world};
use crate::world::{World, chats, until};

/// No stream stays silent for so long.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// An open stream, whose lines are read as they come.
struct Reader {
    lines: Box<dyn Iterator<Item = String>>,
    port: u16,
}

impl Reader {
    fn open(world: &World, query: &str, accept: &str, headers: &str) -> Self {
        let address = world.address();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let request = format!(
            "GET /return-requests/events?{query} HTTP/1.1\r\nhost: {address}\r\naccept: {accept}\r\n{headers}connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let port = stream.local_addr().unwrap().port();
        let mut stream = BufReader::new(stream);
        let mut lines = std::iter::from_fn(move || {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            // What the end of the connection tore is no line.
            line.ends_with('\n').then(|| line.trim_end().to_owned())
        });
        let status = lines.next().unwrap();
        assert!(status.contains(" 200 "), "{status}");
        Self { lines: Box::new(lines), port }
    }

    /// Whether the daemon still holds its end of the connection; what it has written may still be on its way.
    fn is_served(&self, world: &World) -> bool {
        let ends = [world.address().port(), self.port].map(|port| format!(":{port:04X}"));
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|line| [line[1], line[2]].iter().zip(&ends).all(|(at, end)| at.ends_with(end)));
        line.is_some_and(|line| line[9] != "0")
    }

    fn lines(world: &World, query: &str) -> Self {
        Self::open(world, query, "application/x-ndjson", "")
    }

    /// The next event; none when the stream has ended. What stands between them are sizes of chunks and signs of life.
    fn next(&mut self) -> Option<Value> {
        self.next_line().map(|line| serde_json::from_str(&line).unwrap())
    }

    /// The same, as it was sent.
    fn next_line(&mut self) -> Option<String> {
        self.lines.find(|line| line.starts_with('{'))
    }

    fn take(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.next().unwrap()).collect()
    }
}

/// So many requests that have completed, one after the other.
fn completed(world: &mut World, session: &str, ids: std::ops::Range<usize>) {
    for id in ids {
        submit(world, session, &format!("X{id}"), "hello");
        ended(world, &format!("X{id}"));
    }
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["terminal_event_sequence"].as_u64().unwrap()).collect()
}

#[test]
fn scenarios_65_66_once_gives_all_that_there_is_and_ends() {
    let mut world = world();
    assert_eq!(Reader::lines(&world, "once=true&after=0").next(), None);
    let session = world.session();
    completed(&mut world, &session, 0..120);
    let mut reader = Reader::lines(&world, "once=true&after=0");
    assert_eq!(numbers(&reader.take(120)), (1..=120).collect::<Vec<_>>());
    assert_eq!(reader.next(), None);
}

#[test]
fn scenario_67_a_watcher_gets_one_line_for_each_end_with_the_bytes_of_the_receipt() {
    let mut world = world();
    let session = world.session();
    let mut watcher = Reader::lines(&world, "after=0");
    for id in ["A", "B"] {
        submit(&mut world, &session, id, "hello");
        let line = watcher.next_line().unwrap();
        let (_, receipt) = world.connect().try_call("GET", &format!("/return-requests/{id}"), "").unwrap();
        assert!(receipt.contains(&format!("\"terminal\":{line}")), "{line}\n{receipt}");
    }
}

#[test]
fn scenario_68_an_end_between_a_read_and_a_wait_is_not_missed() {
    let mut world = world();
    let session = world.session();
    let mut watcher = Reader::lines(&world, "after=0");
    completed(&mut world, &session, 0..200);
    assert_eq!(numbers(&watcher.take(200)), (1..=200).collect::<Vec<_>>());
}

#[test]
fn scenario_69_watchers_at_different_places_are_each_complete() {
    let mut world = world();
    let session = world.session();
    completed(&mut world, &session, 0..10);
    let mut watchers = [0, 4, 10].map(|after| (after, Reader::lines(&world, &format!("after={after}"))));
    completed(&mut world, &session, 10..20);
    for (after, watcher) in &mut watchers {
        assert_eq!(numbers(&watcher.take(20 - *after)), (*after as u64 + 1..=20).collect::<Vec<_>>());
    }
}

#[test]
fn scenario_72_a_place_that_is_not_in_the_stream_is_refused_with_its_reason() {
    let mut world = world();
    let session = world.session();
    completed(&mut world, &session, 0..2);
    let cursor = events(&mut world, 0)[0]["cursor"].as_str().unwrap().to_owned();
    let page = world.get(&format!("/return-requests/events?cursor={cursor}"));
    assert_eq!(numbers(page["events"].as_array().unwrap()), [2]);
    let foreign = cursor.replacen(&cursor[3..11], "00000000", 1);
    let (start, _) = cursor.rsplit_once('.').unwrap();
    let diverged = format!("{start}.0000000000000000");
    for (place, status, code) in [
        ("after=3".to_owned(), 409, "cursor_ahead"),
        (format!("cursor={foreign}"), 409, "stream_changed"),
        (format!("cursor={diverged}"), 409, "stream_diverged"),
        ("cursor=x".to_owned(), 400, "invalid_cursor"),
        ("after=-1".to_owned(), 400, "invalid_cursor"),
        ("limit=1001".to_owned(), 400, "invalid_limit"),
        ("wait_ms=30001".to_owned(), 400, "invalid_wait_ms"),
    ] {
        let (answered, refusal) = world.call("GET", &format!("/return-requests/events?{place}"), "");
        assert_eq!((answered, &refusal["code"]), (status, &json!(code)), "{place}");
    }
    let headers = "accept: application/x-ndjson\r\n";
    let refused = world.connect().try_call_with("GET", "/return-requests/events?after=3&once=1", headers, "");
    assert_eq!(refused.unwrap().0, 409, "a stream is refused before it begins");
}

#[test]
fn scenario_74_a_browser_goes_on_behind_the_last_event_that_it_has_seen() {
    let mut world = world();
    let session = world.session();
    completed(&mut world, &session, 0..5);
    let (mut seen, mut last) = (Vec::new(), String::new());
    // The connection is cut behind each event.
    while seen.len() < 5 {
        let headers = if last.is_empty() { String::new() } else { format!("last-event-id: {last}\r\n") };
        let mut reader = Reader::open(&world, "", "text/event-stream", &headers);
        let id = reader.lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap();
        assert_eq!(reader.lines.next().unwrap(), "event: terminal");
        let event: Value = serde_json::from_str(reader.lines.next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(event["cursor"], id);
        (last, seen) = (id, [seen, vec![event]].concat());
    }
    assert_eq!(numbers(&seen), [1, 2, 3, 4, 5]);
}

#[test]
fn scenario_75_a_filter_leaves_numbers_out_and_says_where_to_go_on() {
    let mut world = world();
    let (one, two) = (world.session(), world.session());
    for (id, session) in [("A", &one), ("B", &two), ("C", &one), ("D", &two), ("E", &two)] {
        submit(&mut world, session, id, "hello");
        ended(&mut world, id);
    }
    let page = world.get(&format!("/return-requests/events?session={one}"));
    assert_eq!(numbers(page["events"].as_array().unwrap()), [1, 3]);
    assert_eq!((&page["next_after"], &page["head"]), (&json!(5), &json!(5)));
    let page = world.get("/return-requests/events?state=aborted");
    assert_eq!((&page["events"], &page["next_after"]), (&json!([]), &json!(5)));
    let mut reader = Reader::lines(&world, &format!("once=1&session={two}"));
    assert_eq!(numbers(&reader.take(3)), [2, 4, 5]);
    assert_eq!(reader.next(), None);
}

#[test]
fn scenario_76_a_named_consumer_only_moves_forward_and_never_ahead() {
    let mut world = world();
    let session = world.session();
    completed(&mut world, &session, 0..3);
    let put = |world: &mut World, body: Value| world.call("PUT", "/return-requests/consumers/mine", &body.to_string());
    let (status, consumer) = put(&mut world, json!({ "acked": 2, "protect": true }));
    assert_eq!((status, &consumer["acked"], &consumer["protect"]), (200, &json!(2), &json!(true)));
    assert_eq!(put(&mut world, json!({ "acked": 1 })).1["acked"], 2);
    let (status, refusal) = put(&mut world, json!({ "acked": 8 }));
    assert_eq!((status, &refusal["code"], &refusal["head"]), (409, &json!("cursor_ahead"), &json!(3)));
    assert_eq!(put(&mut world, json!({})).1["acked"], 2);
    for (body, code) in [(json!({ "acked": -1 }), "invalid_acked"), (json!({ "protect": 1 }), "invalid_protect")] {
        let (status, refusal) = put(&mut world, body);
        assert_eq!((status, &refusal["code"]), (400, &json!(code)));
    }
    let (status, refusal) = world.call("PUT", "/return-requests/consumers/a%20b", "{}");
    assert_eq!((status, &refusal["code"]), (400, &json!("invalid_consumer")));
}

/// The numbers of the events that a stream tells until it ends, or until it has told that one.
fn read_out(reader: Reader, last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    for line in reader.lines {
        let Some((_, rest)) = line.split_once("\"terminal_event_sequence\":") else { continue };
        numbers.push(rest.split(',').next().unwrap().parse().unwrap());
        if numbers.last() == Some(&last) {
            break;
        }
    }
    numbers
}

/// How often a watcher goes on that is cut off, because this process is given no time to read.
const CUTS_MAX: usize = 50;

/// Reads a stalled watcher out and goes on behind the last whole event until it has that one. How many it had without that.
fn goes_on(world: &World, stalled: Reader, all: u64) -> u64 {
    let mut read = read_out(stalled, all);
    let had = read.last().copied().unwrap_or_default();
    for _ in 0..CUTS_MAX {
        let last = read.last().copied().unwrap_or_default();
        if last < all {
            read.extend(read_out(Reader::lines(world, &format!("once=true&after={last}")), all));
        }
    }
    let first_gap = read.iter().zip(1..).find(|(number, place)| *number != place);
    assert_eq!((first_gap, read.len() as u64), (None, all), "it has each once");
    had
}

/// Watchers of all there is that read nothing of it, of either form.
fn stalled(world: &World) -> Vec<Reader> {
    let forms = ["application/x-ndjson", "text/event-stream"];
    (0..STALLED as usize).map(|at| Reader::open(world, "after=0", forms[at % forms.len()], "")).collect()
}

const STALLED: u64 = 4;

#[test]
fn scenario_70_watchers_that_stop_reading_before_ten_thousand_events_hold_nobody_up_cost_no_memory_and_lose_nothing() {
    const FILLED: u64 = 10_000;
    const EVENT_BYTES: u64 = 3_000;
    // No journal: what is filled in here was never heard by an agent.
    let mut world = World::with(&["--linger-ms", "100"]);
    assert_eq!(world.terminate(), Some(0));
    let answer = "x".repeat(EVENT_BYTES as usize);
    crate::filled::fill(&chats(&world).with_file_name("turnd-requests"), FILLED, &answer);

    // As long as this is looked at nobody is closed, however busy the machine is.
    world.start_again_with(&["--writer-idle-timeout-ms", "600000"]);
    let session = world.session();
    // What a watcher who reads, the session and the store keep in memory is there before.
    completed(&mut world, &session, 0..5);
    let before = FILLED + 5;
    assert_eq!(read_out(Reader::lines(&world, "once=true&after=0"), before), (1..=before).collect::<Vec<_>>());
    let memory = world.resident_bytes();
    let hung = stalled(&world);
    let mut watcher = Reader::lines(&world, &format!("after={before}"));
    completed(&mut world, &session, 5..45);
    let all = before + 40;
    assert_eq!(numbers(&watcher.take(40)), (before + 1..=all).collect::<Vec<_>>());
    // Meanwhile whoever reads has all of it, so that there was time to put as much aside for the others.
    assert_eq!(read_out(Reader::lines(&world, "once=true&after=0"), all), (1..=all).collect::<Vec<_>>());
    let grown = world.resident_bytes().saturating_sub(memory);
    let waiting = STALLED * FILLED * EVENT_BYTES;
    assert!(grown < waiting / 4, "what waits for them waits in the store: {grown} of {waiting} bytes");
    for watcher in hung {
        goes_on(&world, watcher, all);
    }

    // Whoever takes nothing for a while is closed, and goes on.
    assert_eq!(world.terminate(), Some(0));
    world.start_again_with(&["--writer-idle-timeout-ms", "500"]);
    let session = world.session();
    let hung = stalled(&world);
    completed(&mut world, &session, 45..50);
    let (before, all) = (all, all + 5);
    for watcher in &hung {
        until("a watcher that takes nothing is closed", || (!watcher.is_served(&world)).then_some(()));
    }
    for watcher in hung {
        assert!(goes_on(&world, watcher, all) < before, "nobody was given what did not fit into the sockets");
    }
}

#[test]
fn scenario_71_the_stream_goes_on_over_a_restart_under_its_name_and_its_numbers() {
    let mut world = world();
    let session = world.session();
    completed(&mut world, &session, 0..2);
    let before = world.get("/return-requests/stream");
    let cursor = before["head_cursor"].as_str().unwrap().to_owned();
    world.kill_daemon();
    let after = world.get("/return-requests/stream");
    assert_eq!((&after["stream_id"], &after["head"]), (&before["stream_id"], &json!(2)));
    assert_eq!((&after["oldest"], &after["degraded"], &after["draining"]), (&json!(1), &json!(null), &json!(false)));
    let session = world.session();
    submit(&mut world, &session, "Y", "hello");
    ended(&mut world, "Y");
    let page = world.get(&format!("/return-requests/events?cursor={cursor}"));
    assert_eq!(numbers(page["events"].as_array().unwrap()), [3]);
    all_events(&mut world, 3);
}

#[test]
fn a_daemon_that_is_ended_tells_its_watchers_how_its_requests_ended_and_is_not_held_up_by_them() {
    let mut world = world();
    let session = world.session();
    let mut watchers = [Reader::lines(&world, "after=0"), Reader::lines(&world, "after=0&session=none")];
    let mut browser = Reader::open(&world, "", "text/event-stream", "");
    submit(&mut world, &session, "X", "hang");
    assert_eq!(world.terminate(), Some(0));
    let [watcher, filtered] = &mut watchers;
    assert_eq!(watcher.next().unwrap()["code"], "daemon_shutdown");
    assert_eq!((watcher.next(), filtered.next()), (None, None));
    let lines: Vec<String> = browser.lines.by_ref().collect();
    let told: Vec<_> = lines.iter().filter(|line| line.starts_with("event: ")).collect();
    assert_eq!(told, ["event: terminal"]);
    let last = lines.iter().rfind(|line| !line.is_empty()).unwrap();
    assert_eq!(last, "0", "the stream was ended, and not its connection");
    world.start_again();
}

#[test]
fn a_page_waits_for_its_first_event() {
    let mut world = world();
    let session = world.session();
    submit(&mut world, &session, "X", "slow 300");
    let page = world.get("/return-requests/events?after=0&wait_ms=30000");
    assert_eq!(numbers(page["events"].as_array().unwrap()), [1]);
    let page = world.get("/return-requests/events?after=1&wait_ms=50");
    assert_eq!((&page["events"], &page["next_after"]), (&json!([]), &json!(1)));
    let over = world.get("/return-requests/X?wait_ms=30000");
    assert_eq!(over["state"], "completed");
}

#[test]
fn there_are_two_hundred_and_fifty_six_readers_at_most() {
    let world = World::journaled(&["--linger-ms", "100", "--max-connections", "300"]);
    let readers: Vec<_> = (0..256).map(|_| Reader::lines(&world, "after=0")).collect();
    let headers = "accept: application/x-ndjson\r\n";
    let (status, refusal) = world.connect().try_call_with("GET", "/return-requests/events", headers, "").unwrap();
    assert!(status == 503 && refusal.contains("subscriber_limit_exceeded"), "{refusal}");
    drop(readers);
    until("there is room again", || {
        let headers = "accept: application/x-ndjson\r\n";
        let (status, _) = world.connect().try_call_with("GET", "/return-requests/events?once=1", headers, "")?;
        (status == 200).then_some(())
    });
}
