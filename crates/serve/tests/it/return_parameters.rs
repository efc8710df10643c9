//! What the routes of return requests take as a parameter's value, and that everything else is refused with the parameter's own code.

use crate::daemon::Daemon;

/// The forms in which the stream is told; each of them takes and refuses the same.
const FORMS: [&str; 3] = ["application/json", "application/x-ndjson", "text/event-stream"];

/// Every parameter, where it can be said, and the code with which its malformed values are refused.
const PARAMETERS: [(&str, &str, &str); 11] = [
    ("/return-requests/X", "wait_ms", "invalid_wait_ms"),
    ("/return-requests", "limit", "invalid_limit"),
    ("/return-requests", "page", "invalid_page"),
    ("/return-requests", "state", "invalid_state"),
    ("/return-requests/events", "after", "invalid_cursor"),
    ("/return-requests/events", "cursor", "invalid_cursor"),
    ("/return-requests/events", "limit", "invalid_limit"),
    ("/return-requests/events", "wait_ms", "invalid_wait_ms"),
    ("/return-requests/events", "once", "invalid_once"),
    ("/return-requests/events", "state", "invalid_state"),
    ("/return-requests/events", "session", "invalid_session"),
];

/// What is neither a number nor a truth value nor a state nor a place in a stream.
const FOREIGN: [&str; 11] =
    ["=", "", "=%20", "=x", "=-1", "=1.5", "=1e3", "=0x1", "=TRUE", "=%2B1", "=99999999999999999999"];

#[tokio::test]
async fn a_value_that_is_empty_or_of_another_kind_is_refused_by_its_code_in_every_form() {
    let daemon = Daemon::start().await;
    for (path, key, code) in PARAMETERS {
        // Any text but none may be a session's id.
        let foreign = if key == "session" { &FOREIGN[..2] } else { &FOREIGN[..] };
        for (form, value) in FORMS.iter().flat_map(|form| foreign.iter().map(move |value| (form, value))) {
            let line = format!("GET {path}?{key}{value}");
            let answer = daemon.ask_with(&line, &[("accept", form)], "").await;
            assert_eq!(answer.verdict(), format!("400 {code}"), "{line} {form}");
        }
    }
    let empty = daemon.get("/return-requests?session=").await;
    assert_eq!(empty.verdict(), "400 invalid_session");
}

#[tokio::test]
async fn what_a_parameter_can_mean_is_taken() {
    let daemon = Daemon::start().await;
    for query in [
        "once=1",
        "once=0",
        "once=true",
        "once=false",
        "limit=1",
        "limit=1000",
        "wait_ms=0",
        "after=0",
        "state=completed",
        "session=s",
        "once=%31",
    ] {
        let answer = daemon.get(&format!("/return-requests/events?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.verdict());
    }
    for query in ["limit=1", "page=1", "state=aborted", "session=s"] {
        let answer = daemon.get(&format!("/return-requests?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.verdict());
    }
}

#[tokio::test]
async fn a_malformed_place_is_refused_also_where_another_one_goes_before_it() {
    let daemon = Daemon::start().await;
    for (line, last) in [
        ("GET /return-requests/events?after=x", "0"),
        ("GET /return-requests/events?after=0", "x"),
        ("GET /return-requests/events", "\u{e4}"),
    ] {
        let answer = daemon.ask_with(line, &[("last-event-id", last)], "").await;
        assert_eq!(answer.verdict(), "400 invalid_cursor", "{line} {last}");
    }
    let unseen = daemon.ask_with("GET /return-requests/events", &[("last-event-id", "")], "").await;
    assert_eq!(unseen.status, 200, "a browser that has seen nothing yet begins at the beginning");
}
