//! Commands whose daemon, or its store, is away: what they say, how long they try again, and how they end then.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;

use serde_json::json;

use crate::commands::stdout;
use crate::requests::stderr;
use crate::scripted::{End, Reply, Scripted};

const SEND: [&str; 6] = ["send", "S", "--return-final", "--request-id", "job-1", "hello"];

/// A store that takes nothing, of which the daemon knows more or less.
fn busy(more: &serde_json::Value) -> Reply {
    let mut body = json!({ "error": "the store is busy", "code": "store_busy" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Reply::Answer(503, "retry-after: 0\r\n", body.to_string())
}

#[test]
fn a_caller_who_wants_no_second_try_is_told_at_once_how_it_stands() {
    for (more, status, says) in [
        (json!({ "input_written": "no" }), 8, "store_busy: the store is busy; input_written: no"),
        (json!({ "input_written": "maybe" }), 8, "input_written: maybe"),
        (
            json!({ "input_written": "maybe", "request_id": "job-1", "state": "registered" }),
            11,
            "; the request is on record: `turnd request wait job-1` tells what becomes of it",
        ),
    ] {
        let daemon = Scripted::play(move |_, _| busy(&more));
        let output = daemon.run(&[&SEND[..], &["--retry-ms", "0"]].concat());
        let said = stderr(&output);
        assert_eq!((output.status.code(), daemon.heard().len(), said.lines().count()), (Some(status), 1, 1), "{said}");
        assert!(said.contains(says), "{said}");
        assert_eq!(stdout(&output), "");
    }
}

#[test]
fn a_request_that_is_on_record_is_asked_about_until_its_receipt_comes_and_lost_sight_of_without_an_error() {
    let stored = json!({ "input_written": "yes", "request_id": "job-1", "state": "submitted" });
    let told = stored.clone();
    let daemon = Scripted::play(move |_, before| match before {
        0 => busy(&told),
        1 => Reply::HangUp,
        _ => Reply::Answer(200, "", json!({ "request_id": "job-1", "state": "submitted" }).to_string()),
    });
    let output = daemon.run(&SEND);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert_eq!(said, "turnd: the daemon answers 503 store_busy; the same request again, as long as it takes\n");
    let daemon = Scripted::play(move |_, before| if before == 0 { busy(&stored) } else { Reply::HangUp });
    let output = daemon.run(&[&SEND[..], &["--retry-ms", "200"]].concat());
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(11), 2), "{said}");
    assert!(said.starts_with("turnd: the daemon answers 503 store_busy; the same request again, for up to 200 ms\n"));
    assert!(said.contains("`turnd request wait job-1`"), "{said}");
}

#[test]
fn who_says_how_long_is_waited_for_a_daemon_that_has_not_begun_yet() {
    for words in [&SEND[..], &["send", "S", "hello"], &["request", "get", "job-1"], &["request", "wait", "job-1"]] {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let words = [words, &["--retry-ms", "60000"]].concat();
        let mut child = Scripted::nobody(address).start(&words);
        let mut said = String::new();
        BufReader::new(child.0.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with("turnd: cannot reach the daemon"), "{words:?}: {said}");
        assert!(said.ends_with(", for up to 60000 ms\n"), "{words:?}: {said}");
        let listener = TcpListener::bind(address).unwrap();
        let daemon = Scripted::play_on(listener, |request, _| {
            let asked: serde_json::Value = serde_json::from_str(&request.body).unwrap_or_default();
            let answer = json!({ "request_id": "job-1", "promptId": asked["promptId"], "state": "completed" });
            Reply::Answer(200, "", answer.to_string())
        });
        assert_eq!(child.0.wait().unwrap().code(), Some(0), "{words:?}");
        let asked = daemon.heard().iter().filter(|request| request.target != "/capabilities").count();
        assert_eq!(asked, 1, "{words:?}");
    }
}

#[test]
fn a_wait_that_has_seen_its_request_and_loses_the_daemon_does_not_know_yet() {
    let pending = r#"{"request_id":"job-1","state":"bound"}"#;
    for (flags, seen, status) in [
        (&["--retry-ms", "300"][..], true, 11),
        (&["--retry-ms", "300"], false, 9),
        (&["--timeout-ms", "1200"], true, 11),
        (&["--timeout-ms", "1200"], false, 9),
    ] {
        let daemon = Scripted::play(move |_, before| match before {
            0 if seen => Reply::Answer(200, "", pending.to_owned()),
            _ => Reply::HangUp,
        });
        let output = daemon.run(&[&["request", "wait", "job-1"], flags].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{flags:?} {seen}: {said}");
        let printed = if seen { format!("{pending}\n") } else { String::new() };
        assert_eq!(stdout(&output), printed, "{flags:?}");
        assert_eq!(said.lines().count(), 2, "that it waits, and that it does no more: {said}");
        assert!(said.contains("broke off"), "{said}");
    }
}

#[test]
fn a_watch_says_once_that_it_waits_and_gives_up_when_it_is_told_to() {
    let line = "{\"terminal_event_sequence\":1,\"cursor\":\"st.1/c\",\"stream_id\":\"st\",\"state\":\"completed\"}\n";
    let daemon = Scripted::play(move |_, before| match before {
        0 => Reply::Stream(vec![line.to_owned()], End::Cut),
        _ => Reply::HangUp,
    });
    let output = daemon.run(&["request", "watch", "--retry-ms", "500"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(9), line), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.lines().next().unwrap().ends_with("; going on behind 1, for up to 500 ms"), "{said}");
    // Without a bound it stays, and has said why nothing happens.
    let mut watch = daemon.start(&["request", "watch"]);
    let mut said = String::new();
    let mut reader = BufReader::new(watch.0.stderr.take().unwrap());
    reader.read_line(&mut said).unwrap();
    assert!(said.ends_with("; going on behind 0, as long as it takes\n"), "{said}");
    let heard = daemon.heard().len();
    crate::world::until("it goes on trying", || (daemon.heard().len() > heard + 2).then_some(()));
    watch.0.kill().unwrap();
    said.clear();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(said, "", "and says so once");
}
