//! The whole answer: all of it, any part of it, and the truth where there is none.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Answer, Connection};
use crate::daemon::Daemon;
use crate::peer::long;

async fn result(daemon: &Daemon, session: &str, prompt: &str, headers: &[(&str, &str)]) -> Answer {
    daemon.ask_with(&format!("GET /session/{session}/turns/{prompt}/result"), headers, "").await
}

fn transcript(daemon: &Daemon, session: &str) -> PathBuf {
    daemon.chats().join(format!("{session}.jsonl"))
}

/// Writes the transcript anew, each line as `change` wants it.
fn rewrite(daemon: &Daemon, session: &str, change: impl Fn(Value) -> Option<Value>) {
    let path = transcript(daemon, session);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().filter_map(|line| change(serde_json::from_str(line).unwrap()));
    std::fs::write(path, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// A daemon of the next life, the session loaded.
async fn next_life(daemon: Daemon, session: &str) -> Daemon {
    let daemon = daemon.restart().await;
    assert_eq!(daemon.post(&format!("/session/{session}/load"), json!({})).await.status, 200);
    daemon
}

#[tokio::test]
async fn a_short_answer_is_what_the_poll_says() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    let answer = result(&daemon, &session, &prompt, &[]).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"echo: hello"[..]));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.header("content-length"), Some("11"));
    assert_eq!(answer.header("accept-ranges"), Some("bytes"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    // As `sha256sum` and `base64` say it of these eleven bytes.
    assert_eq!(
        answer.header("etag"),
        Some("\"sha256-69702342753d019a16c9cc15226677ac7110568204edab9b39e3b4743a8be2c6\"")
    );
    assert_eq!(answer.header("repr-digest"), Some("sha-256=:aXAjQnU9AZoWycwVImZ3rHEQVoIE7aubOeO0dDqL4sY=:"));
    assert_eq!(daemon.turn(&session, &prompt).await.json()["resultText"], "echo: hello");
}

#[tokio::test]
async fn a_long_answer_is_given_whole_and_the_poll_shows_its_beginning() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let expected = long(1_500_000);
    let prompt = daemon.run(&session, "long 1500000").await;
    daemon.run(&session, "something later").await;
    for _ in 0..2 {
        let answer = result(&daemon, &session, &prompt, &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.verdict());
        assert!(answer.body == expected.as_bytes());
        let turn = daemon.turn(&session, &prompt).await.json();
        assert_eq!((&turn["resultTruncated"], &turn["resultCode"]), (&json!(true), &json!("RESULT_TEXT_TRUNCATED")));
        assert!(expected.starts_with(turn["resultText"].as_str().unwrap()));
    }
    // The same in the next life, of which nothing is remembered.
    let etag = result(&daemon, &session, &prompt, &[]).await.header("etag").unwrap().to_owned();
    let daemon = next_life(daemon, &session).await;
    let answer = result(&daemon, &session, &prompt, &[]).await;
    assert!(answer.body == expected.as_bytes() && answer.header("etag") == Some(&etag));
}

#[tokio::test]
async fn a_part_of_an_answer_is_given_with_its_place() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    for prompt in [daemon.run(&session, "long 700000").await, daemon.run(&session, "hello").await] {
        let whole = result(&daemon, &session, &prompt, &[]).await.body;
        let length = whole.len();
        let last = length - 1;
        for (range, from, to) in [
            ("bytes=0-0".to_owned(), 0, 1),
            ("bytes=3-8".to_owned(), 3, 9),
            (format!("bytes={last}-"), last, length),
            ("bytes=-5".to_owned(), length - 5, length),
            ("bytes=2-999999999".to_owned(), 2, length),
        ] {
            let part = result(&daemon, &session, &prompt, &[("range", &range)]).await;
            assert_eq!(part.status, 206, "{range}");
            assert_eq!(part.header("content-range").unwrap(), format!("bytes {from}-{}/{length}", to - 1), "{range}");
            assert!(part.body == whole[from..to], "{range}");
        }
        let none = result(&daemon, &session, &prompt, &[("range", &format!("bytes={length}-"))]).await;
        assert_eq!((none.verdict().as_str(), &none.json()["size"]), ("416 range_not_satisfiable", &json!(length)));
        assert_eq!(none.header("content-range").unwrap(), format!("bytes */{length}"));
        for odd in ["bytes=5-3", "lines=0-1", "bytes=0-1,3-4"] {
            let all = result(&daemon, &session, &prompt, &[("range", odd)]).await;
            assert!(all.status == 200 && all.body == whole, "{odd}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_the_client_has_is_not_sent_again() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "hello").await;
    let etag = result(&daemon, &session, &prompt, &[]).await.header("etag").unwrap().to_owned();
    for tags in [etag.as_str(), &format!("\"x\", W/{etag}"), "*"] {
        let same = result(&daemon, &session, &prompt, &[("if-none-match", tags)]).await;
        assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, Some(etag.as_str())), "{tags}");
    }
    assert_eq!(result(&daemon, &session, &prompt, &[("if-none-match", "\"x\"")]).await.status, 200);
    let part = |condition: String| {
        let (daemon, session, prompt) = (&daemon, &session, &prompt);
        async move { result(daemon, session, prompt, &[("range", "bytes=0-1"), ("if-range", &condition)]).await.status }
    };
    assert_eq!(part(etag.clone()).await, 206);
    assert_eq!(part("\"x\"".to_owned()).await, 200, "the client has the rest of another text");
}

