//! Durable requests from the command line: what is sent, what is printed, and how each command ends.

use std::io::Write;
use std::net::TcpListener;
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::commands::{stdout, turnd};
use crate::scripted::{Reply, Scripted, held};
use crate::world::until;

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The answer to a request that was sent: its receipt.
fn receipt(body: &str) -> Reply {
    let body: Value = serde_json::from_str(body).unwrap();
    let receipt = json!({"v": 1, "request_id": body["requestId"], "reply_pending": true, "state": "submitted"});
    Reply::Answer(202, "", receipt.to_string())
}

fn refusal(status: u16, code: &str) -> String {
    json!({"error": "the daemon's own words", "code": code, "input_written": "no", "status": status}).to_string()
}

/// Every command that asks one question, and how each refusal ends it.
#[test]
fn every_refusal_ends_a_command_with_its_status_and_one_line_that_names_the_code() {
    let send = &["send", "S", "--return-final", "hello"][..];
    let (get, watch) = (&["request", "get", "x"][..], &["request", "watch", "--once"][..]);
    let ack = &["request", "ack", "billing", "9"][..];
    for (words, status, code, expected) in [
        (send, 400, "invalid_prompt", 2),
        (send, 404, "session_not_found", 3),
        (send, 410, "request_id_expired", 3),
        (send, 422, "request_id_reused", 4),
        (send, 409, "busy", 5),
        (send, 409, "stale_incarnation", 5),
        (send, 409, "session_tainted", 5),
        (send, 429, "too_many_requests", 5),
        (send, 401, "unauthorized", 5),
        (send, 503, "store_unavailable", 8),
        (send, 503, "store_corrupt", 8),
        (send, 507, "storage_full", 8),
        (send, 500, "internal_error", 1),
        (&["send", "S", "hello"], 404, "session_not_found", 3),
        (get, 404, "request_not_found", 3),
        (get, 410, "request_id_expired", 3),
        (&["request", "cancel", "x"], 404, "request_not_found", 3),
        (&["request", "list"], 503, "store_corrupt", 8),
        (&["request", "wait", "x"], 404, "request_not_found", 3),
        (watch, 410, "cursor_too_old", 6),
        (watch, 409, "cursor_ahead", 7),
        (watch, 409, "stream_changed", 7),
        (watch, 409, "stream_diverged", 7),
        (watch, 503, "store_corrupt", 8),
        (ack, 409, "cursor_ahead", 7),
    ] {
        let daemon = Scripted::always(status, &refusal(status, code));
        let output = daemon.run(words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(expected), "{words:?} {code}: {said}");
        assert_eq!((stdout(&output).as_str(), said.lines().count()), ("", 1), "{words:?} {code}: {said}");
        assert!(said.starts_with(&format!("turnd: {code}: the daemon's own words")), "{words:?} {code}: {said}");
        assert_eq!(daemon.heard().len(), 1, "{words:?} {code}");
    }
}

#[test]
fn where_nobody_listens_every_command_says_so_at_once() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    for words in [
        &["send", "S", "--return-final", "hello"][..],
        &["send", "S", "hello"],
        &["request", "get", "x"],
        &["request", "cancel", "x"],
        &["request", "list"],
        &["request", "wait", "x"],
        &["request", "watch"],
        &["request", "ack", "billing", "1"],
    ] {
        let output = turnd(&[words, &["--url", &url]].concat());
        assert_eq!(output.status.code(), Some(9), "{words:?}");
        assert!(stderr(&output).starts_with("turnd: cannot reach the daemon"), "{}", stderr(&output));
        assert!(!stderr(&output).contains("unknown"), "nothing was sent: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_meant_ends_with_2_before_anything_is_sent() {
    let daemon = Scripted::always(500, "");
    for words in [
        &["send", "S", "--request-id", "x", "hello"][..],
        &["send", "S", "--return-final", "--request-id", "a b", "hello"],
        &["send", "S", "--return-final"],
        &["send", "S", "--return-final", ""],
        &["send", "S", ""],
        &["request", "get", ""],
        &["request", "watch", "--after", "1", "--cursor", "c"],
        &["request", "get", "x", "--url", "localhost:4170"],
        &["request", "get", "x", "--url", "http://me:s3cret@localhost"],
        &["request", "get", "x", "--token", "s3cret\n"],
    ] {
        let output = daemon.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("s3cret"), "{}", stderr(&output));
    }
    assert_eq!(daemon.heard().len(), 0);
}

