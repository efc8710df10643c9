//! The history of a session page by page, and how it was left (wire rules, section 13.8).

use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use crate::daemon::Daemon;

async fn page(daemon: &Daemon, session: &str, query: &str) -> Value {
    let answer = daemon.get(&format!("/session/{session}/transcript{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.verdict());
    answer.json()
}

fn texts(page: &Value) -> Vec<&str> {
    page["events"].as_array().unwrap().iter().map(|event| event["data"]["content"]["text"].as_str().unwrap()).collect()
}

/// All texts of all pages, page by page.
async fn walk(daemon: &Daemon, session: &str, query: &str) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), String::new());
    loop {
        let page = page(daemon, session, &format!("?{query}{next}")).await;
        pages.push(texts(&page).into_iter().map(str::to_owned).collect());
        assert_eq!(page["hasMore"], page.get("nextCursor").is_some());
        let Some(cursor) = page["nextCursor"].as_str() else { return pages };
        next = format!("&cursor={cursor}");
    }
}

async fn with_two_turns() -> (Daemon, String) {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    daemon.run(&session, "one").await;
    daemon.run(&session, "two").await;
    (daemon, session)
}

#[tokio::test]
async fn a_session_is_paged_both_ways_whether_it_lives_or_not() {
    let (daemon, session) = with_two_turns().await;
    let mut daemon = daemon;
    for _ in 0..2 {
        let whole = page(&daemon, &session, "").await;
        assert_eq!(texts(&whole), ["one", "echo: one", "two", "echo: two"]);
        assert_eq!((&whole["v"], &whole["sessionId"], &whole["hasMore"]), (&json!(1), &json!(session), &json!(false)));
        assert!(whole["startTime"].as_str() <= whole["lastUpdated"].as_str(), "{whole}");
        // Three records a turn: question, answer and result, of which the last shows nothing.
        assert_eq!(walk(&daemon, &session, "limit=4").await, [["one", "echo: one", "two"].as_slice(), &["echo: two"]]);
        let backward = walk(&daemon, &session, "direction=backward&limit=2").await;
        assert_eq!(backward, [["echo: two"].as_slice(), &["two"], &["one", "echo: one"]]);
        daemon = daemon.restart().await;
    }
}

#[tokio::test]
async fn pages_of_one_walk_show_what_stood_there_when_it_began() {
    let (daemon, session) = with_two_turns().await;
    let first = page(&daemon, &session, "?limit=3").await;
    daemon.run(&session, "three").await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = page(&daemon, &session, &format!("?limit=500&cursor={cursor}")).await;
    assert_eq!((texts(&second), &second["hasMore"]), (vec!["two", "echo: two"], &json!(false)));
}

#[tokio::test]
async fn a_session_without_a_word_has_an_empty_history() {
    let daemon = Daemon::start().await;
    let session = daemon.create().await;
    let empty = page(&daemon, &session, "").await;
    assert_eq!(
        (&empty["events"], &empty["hasMore"], empty["startTime"].is_string()),
        (&json!([]), &json!(false), true)
    );
}