#[tokio::test]
async fn a_head_has_all_that_the_answer_has_but_the_text() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "long 100000").await;
    let whole = result(&daemon, &session, &prompt, &[]).await;
    let mut connection = Connection::open(daemon.address).await;
    let path = format!("/session/{session}/turns/{prompt}/result");
    connection.ask(&format!("HEAD {path}"), &[("range", "bytes=0-1")], b"").await;
    let head = connection.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    for name in ["content-length", "etag", "repr-digest", "accept-ranges", "content-type"] {
        let line = format!("{name}: {}\r\n", whole.header(name).unwrap());
        assert!(head.to_lowercase().contains(&line.to_lowercase()), "{line} {head}");
    }
    connection.ask("GET /health", &[], b"").await;
    assert_eq!(connection.answer().await.status, 200, "nothing else was sent");
}

#[tokio::test]
async fn an_answer_without_text_is_empty_and_says_so() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "older words").await;
    let prompt = daemon.run(&session, "silent").await;
    let check = async |daemon: &Daemon| {
        let answer = result(daemon, &session, &prompt, &[]).await;
        assert_eq!((answer.status, answer.body.len(), answer.header("turnd-no-text")), (200, 0, Some("true")));
        let turn = daemon.turn(&session, &prompt).await.json();
        assert_eq!(
            (&turn["state"], &turn["noText"], turn.get("resultText")),
            (&json!("completed"), &json!(true), None)
        );
    };
    check(&daemon).await;
    let daemon = next_life(daemon, &session).await;
    check(&daemon).await;
    let said = daemon.run(&session, "hello").await;
    assert_eq!(daemon.turn(&session, &said).await.json().get("noText"), None);
}

#[tokio::test]
async fn what_has_not_ended_or_never_was_has_no_answer() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let running = daemon.prompt(&session, "hold").await["promptId"].as_str().unwrap().to_owned();
    let queued = daemon.prompt(&session, "x").await["promptId"].as_str().unwrap().to_owned();
    for (prompt, state) in [(&running, "running"), (&queued, "queued")] {
        let answer = result(&daemon, &session, prompt, &[]).await;
        assert_eq!((answer.verdict().as_str(), &answer.json()["state"]), ("409 turn_not_settled", &json!(state)));
    }
    for nobody in ["nope", "current"] {
        assert_eq!(result(&daemon, &session, nobody, &[]).await.verdict(), "404 prompt_not_found");
    }
    assert_eq!(result(&daemon, "gone", &running, &[]).await.verdict(), "404 session_not_found");
    let odd = daemon.get(&format!("/session/{session}/turns/{running}/result?partial=yes")).await;
    assert_eq!(odd.verdict(), "400 invalid_partial");
}

#[tokio::test]
async fn a_turn_that_did_not_complete_has_no_answer_and_its_words_only_on_demand() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let failed = daemon.run(&session, "fail").await;
    let answer = result(&daemon, &session, &failed, &[]).await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["state"]), ("404 no_result", &json!("error")));
    assert_eq!((&answer.json()["errorCode"], &answer.json()["hasPartial"]), (&json!("-32603"), &json!(false)));
    assert!(answer.json()["endedAt"].is_u64());
    let partial = format!("/session/{session}/turns/{failed}/result?partial=1");
    assert_eq!(daemon.get(&partial).await.verdict(), "404 no_result", "it said nothing");
    // A turn that was cancelled behind some words.
    let cut = json!({
        "promptId": "cut", "state": "cancelled", "stopReason": "cancelled", "endedAt": 9, "partialText": "half of it",
    });
    rewrite(&daemon, &session, |mut line| {
        if line["systemPayload"]["promptId"] == failed.as_str() {
            line["systemPayload"] = cut.clone();
        }
        Some(line)
    });
    let answer = result(&daemon, &session, "cut", &[]).await;
    assert_eq!((answer.verdict().as_str(), &answer.json()["hasPartial"]), ("404 no_result", &json!(true)));
    let said = daemon.get(&format!("/session/{session}/turns/cut/result?partial=1")).await;
    assert_eq!((said.status, said.body.as_slice()), (200, &b"half of it"[..]));
    assert_eq!((said.header("turnd-partial"), said.header("turnd-truncated")), (Some("true"), None));
}