#[test]
fn the_same_id_goes_out_on_every_try_until_an_answer_settles_it() {
    let daemon = Scripted::play(|request, before| match before {
        0 | 2 => Reply::HangUp,
        1 => Reply::Answer(503, "retry-after: 0\r\n", refusal(503, "draining")),
        3 => Reply::Answer(504, "", "<html>".into()),
        4 => Reply::Answer(503, "", refusal(503, "store_busy")),
        _ => receipt(&request.body),
    });
    let output = daemon.run(&["send", "S/1", "--return-final", "--queue", "--final-timeout-ms", "5000", "hello"]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "that it waits is said once: {said}");
    assert!(said.contains("broke off"), "with the reason: {said}");
    assert!(said.ends_with("; the same request again, for up to 5000 ms\n"), "and the request's own deadline: {said}");
    let heard = daemon.heard();
    assert_eq!(heard.len(), 6);
    for request in &heard {
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/session/S%2F1/return-requests"));
        assert_eq!(request.body, heard[0].body);
    }
    let body: Value = serde_json::from_str(&heard[0].body).unwrap();
    let id = body["requestId"].as_str().unwrap();
    assert_eq!(id.parse::<uuid::Uuid>().unwrap().get_version_num(), 7);
    let expected = json!({
        "requestId": id, "prompt": [{"type": "text", "text": "hello"}], "timeoutMs": 5000, "queue": true
    });
    assert_eq!(body, expected);
    assert_eq!(serde_json::from_str::<Value>(&stdout(&output)).unwrap()["request_id"], id);
}

#[test]
fn tries_have_an_end_and_the_id_is_told_with_which_to_send_again() {
    let daemon = Scripted::play(|_, _| Reply::HangUp);
    let output = daemon.run(&["send", "S", "--return-final", "hello"]);
    let body: Value = serde_json::from_str(&daemon.heard()[0].body).unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert_eq!(stderr(&output).lines().count(), 2);
    assert!(stderr(&output).lines().next().unwrap().ends_with("the same request again, up to 8 times"));
    assert!(stderr(&output).contains(&format!("--request-id {}", body["requestId"].as_str().unwrap())));
    assert_eq!(daemon.heard().len(), 9);
}