#[tokio::test]
async fn a_cursor_is_taken_only_as_it_was_given_out() {
    let (daemon, session) = with_two_turns().await;
    let cursor = page(&daemon, &session, "?limit=1").await["nextCursor"].as_str().unwrap().to_owned();
    let other = daemon.create().await;
    daemon.run(&other, "one").await;
    let of_other = page(&daemon, &other, "?limit=1").await["nextCursor"].as_str().unwrap().to_owned();
    let unsigned = cursor.split('.').next().unwrap();
    let other_place = cursor.replace("1a", "1b");
    for cursor in ["", "x", unsigned, &other_place, &of_other] {
        let answer = daemon.get(&format!("/session/{session}/transcript?cursor={cursor}")).await;
        assert_eq!(answer.verdict(), "400 invalid_transcript_cursor", "{cursor}");
    }
    let other_way = format!("/session/{session}/transcript?direction=backward&cursor={cursor}");
    assert_eq!(daemon.get(&other_way).await.verdict(), "400 invalid_transcript_cursor");
    let daemon = daemon.restart().await;
    let answer = daemon.get(&format!("/session/{session}/transcript?cursor={cursor}")).await;
    assert_eq!(answer.verdict(), "400 invalid_transcript_cursor", "a cursor is of one life, unlike the peer's");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_for_a_page_is_said() {
    let (daemon, session) = with_two_turns().await;
    for limit in ["0", "501", "-1", "x", "", "1.0", "99999999999999999999"] {
        let answer = daemon.get(&format!("/session/{session}/transcript?limit={limit}")).await;
        assert_eq!(
            (answer.verdict().as_str(), &answer.json()["maxLimit"]),
            ("400 invalid_transcript_limit", &json!(500)),
            "{limit}"
        );
    }
    let sideways = daemon.get(&format!("/session/{session}/transcript?direction=sideways")).await;
    assert_eq!(sideways.verdict(), "400 invalid_request");
    for unknown in ["00000000-0000-4000-8000-000000000000", "..%2f..%2fetc%2fpasswd", "x"] {
        let answer = daemon.get(&format!("/session/{unknown}/transcript")).await;
        assert_eq!(answer.verdict(), "404 session_not_found", "{unknown}");
    }
}

#[tokio::test]
async fn a_transcript_that_is_not_this_sessions_or_is_put_away_has_no_pages() {
    let (daemon, session) = with_two_turns().await;
    let path = format!("/session/{session}/transcript");
    let cursor = page(&daemon, &session, "?limit=1").await["nextCursor"].as_str().unwrap().to_owned();
    let file = daemon.chats().join(format!("{session}.jsonl"));
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(daemon.chats().join("copy"), &whole).unwrap();
    std::fs::rename(daemon.chats().join("copy"), &file).unwrap();
    let replaced = daemon.get(&format!("{path}?cursor={cursor}")).await;
    assert_eq!(replaced.verdict(), "409 transcript_snapshot_unavailable");
    let daemon = daemon.restart().await;
    let name = format!("{session}.jsonl");
    daemon.write(&name, &format!("{whole}{}", whole.replace(&session, "22222222-2222-4222-8222-222222222222")));
    assert_eq!(daemon.get(&path).await.verdict(), "409 transcript_snapshot_unavailable");
    daemon.write(&name, &whole.replace("\"/ws\"", "\"/other\""));
    assert_eq!(daemon.get(&path).await.verdict(), "404 session_not_found");
    let large = whole.replacen("echo: one", &"x".repeat(5 * 1024 * 1024), 1);
    daemon.write(&name, &large);
    let answer = daemon.get(&path).await;
    assert_eq!(
        (answer.verdict().as_str(), answer.json()["maxBytes"].is_u64()),
        ("200", false),
        "the records before it fit"
    );
    let next = answer.json()["nextCursor"].as_str().unwrap().to_owned();
    let answer = daemon.get(&format!("{path}?cursor={next}")).await;
    assert_eq!(
        (answer.verdict().as_str(), answer.json()["maxBytes"].is_u64()),
        ("413 transcript_page_too_large", true)
    );
    daemon.write(&name, &whole);
    std::fs::create_dir_all(daemon.chats().join("archive")).unwrap();
    std::fs::rename(&file, daemon.chats().join("archive").join(&name)).unwrap();
    assert_eq!(daemon.get(&path).await.verdict(), "409 session_archived");
}

#[tokio::test]
async fn a_file_too_large_to_be_read_from_its_beginning_is_refused_that_way() {
    let (daemon, session) = with_two_turns().await;
    let path = format!("/session/{session}/transcript");
    let file = std::fs::File::options().write(true).open(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    // A hole behind the last record, as a system leaves one that went down: as long as it takes, and no bytes on disk.
    file.write_all_at(b"\n", 65 * 1024 * 1024).unwrap();
    let forward = daemon.get(&path).await;
    assert_eq!(
        (forward.verdict().as_str(), &forward.json()["maxBytes"]),
        ("413 transcript_too_large", &json!(64 * 1024 * 1024))
    );
}

#[tokio::test]
async fn the_context_says_how_the_conversation_was_left() {
    let (daemon, session) = with_two_turns().await;
    let context = |context: Value| context["recovery"]["kind"].clone();
    let ask = async |daemon: &Daemon| daemon.get(&format!("/session/{session}/context")).await;
    let answer = ask(&daemon).await.json();
    assert_eq!(
        (&answer["v"], &answer["workspaceCwd"], &answer["recovery"]),
        (&json!(1), &json!("/ws"), &json!({"kind": "clean", "canContinue": false}))
    );
    assert_eq!((&answer["state"]["modes"]["currentModeId"], answer["state"].get("_meta")), (&json!("default"), None));
    daemon.prompt(&session, "hold").await;
    assert_eq!(context(ask(&daemon).await.json()), "clean", "what looks open is being worked on");
    // The daemon dies, and its host with it: the question is in the file, and nothing behind it.
    daemon.hosts.die();
    let whole = std::fs::read_to_string(daemon.chats().join(format!("{session}.jsonl"))).unwrap();
    let daemon = daemon.restart().await;
    assert_eq!(ask(&daemon).await.verdict(), "404 session_not_found");
    daemon.write(&format!("{session}.jsonl"), &whole);
    daemon.post(&format!("/session/{session}/load"), json!({})).await;
    assert_eq!(context(ask(&daemon).await.json()), "interrupted_prompt");
    daemon.run(&session, "more").await;
    assert_eq!(context(ask(&daemon).await.json()), "clean");
    daemon.write(&format!("{session}.jsonl"), &whole.replacen(&session, "22222222-2222-4222-8222-222222222222", 1));
    assert_eq!(ask(&daemon).await.verdict(), "409 transcript_snapshot_unavailable", "no word about how it was left");
}