#[tokio::test]
async fn an_answer_whose_text_is_gone_is_told_from_one_that_never_was() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.run(&session, "long 100000").await;
    let expired = async |daemon: &Daemon, reason: &str| {
        let answer = result(daemon, &session, &prompt, &[]).await;
        assert_eq!(answer.verdict(), "410 result_expired", "{reason}");
        let body = answer.json();
        assert_eq!((&body["state"], &body["reason"]), (&json!("completed"), &json!(reason)));
        assert!(body["endedAt"].is_u64(), "{body}");
    };
    // The answer's record is not there; what stands before the result is the prompt.
    let kept = std::fs::read(transcript(&daemon, &session)).unwrap();
    rewrite(&daemon, &session, |mut line| {
        if line["type"] == "assistant" {
            line["message"]["parts"] = json!([{ "text": "another turn's words" }]);
        }
        Some(line)
    });
    expired(&daemon, "uncertain").await;
    // The host had no room for all of it.
    std::fs::write(transcript(&daemon, &session), &kept).unwrap();
    rewrite(&daemon, &session, |mut line| {
        if line["subtype"] == "turn_result" {
            line["systemPayload"]["resultUnrecordedBytes"] = 5.into();
        }
        Some(line)
    });
    expired(&daemon, "not_recorded").await;
    // Memory knows the outcome and the beginning of the text.
    std::fs::remove_file(transcript(&daemon, &session)).unwrap();
    expired(&daemon, "not_recorded").await;
    // Only the ledger knows the outcome.
    std::fs::write(transcript(&daemon, &session), &kept).unwrap();
    let daemon = next_life(daemon, &session).await;
    rewrite(&daemon, &session, |line| (line["subtype"] != "turn_result").then_some(line));
    expired(&daemon, "out_of_reach").await;
    assert_eq!(daemon.turn(&session, &prompt).await.json().get("noText"), None, "what it said is not known");
    assert_eq!(result(&daemon, &session, "nope", &[]).await.verdict(), "404 prompt_not_found");
}

#[tokio::test]
async fn a_reader_that_leaves_in_the_middle_costs_nobody_anything() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "long 3000000").await["promptId"].as_str().unwrap().to_owned();
    let turn = daemon.get(&format!("/session/{session}/turns/{prompt}?wait_ms=60000")).await.json();
    assert_eq!(turn["state"], "completed");
    for _ in 0..4 {
        let mut connection = Connection::open(daemon.address).await;
        connection.ask(&format!("GET /session/{session}/turns/{prompt}/result"), &[], b"").await;
        assert!(connection.head().await.unwrap().starts_with("HTTP/1.1 200 "));
    }
    let part = result(&daemon, &session, &prompt, &[("range", "bytes=2999000-2999999")]).await;
    assert!(part.status == 206 && part.body == long(3_000_000).as_bytes()[2_999_000..3_000_000]);
}

#[tokio::test]
async fn all_that_was_said_in_a_cancelled_turn_is_given_on_demand_and_marked_as_no_answer() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let prompt = daemon.prompt(&session, "spoken").await["promptId"].as_str().unwrap().to_owned();
    let mut stream = daemon.events(&session).await;
    while stream.until(&["session_update"]).await["data"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    daemon.post(&format!("/session/{session}/cancel"), json!({})).await;
    stream.until(&["turn_complete"]).await;
    let path = format!("GET /session/{session}/turns/{prompt}/result?partial=1");
    let check = async |daemon: &Daemon| {
        let said = daemon.ask(&path, "").await;
        assert!(said.status == 200 && said.body == long(100_000).as_bytes(), "{}", said.body.len());
        assert_eq!((said.header("turnd-partial"), said.header("turnd-truncated")), (Some("true"), None));
        let part = daemon.ask_with(&path, &[("range", "bytes=99000-99009")], "").await;
        assert_eq!((part.status, part.header("turnd-partial")), (206, Some("true")));
        assert_eq!(part.body, &said.body[99_000..99_010]);
        let answer = result(daemon, &session, &prompt, &[]).await;
        assert_eq!((answer.verdict().as_str(), &answer.json()["hasPartial"]), ("404 no_result", &json!(true)));
        let polled = daemon.turn(&session, &prompt).await.json();
        assert!(long(100_000).starts_with(polled["partialText"].as_str().unwrap()), "the poll shows its beginning");
    };
    check(&daemon).await;
    let daemon = next_life(daemon, &session).await;
    check(&daemon).await;
    // The words are gone; what the result holds of them is there, and said to be cut.
    rewrite(&daemon, &session, |line| (line["type"] != "assistant").then_some(line));
    let said = daemon.ask(&path, "").await;
    assert!(said.status == 200 && long(100_000).as_bytes().starts_with(&said.body) && said.body.len() > 32_000);
    assert_eq!((said.header("turnd-partial"), said.header("turnd-truncated")), (Some("true"), Some("true")));
}