#[test]
fn a_refusal_behind_a_lost_try_says_that_the_try_may_have_been_taken() {
    let daemon = Scripted::play(|_, before| match before {
        0 => Reply::HangUp,
        _ => Reply::Answer(404, "", refusal(404, "session_not_found")),
    });
    let output = daemon.run(&["send", "S", "--return-final", "--request-id", "job-1", "hello"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("whether it was taken is unknown: send the same again with --request-id job-1"));
}

/// A refusal that comes before the id is read proves nothing: another call may have sent it.
#[test]
fn a_refusal_is_called_certain_only_where_it_says_that_nothing_was_sent() {
    let send = ["send", "S", "--return-final", "--request-id", "job-1", "hello"];
    let unknown = "whether it was taken is unknown: send the same again with --request-id job-1";
    for (status, code, written, expected) in [
        (409, "busy", json!("no"), 5),
        (429, "queue_full", json!("no"), 5),
        (429, "rate_limited", json!("maybe"), 9),
        (401, "unauthorized", json!("maybe"), 9),
        (403, "origin_not_allowed", json!("maybe"), 9),
        (413, "payload_too_large", json!("maybe"), 9),
        (409, "busy", json!("yes"), 9),
        // A proxy's.
        (403, "", Value::Null, 9),
    ] {
        let body = json!({"error": "no", "code": code, "input_written": written}).to_string();
        let output = Scripted::always(status, &body).run(&send);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(expected), "{status} {written}: {said}");
        assert_eq!((said.contains(unknown), said.lines().count()), (expected == 9, 1), "{status} {written}: {said}");
    }
    // A proof of now is none of a try that is still on its way.
    let daemon = Scripted::play(|_, before| match before {
        0 => Reply::HangUp,
        _ => Reply::Answer(409, "", refusal(409, "busy")),
    });
    assert_eq!(daemon.run(&send).status.code(), Some(9));
    // A plain prompt has an id that no other call can have sent.
    assert_eq!(Scripted::always(401, r#"{"error":"no"}"#).run(&["send", "S", "hello"]).status.code(), Some(5));
}

#[test]
fn an_answer_that_does_not_name_what_was_asked_about_is_not_taken_for_one_that_does() {
    for body in [
        "<html>welcome</html>",
        "{}",
        r#"{"request_id":"another","state":"completed"}"#,
        r#"{"promptId":"job-1","name":"another"}"#,
        r#"["job-1"]"#,
    ] {
        let daemon = Scripted::always(200, body);
        for words in [
            &["send", "S", "--return-final", "--request-id", "job-1", "hello"][..],
            &["send", "S", "hello"],
            &["request", "get", "job-1"],
            &["request", "cancel", "job-1"],
            &["request", "wait", "job-1"],
            &["request", "list"],
            &["request", "watch", "--once"],
            &["request", "ack", "job-1", "7"],
        ] {
            let output = daemon.run(words);
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{words:?} {body}");
            assert!(stderr(&output).starts_with("turnd: unexpected answer"), "{words:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn text_from_stdin_is_sent_to_the_last_byte() {
    let daemon = Scripted::play(|request, _| receipt(&request.body));
    let words = ["send", "S", "--return-final", "--request-id", "job-1", "--incarnation", "i-7"];
    let mut child = daemon.command(&words).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b" two\nlines \n").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let body: Value = serde_json::from_str(&daemon.heard()[0].body).unwrap();
    let expected = json!({
        "requestId": "job-1", "prompt": [{"type": "text", "text": " two\nlines \n"}], "expectedIncarnation": "i-7"
    });
    assert_eq!(body, expected, "without a deadline none is named");
}

#[test]
fn a_plain_prompt_is_sent_again_only_to_a_daemon_that_knows_its_id() {
    for (tags, tries, status) in [(json!(["prompt_id_override"]), 2, 0), (json!([]), 1, 9)] {
        let daemon = Scripted::play(move |request, before| match (request.target.as_str(), before) {
            ("/capabilities", _) => Reply::Answer(200, "", json!({"features": tags}).to_string()),
            (_, 0) => Reply::HangUp,
            _ => {
                let body: Value = serde_json::from_str(&request.body).unwrap();
                Reply::Answer(202, "", json!({"promptId": body["promptId"], "lastEventId": 0}).to_string())
            }
        });
        let output = daemon.run(&["send", "S", "hello"]);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let heard: Vec<_> =
            daemon.heard().into_iter().filter(|request| request.target == "/session/S/prompt").collect();
        assert_eq!(heard.len(), tries);
        assert!(heard.iter().all(|request| request.body == heard[0].body));
        if status != 0 {
            let body: Value = serde_json::from_str(&heard[0].body).unwrap();
            assert!(stderr(&output).contains(body["promptId"].as_str().unwrap()), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_request_is_printed_byte_for_byte_as_one_line() {
    let body = "{\"request_id\" :\"x:1\",\r\n \"name\":\"a b\",\"c\":\"x\\ny\u{fc}\",\"d\":1.0}\n";
    let expected = "{\"request_id\" :\"x:1\",   \"name\":\"a b\",\"c\":\"x\\ny\u{fc}\",\"d\":1.0}\n";
    for words in [
        &["request", "get", "x:1"][..],
        &["request", "cancel", "x:1"],
        &["request", "cancel", "x:1", "--interrupt"],
        &["request", "ack", "a b", "7"],
    ] {
        let daemon = Scripted::always(200, body);
        let output = daemon.run(words);
        assert_eq!(stdout(&output), expected, "{words:?}");
        let request = &daemon.heard()[0];
        let said = (request.method.as_str(), request.target.as_str(), request.body.as_str());
        let expected = match (words[1], words.len()) {
            ("get", _) => ("GET", "/return-requests/x:1", ""),
            ("cancel", 3) => ("POST", "/return-requests/x:1/cancel", "{}"),
            ("cancel", _) => ("POST", "/return-requests/x:1/cancel", r#"{"interrupt":true}"#),
            _ => ("PUT", "/return-requests/consumers/a%20b", r#"{"acked":7}"#),
        };
        assert_eq!(said, expected, "{words:?}");
    }
}

#[test]
fn a_list_follows_its_pages_and_prints_one_object_a_line() {
    let daemon = Scripted::play(|request, _| {
        let body = match request.target.split_once("&page=") {
            None => json!({"requests": [{"request_id": "a"}, {"request_id": "b"}], "next_page": "p/2"}),
            Some((_, "p%2F2")) => json!({"requests": [], "next_page": "p3"}),
            Some((_, page)) => json!({"requests": [{"request_id": page}], "next_page": null}),
        };
        Reply::Answer(200, "", body.to_string())
    });
    let output = daemon.run(&["request", "list", "--state", "bound", "--session", "S"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "{\"request_id\":\"a\"}\n{\"request_id\":\"b\"}\n{\"request_id\":\"p3\"}\n");
    let heard = daemon.heard();
    assert!(heard.iter().all(|request| request.target.contains("state=bound&session=S")), "{heard:?}");
    assert_eq!(heard.len(), 3);
}

#[test]
fn a_daemon_that_answers_slowly_is_waited_for_and_asked_once() {
    let (release, reply) = held(Reply::Answer(200, "", r#"{"request_id":"x","state":"completed"}"#.into()));
    let mut reply = Some(reply);
    let daemon = Scripted::play(move |_, _| reply.take().unwrap_or(Reply::HangUp));
    let mut child = daemon.start(&["request", "wait", "x"]);
    until("the request was heard", || (!daemon.heard().is_empty()).then_some(()));
    assert!(child.0.try_wait().unwrap().is_none(), "it waits");
    release.send(()).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert_eq!(daemon.heard().len(), 1);
}

#[test]
fn a_wait_ends_with_what_became_of_the_request() {
    for (state, flags, expected) in [
        ("completed", &[][..], 0),
        ("aborted", &[], 10),
        ("timed_out", &[], 10),
        ("cancelled", &[], 10),
        ("delivery_failed", &[], 10),
        ("indeterminate", &[], 10),
        ("registered", &["--timeout-ms", "0"], 11),
        ("submitted", &["--timeout-ms", "0"], 11),
        ("bound", &["--timeout-ms", "30"], 11),
        ("resting", &[], 1),
    ] {
        let body = json!({"request_id": "x", "state": state}).to_string();
        let daemon = Scripted::always(200, &body);
        let output = daemon.run(&[&["request", "wait", "x"], flags].concat());
        assert_eq!(output.status.code(), Some(expected), "{state}: {}", stderr(&output));
        let printed = if expected == 1 { String::new() } else { format!("{body}\n") };
        assert_eq!(stdout(&output), printed, "{state}");
    }
}

#[test]
fn a_wait_goes_on_over_lost_connections_and_a_daemon_that_comes_back() {
    let daemon = Scripted::play(|_, before| match before {
        0 | 3 => Reply::HangUp,
        1 => Reply::Answer(503, "retry-after: 0\r\n", refusal(503, "store_unavailable")),
        2 => Reply::Answer(200, "", r#"{"request_id":"x","state":"bound"}"#.into()),
        _ => Reply::Answer(200, "", r#"{"request_id":"x","state":"completed"}"#.into()),
    });
    let output = daemon.run(&["request", "wait", "x"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "{\"request_id\":\"x\",\"state\":\"completed\"}\n")
    );
    assert!(daemon.heard().iter().all(|request| request.target == "/return-requests/x?wait_ms=30000"));
    // Of what is still pending too soon it is asked again, but not in a rush.
    let limited = daemon.run(&["request", "wait", "x", "--timeout-ms", "0"]);
    assert_eq!(limited.status.code(), Some(0));
    assert_eq!(daemon.heard().last().unwrap().target, "/return-requests/x?wait_ms=0");
}

#[test]
fn the_token_is_sent_and_never_shown() {
    let daemon = Scripted::always(401, &refusal(401, "unauthorized"));
    for words in [
        &["send", "S", "--return-final", "hello"][..],
        &["request", "get", "x"],
        &["--log-level", "trace", "request", "watch", "--once"],
        &["request", "wait", "--help"],
    ] {
        let output = daemon.command(words).env("TURND_TOKEN", "s3cret").output().unwrap();
        assert!(!stdout(&output).contains("s3cret") && !stderr(&output).contains("s3cret"), "{words:?}");
    }
    let heard = daemon.heard();
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|request| request.head.contains("authorization: bearer s3cret")), "{heard:?}");
    let silent = daemon.command(&["request", "get", "x"]).env("TURND_TOKEN", "").output().unwrap();
    assert_eq!(silent.status.code(), Some(5));
    assert!(!daemon.heard().last().unwrap().head.contains("authorization"), "an empty token is none");
}

#[test]
fn help_shows_the_exit_statuses_and_two_examples_for_each_command() {
    let subcommands = ["get", "cancel", "list", "wait", "watch", "ack"];
    let stores = ["verify", "export", "recover"].map(|name| vec!["request", "store", name]);
    let others = [vec!["send"], vec!["request"], vec!["request", "store"], vec!["completions"], vec!["man"]];
    let hooks = ["list", "show", "add", "remove", "resume", "rotate", "retire", "dead-letters", "redeliver"];
    let hooks = hooks.map(|name| vec!["webhook", name]).into_iter().chain([vec!["webhook"]]);
    for words in subcommands.map(|name| vec!["request", name]).into_iter().chain(stores).chain(others).chain(hooks) {
        let text = stdout(&turnd(&[&words[..], &["--help"]].concat()));
        let examples = text.split("\nExamples:\n").nth(1).unwrap_or_default();
        let shown = examples.lines().take_while(|line| line.starts_with("  ")).filter(|line| line.contains("turnd "));
        assert_eq!(shown.count(), 2, "{words:?}: {text}");
        let lists = text.contains("\nExit status:\n  0    done\n") && text.contains("\n  11   wait:");
        assert_eq!(lists, ["send", "request", "webhook"].contains(&words[0]), "{words:?}: {text}");
    }
}

#[test]
fn completions_and_manual_pages_come_from_the_definitions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = turnd(&["completions", shell]);
        assert!(output.status.success());
        for word in ["return-final", "final-timeout-ms", "delivery_failed", "watch", "dead-letters"] {
            assert!(stdout(&output).contains(word), "{shell} does not know {word}");
        }
    }
    assert_eq!(turnd(&["completions", "csh"]).status.code(), Some(2));
    assert!(stdout(&turnd(&["man"])).contains(".TH turnd 1"));
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert!(turnd(&["man", pages.to_str().unwrap()]).status.success());
    let page = std::fs::read_to_string(pages.join("turnd-request-watch.1")).unwrap();
    assert!(page.contains("terminal_event_sequence"));
    assert!(pages.join("turnd.1").exists() && !pages.join("turnd-host.1").exists());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = turnd(&["man", folder.path().join("file/man1").to_str().unwrap()]);
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1));
}

#[test]
fn an_output_that_nobody_reads_is_no_panic() {
    let daemon = Scripted::always(200, r#"{"request_id":"x","requests":[{"a":1}],"state":"completed"}"#);
    for words in [
        &["request", "get", "x"][..],
        &["request", "list"],
        &["request", "wait", "x"],
        &["completions", "bash"],
        &["man"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = daemon.command(words).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(141), ""), "{words:?}");
    }
}
