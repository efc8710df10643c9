//! What a daemon says that it can do, held against what it does: each capability tag with the requests that it promises.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::permission::question;
use crate::world::World;

/// What is there when the request is sent.
#[derive(Clone, Copy)]
enum Scene {
    /// The daemon.
    Empty,
    /// A session whose one prompt is answered.
    Idle,
    /// A session whose prompt runs, with words that wait for its agent.
    Running,
    /// A session whose agent asks whether it may.
    Asking,
    /// A session that lies on disk.
    Closed,
}
use Scene::{Asking, Closed, Empty, Idle, Running};

/// A tag, a request that it promises (where it is sent, how, and with which body), and what an answer to it is: the status, and what has to
/// stand where in its body.
type Row = (&'static str, Scene, &'static str, &'static str, &'static str);

/// Every tag has a row here or a line in [`UNASKED`].
const ROWS: &[Row] = &[
    ("health", Empty, "GET /health", "", "200 /status=ok"),
    ("capabilities", Empty, "GET /capabilities", "", "200 /features"),
    ("openapi", Empty, "GET /openapi.json", "", "200 /paths"),
    ("typed_event_schema", Empty, "GET /openapi.json", "", "200 /components/schemas/Event/oneOf"),
    ("permission_mediation", Empty, "GET /capabilities", "", "200 /policy/permission"),
    ("acp_websocket", Empty, "GET /acp", "", "101"),
    ("session_create", Empty, "POST /session", "{}", "200 /sessionId"),
    ("session_scope_override", Empty, "POST /session", r#"{"sessionScope":"thread"}"#, "200 /attached=false"),
    ("session_id_override", Empty, "POST /session", r#"{"sessionId":"{chosen}"}"#, "200 /sessionId={chosen}"),
    ("session_source_metadata", Empty, "POST /session", MADE_BY_BOT, "200 /sourcePersisted=true"),
    ("multi_workspace_sessions", Empty, "POST /session", r#"{"cwd":"{other}"}"#, "200 /workspaceCwd={other}"),
    ("client_identity", Empty, "POST /session", "{}", "200 /clientId"),
    ("client_identity", Idle, "POST /session/{id}/detach", "{}", "204"),
    ("client_heartbeat", Idle, "POST /session/{id}/heartbeat", "{}", "200 /clientId={client}"),
    ("session_load", Closed, "POST /session/{id}/load", "{}", "200 /compactedReplay"),
    ("session_resume", Closed, "POST /session/{id}/resume", "{}", "200 /eventEpoch"),
    ("unstable_session_resume", Closed, "POST /session/{id}/resume", "{}", "200 /eventEpoch"),
    ("session_prompt", Idle, "POST /session/{id}/prompt", r#"{"prompt":{hello}}"#, "202 /promptId"),
    ("non_blocking_prompt", Idle, "POST /session/{id}/prompt", r#"{"prompt":{slow}}"#, "202 /lastEventId"),
    ("prompt_id_override", Idle, "POST /session/{id}/prompt", CHOSEN_ID, "202 /promptId=mine"),
    // That it is read is seen by what is refused; that it is kept is another test's matter.
    ("prompt_absolute_deadline", Idle, "POST /session/{id}/prompt", NO_DEADLINE, "400 /code=invalid_deadline_ms"),
    ("prompt_run_deadline", Idle, "POST /session/{id}/prompt", NO_RUN_DEADLINE, "400 /code=invalid_run_deadline_ms"),
    ("session_turn_status", Idle, "GET /session/{id}/turns/{prompt}", "", "200 /state=completed"),
    ("session_turn_status", Idle, "GET /session/{id}/turns/{prompt}/result", "", "200"),
    ("session_turn_status", Running, "GET /session/{id}/turns/current", "", "200 /state=running"),
    ("session_mid_turn_message_mutation", Running, "POST /session/{id}/mid-turn-message", WORDS, "200 /accepted=true"),
    ("session_mid_turn_message_mutation", Running, "DELETE /session/{id}/mid-turn-messages/{message}", "", "200"),
    ("session_mid_turn_message_query", Running, "GET /session/{id}/mid-turn-messages", "", "200 /messages/0/messageId"),
    ("session_cancel", Running, "POST /session/{id}/cancel", "{}", "204"),
    ("session_events", Idle, "GET /session/{id}/events", "", "200"),
    ("slow_client_warning", Idle, "GET /session/{id}/events?maxQueued=0", "", "400 /code=invalid_max_queued"),
    ("session_permission_vote", Asking, "POST /session/{id}/permission/{request}", VOTE, "200"),
    ("permission_vote", Asking, "POST /permission/{request}", VOTE, "200"),
    ("session_status", Idle, "GET /session/{id}/status", "", "200 /activeWorkState=idle"),
    ("session_info", Idle, "GET /session/{id}/status", "", "200 /createdAt"),
    ("session_transcript", Idle, "GET /session/{id}/transcript", "", "200 /hasMore=false"),
    ("session_transcript_pagination", Idle, "GET /session/{id}/transcript?limit=1", "", "200 /nextCursor"),
    ("session_context", Idle, "GET /session/{id}/context", "", "200 /sessionId={id}"),
    ("session_list", Idle, "GET /workspace/{workspace}/sessions", "", "200 /sessions/0"),
    ("session_list", Idle, "GET /workspaces/{workspace}/sessions", "", "200 /sessions/0"),
    ("workspace_session_live_state", Idle, "GET /workspaces/{workspace}/sessions/live-state", "", "200 /sessions/0"),
    ("session_close", Idle, "DELETE /session/{id}", "", "204"),
    ("session_archive", Closed, "POST /sessions/archive", THIS_ONE, "200 /archived/0={id}"),
    ("session_archive", Closed, "POST /sessions/unarchive", THIS_ONE, "200 /alreadyActive/0={id}"),
    ("session_archive", Closed, "POST /sessions/delete", THIS_ONE, "200 /removed/0={id}"),
    ("session_branch", Idle, "POST /session/{id}/branch", "{}", "201 /forkedFrom"),
    ("session_metadata", Idle, "PATCH /session/{id}/metadata", r#"{"displayName":"n"}"#, "200 /displayName=n"),
    ("session_set_model", Idle, "POST /session/{id}/model", r#"{"modelId":"scripted-2"}"#, "200"),
    ("session_approval_mode_control", Idle, "POST /session/{id}/approval-mode", r#"{"mode":"plan"}"#, "200 /mode=plan"),
    ("session_rewind", Idle, "GET /session/{id}/rewind/snapshots", "", "200 /snapshots"),
    ("session_rewind", Idle, "POST /session/{id}/rewind", r#"{"promptId":"{prompt}"}"#, "200"),
    ("session_recap", Idle, "POST /session/{id}/recap", "{}", "200 /recap"),
    ("session_btw", Idle, "POST /session/{id}/btw", r#"{"question":"why?"}"#, "200 /answer"),
    ("session_generation", Idle, "POST /session/{id}/generate", r#"{"prompt":"hi"}"#, "200"),
    ("session_return_requests", Idle, "POST /session/{id}/return-requests", RETURN, "202 /request_id=R"),
    ("session_return_requests", Empty, "GET /return-requests", "", "200 /requests"),
    ("session_return_requests", Empty, "GET /return-requests/{request}", "", "404 /code=request_not_found"),
    ("session_return_requests", Empty, "POST /return-requests/{request}/cancel", "{}", "404 /code=request_not_found"),
    ("session_return_requests", Empty, "GET /return-requests/events", "", "200 /next_cursor"),
    ("session_return_requests", Empty, "GET /return-requests/stream", "", "200 /stream_id"),
    ("session_return_requests", Empty, "PUT /return-requests/consumers/{name}", r#"{"acked":0}"#, "200 /acked=0"),
    ("return_request_webhooks", Empty, "GET /return-requests/webhooks", "", "200 /webhooks"),
    ("return_request_webhooks", Empty, "GET /return-requests/webhooks/{name}", "", "404 /code=webhook_not_found"),
    ("return_request_webhooks", Empty, "DELETE /return-requests/webhooks/{name}", "", "404 /code=webhook_not_found"),
    (
        "return_request_webhooks",
        Empty,
        "POST /return-requests/webhooks/{name}/redeliver",
        SEQ,
        "404 /code=webhook_not_found",
    ),
    (
        "return_request_webhooks",
        Empty,
        "POST /return-requests/webhooks/{name}/resume",
        "{}",
        "404 /code=webhook_not_found",
    ),
    (
        "return_request_webhooks",
        Empty,
        "POST /return-requests/webhooks/{name}/secrets",
        "",
        "404 /code=webhook_not_found",
    ),
    (
        "return_request_webhooks",
        Empty,
        "DELETE /return-requests/webhooks/{name}/secrets/{which}",
        "",
        "404 /code=webhook_secret_not_found",
    ),
    ("return_request_webhooks", Empty, "PUT /return-requests/webhooks/{name}", HOOK, "201 /secret"),
    ("session_shell_command", Idle, "POST /session/{id}/shell", r#"{"command":"true"}"#, "200 /exitCode=0"),
    ("allow_origin", Empty, "POST /session", "{}", "200 /sessionId"),
    ("require_auth", Empty, "GET /health", "", "401"),
    ("rate_limit", Empty, "GET /capabilities", "", "429"),
];

const HOOK: &str = r#"{"url":"http://127.0.0.1:9/"}"#;
const SEQ: &str = r#"{"seq":1}"#;
const RETURN: &str = r#"{"prompt":{hello},"requestId":"R"}"#;
const MADE_BY_BOT: &str = r#"{"sessionScope":"thread","sourceType":"bot"}"#;
const CHOSEN_ID: &str = r#"{"prompt":{hello},"promptId":"mine"}"#;
const NO_DEADLINE: &str = r#"{"prompt":{hello},"deadlineMs":0}"#;
const NO_RUN_DEADLINE: &str = r#"{"prompt":{hello},"runDeadlineMs":0}"#;
const WORDS: &str = r#"{"message":"go left"}"#;
const VOTE: &str = r#"{"outcome":{"outcome":"selected","optionId":"{option}"}}"#;
const THIS_ONE: &str = r#"{"sessionIds":["{id}"]}"#;

/// What no request shows: that a reader who takes nothing is let go needs one who waits for it.
const UNASKED: &str = "writer_idle_timeout";

/// What is listed only of an agent that is known before it is greeted. Any other is asked all the same.
const OF_THE_AGENT: &[&str] = &[
    "session_set_model",
    "session_approval_mode_control",
    "session_rewind",
    "session_recap",
    "session_btw",
    "session_generation",
];

/// What a flag turns on.
const OF_FLAGS: &[&str] =
    &["session_shell_command", "allow_origin", "multi_workspace_sessions", "require_auth", "rate_limit"];

/// Paths that no tag is about, and why.
const UNTAGGED: &[(&str, &str)] = &[
    ("/session/{id}/pending-prompts", "the queue comes with `session_prompt`, and the wire has no tag for it"),
    ("/session/{id}/pending-prompts/{prompt}", "the same"),
    ("/session/{id}/fork", "the built-in agent cannot, and of a native one it is not known before it is greeted"),
    ("/session/{id}/continue", "the wire has no tag for it"),
];

/// The origin of pages that one daemon here lets in.
const ORIGIN: &str = "https://pages.example";

#[test]
fn a_tag_is_listed_exactly_when_its_requests_are_answered() {
    let mut world = World::with(&["--linger-ms", "100"]);
    let listed = listed(&mut world, "");
    let (answered, refused) = answered(&mut world, "/", |_| true);
    agree(&listed, &answered, &refused);
    agree(&listed, &tags(|tag| !OF_FLAGS.contains(&tag)), &[]);
}

#[test]
fn what_a_flag_turns_on_is_listed_with_it() {
    let other = tempfile::tempdir().unwrap();
    let other = other.path().canonicalize().unwrap().display().to_string();
    let flags = ["--enable-session-shell", "--allow-origin", ORIGIN, "--writer-idle-timeout-ms", "60000"];
    let mut world = World::with(&[&flags[..], &["--workspace", &other, "--linger-ms", "100"]].concat());
    let listed = listed(&mut world, "");
    let on = |tag: &str| OF_FLAGS.contains(&tag);
    let (answered, refused) = answered(&mut world, &other, on);
    agree(&answered, &names(&OF_FLAGS[..3]), &refused);
    let mut expected = tags(|tag| !on(tag) || answered.contains(tag));
    expected.insert(UNASKED.to_owned());
    agree(&listed, &expected, &[]);
}

#[test]
fn of_an_agent_that_nobody_knows_yet_nothing_is_promised_and_what_is_promised_is_answered() {
    let agent = format!("sh -c 'exec {} agent'", env!("CARGO_BIN_EXE_turnd"));
    let mut world = World::with(&["--agent", &agent, "--linger-ms", "100"]);
    let listed = listed(&mut world, "");
    agree(&listed, &tags(|tag| !OF_FLAGS.contains(&tag) && !OF_THE_AGENT.contains(&tag)), &[]);
    let (answered, refused) = answered(&mut world, "", |tag| listed.contains(tag));
    agree(&answered, &listed, &refused);
}

#[test]
fn a_daemon_that_asks_for_its_token_or_counts_its_callers_says_so() {
    let base = tempfile::tempdir().unwrap();
    let token = base.path().join("token");
    fs::write(&token, "s3cret").unwrap();
    let mut world = World::with(&["--require-auth", "--token-file", &token.display().to_string()]);
    assert!(listed(&mut world, "authorization: Bearer s3cret\r\n").contains("require_auth"));
    assert!(answered(&mut world, "", |tag| tag == "require_auth").1.is_empty());
    let mut world = World::with(&["--rate-limit", "--rate-limit-read", "1"]);
    assert!(listed(&mut world, "").contains("rate_limit"));
    assert!(answered(&mut world, "", |tag| tag == "rate_limit").1.is_empty());
}

#[test]
fn every_path_of_the_document_belongs_to_a_tag_or_has_a_reason_why_not() {
    let mut world = World::new();
    let document = world.get("/openapi.json");
    let written: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    let tagged: BTreeSet<String> = ROWS.iter().map(|(_, _, line, ..)| path(line).to_owned()).collect();
    assert_eq!(tagged.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new(), "the document lacks it");
    let untagged: BTreeSet<String> = UNTAGGED.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(tagged.intersection(&untagged).collect::<Vec<_>>(), Vec::<&String>::new(), "it has a tag");
    let known = &tagged | &untagged;
    assert_eq!(written.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new(), "nobody tags it");
}

/// Fails where one of them is without the other.
fn agree(are: &BTreeSet<String>, should_be: &BTreeSet<String>, refused: &[String]) {
    let (too_many, too_few) = (are - should_be, should_be - are);
    assert!(too_many.is_empty() && too_few.is_empty(), "too many {too_many:?}, too few {too_few:?}; {refused:#?}");
}

fn names(tags: &[&str]) -> BTreeSet<String> {
    tags.iter().map(ToString::to_string).collect()
}

/// The tags of the table that are wanted.
fn tags(wanted: impl Fn(&str) -> bool) -> BTreeSet<String> {
    ROWS.iter().map(|(tag, ..)| *tag).filter(|tag| wanted(tag)).map(str::to_owned).collect()
}

/// The path of a row as the document writes it.
fn path(line: &str) -> &str {
    line.split(['?', ' ']).nth(1).unwrap()
}

fn listed(world: &mut World, headers: &str) -> BTreeSet<String> {
    let (status, text) = world.connect().try_call_with("GET", "/capabilities", headers, "").unwrap();
    assert_eq!(status, 200, "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    let tags: Vec<&str> = body["features"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
    let set = names(&tags);
    assert_eq!(set.len(), tags.len(), "each once: {tags:?}");
    set
}

/// The wanted tags whose requests are all answered as they should be, and the answers that are none. A tag of which only some are is no
/// tag.
fn answered(world: &mut World, other: &str, wanted: impl Fn(&str) -> bool) -> (BTreeSet<String>, Vec<String>) {
    let mut answered = tags(&wanted);
    let mut refused = Vec::new();
    for (tag, scene, line, body, answer) in ROWS.iter().filter(|(tag, ..)| wanted(tag)) {
        let places = set(world, *scene, other);
        let fill = |text: &str| places.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        let (method, path) = line.split_once(' ').unwrap();
        let (status, text) =
            world.connect().try_call_with(method, &fill(path), &fill(headers(tag)), &fill(body)).unwrap();
        if !is_answer(status, &text, &fill(answer)) {
            refused.push(format!("{tag}: {line} {status} {text:.200}"));
            answered.remove(*tag);
        }
        if let Some((_, session)) = places.iter().find(|(name, _)| *name == "{id}") {
            world.call("DELETE", &format!("/session/{session}"), "");
        }
    }
    (answered, refused)
}

/// What a request says beside its line and its body.
fn headers(tag: &str) -> &'static str {
    match tag {
        "client_identity" | "client_heartbeat" | "session_shell_command" => "x-qwen-client-id: {client}\r\n",
        "allow_origin" => "origin: https://pages.example\r\n",
        "acp_websocket" => {
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        }
        _ => "",
    }
}

/// Whether an answer is the one that is expected: its status, and behind it where something stands, or what.
fn is_answer(status: u16, text: &str, expected: &str) -> bool {
    let mut words = expected.splitn(2, ' ');
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let stands = |word: &str| match word.split_once('=') {
        None => body.pointer(word).is_some(),
        Some((at, wanted)) => match body.pointer(at) {
            Some(Value::String(is)) => is == wanted,
            Some(other) => serde_json::from_str(wanted).is_ok_and(|wanted: Value| wanted == *other),
            None => false,
        },
    };
    words.next() == Some(&status.to_string()) && words.next().is_none_or(stands)
}

/// Makes the scene, and says what the places in a row stand for.
fn set(world: &mut World, scene: Scene, other: &str) -> Vec<(&'static str, String)> {
    let blocks = |text: &str| json!([{ "type": "text", "text": text }]).to_string();
    let mut places = vec![
        ("{other}", other.to_owned()),
        ("{chosen}", "550e8400-e29b-41d4-a716-446655440000".to_owned()),
        ("{hello}", blocks("hello")),
        ("{slow}", blocks("slow 600000")),
        ("{workspace}", world.base().join("workspace").display().to_string().replace('/', "%2F")),
    ];
    if let Empty = scene {
        places.extend(
            [("{client}", "client-1"), ("{request}", "none"), ("{name}", "mine")].map(|(at, to)| (at, to.into())),
        );
        return places;
    }
    let (status, made) = world.call("POST", "/session", r#"{"sessionScope":"thread"}"#);
    assert_eq!(status, 200, "{made}");
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    let session = text("sessionId");
    let words = match scene {
        Running => "slow 600000",
        Asking => "tool true",
        _ => "hello",
    };
    let prompt = world.prompt(&session, words);
    match scene {
        Empty => {}
        Idle => assert_eq!(world.settle(&session, &prompt)["state"], "completed"),
        Running => {
            world.until_chunk(&session, &prompt);
            let path = format!("/session/{session}/mid-turn-message");
            let (status, said) = world.call("POST", &path, r#"{"message":"hear"}"#);
            assert_eq!(status, 200, "{said}");
            places.push(("{message}", said["messageId"].as_str().unwrap().to_owned()));
        }
        Asking => {
            let question = question(world, &session);
            places.push(("{request}", question["requestId"].as_str().unwrap().to_owned()));
            places.push(("{option}", question["options"][0]["optionId"].as_str().unwrap().to_owned()));
        }
        Closed => {
            world.settle(&session, &prompt);
            assert_eq!(world.call("DELETE", &format!("/session/{session}"), "").0, 204);
            world.until_gone(&session);
        }
    }
    places.extend([("{client}", text("clientId")), ("{id}", session), ("{prompt}", prompt)]);
    places
}
