//! Endpoints from the command line: what is sent, what is printed, and where a secret is.

use std::process::Output;

use serde_json::{Value, json};

use crate::commands::{stdout, turnd};
use crate::requests::stderr;
use crate::scripted::{Reply, Scripted};
use crate::world::World;

/// Runs `turnd webhook …` against a daemon that lives.
fn hook(world: &World, words: &[&str]) -> Output {
    let url = format!("http://{}", world.address());
    turnd(&[&["webhook"], words, &["--url", &url]].concat())
}

/// The same, which does what it is asked for.
fn told(world: &World, words: &[&str]) -> String {
    let output = hook(world, words);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{words:?}");
    stdout(&output)
}

/// The secret in an answer, as a person finds it.
fn secret(said: &str) -> String {
    let found = said.split_whitespace().find(|word| word.starts_with("whsec_"));
    found.unwrap_or_else(|| panic!("no secret in {said}")).to_owned()
}

#[test]
fn an_endpoint_is_named_looked_after_and_forgotten_and_each_secret_is_told_once() {
    let world = World::new();
    assert_eq!(told(&world, &["list"]), "");
    let first = secret(&told(&world, &["add", "pager", "http://127.0.0.1:1/hook"]));
    let newer = secret(&told(&world, &["rotate", "pager"]));
    assert_ne!(first, newer);
    let shown = told(&world, &["show", "pager"]);
    assert!(shown.contains("two sign;"), "{shown}");
    assert_eq!(hook(&world, &["rotate", "pager"]).status.code(), Some(5), "a third one");
    told(&world, &["retire", "pager"]);
    let object: Value = serde_json::from_str(&told(&world, &["show", "pager", "--json"])).unwrap();
    assert_eq!((&object["secret_count"], &object["state"]), (&json!(1), &json!("active")));
    let list = told(&world, &["list"]);
    let columns: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(columns[1], ["pager", "active", "1", "0", "0", "-", "http://127.0.0.1:1/hook"], "{list}");
    let listed: Value = serde_json::from_str(&told(&world, &["list", "--json"])).unwrap();
    assert_eq!(listed["name"], "pager");
    told(&world, &["resume", "pager"]);
    assert_eq!(told(&world, &["dead-letters", "pager"]), "");
    let ahead = hook(&world, &["redeliver", "pager", "7"]);
    assert_eq!(ahead.status.code(), Some(7), "{}", stderr(&ahead));
    for said in [shown, list, object.to_string()] {
        assert!(!said.contains("whsec_"), "{said}");
    }
    told(&world, &["remove", "pager"]);
    for words in [&["show", "pager"][..], &["remove", "pager"], &["rotate", "pager"], &["resume", "pager"]] {
        assert_eq!(hook(&world, words).status.code(), Some(3), "{words:?}");
    }
}

#[test]
fn a_secret_that_somebody_brings_comes_from_a_file_and_is_not_repeated() {
    let scratch = tempfile::tempdir().unwrap();
    let (good, bad) = (scratch.path().join("good"), scratch.path().join("bad"));
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    std::fs::write(&good, format!("{key}\n")).unwrap();
    std::fs::write(&bad, "whsec_s3cret").unwrap();
    let daemon = Scripted::play(|request, _| {
        Reply::Answer(200, "", json!({ "name": "a", "asked": request.target.len() }).to_string())
    });
    for words in [&["webhook", "add", "a", "http://b/"][..], &["webhook", "rotate", "a"]] {
        let output = daemon.run(&[words, &["--json", "--secret-file", good.to_str().unwrap()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!stdout(&output).contains("whsec_"), "{}", stdout(&output));
        let body: Value = serde_json::from_str(&daemon.heard().last().unwrap().body).unwrap();
        assert_eq!(body["secret"], key);
        for wrong in [&bad, &scratch.path().join("missing")] {
            let output = daemon.run(&[words, &["--secret-file", wrong.to_str().unwrap()]].concat());
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
            assert!(!stderr(&output).contains("s3cret"), "{}", stderr(&output));
        }
    }
    assert_eq!(daemon.heard().len(), 2);
}

#[test]
fn what_an_answer_that_was_lost_has_done_is_done_and_the_same_is_sent_again() {
    let one = json!({ "name": "a", "url": "http://b/", "state": "active", "acked": 0, "tries": 0, "secret_count": 1 });
    for (words, last, status, says) in [
        (&["add", "a", "http://b/"][..], (200, one.clone()), 0, "`turnd webhook rotate a`"),
        (&["rotate", "a"], (200, one.clone()), 0, ""),
        (&["remove", "a"], (404, json!({ "code": "webhook_not_found", "error": "none" })), 0, ""),
        (&["retire", "a"], (409, json!({ "code": "webhook_not_rotating", "error": "one" })), 0, ""),
        (&["redeliver", "a", "3"], (202, one.clone()), 0, ""),
        (
            &["resume", "a"],
            (404, json!({ "code": "webhook_not_found", "error": "none" })),
            3,
            "webhook_not_found: none",
        ),
    ] {
        let one = one.to_string();
        let daemon = Scripted::play(move |request, before| match (before, request.method.as_str()) {
            (0, _) => Reply::HangUp,
            (_, "GET") => Reply::Answer(200, "", one.clone()),
            _ => Reply::Answer(last.0, "", last.1.to_string()),
        });
        let output = daemon.run(&[&["webhook"], words].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.lines().next().unwrap().ends_with("; the same request again, up to 8 times"), "{words:?}: {said}");
        assert!(said.contains(says) && said.lines().count() == 1 + usize::from(!says.is_empty()), "{words:?}: {said}");
        let heard = daemon.heard();
        assert_eq!((&heard[0].target, &heard[0].body), (&heard[1].target, &heard[1].body), "{words:?}");
    }
}

#[test]
fn dead_letters_are_a_table_or_one_object_a_line() {
    let letter = json!({ "seq": 3, "tries": 9, "last_error": { "code": "status", "status": 500 }, "is_wanted": false });
    let body = json!({ "name": "a", "dead_letters": [letter] }).to_string();
    let daemon = Scripted::play(move |_, _| Reply::Answer(200, "", body.clone()));
    let table = stdout(&daemon.run(&["webhook", "dead-letters", "a"]));
    let expected = "EVENT  TRIES  LAST ERROR  WAITS TO BE SENT AGAIN\n3      9      status 500  no\n";
    assert_eq!(table, expected);
    let lines = stdout(&daemon.run(&["webhook", "dead-letters", "a", "--json"]));
    assert_eq!(lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>(), [letter]);
    assert_eq!(daemon.heard()[0].target, "/return-requests/webhooks/a");
}

#[test]
fn what_is_no_name_or_number_is_not_sent() {
    let daemon = Scripted::always(500, "");
    for words in [
        &["add", "a b", "http://b/"][..],
        &["add", "a"],
        &["show", ""],
        &["redeliver", "a", "0"],
        &["redeliver", "a"],
        &["retire", "a", "--which", "both"],
    ] {
        assert_eq!(daemon.run(&[&["webhook"], words].concat()).status.code(), Some(2), "{words:?}");
    }
    assert_eq!(daemon.heard().len(), 0);
}
