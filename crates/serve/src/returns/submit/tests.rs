use std::path::Path;
use std::sync::Arc;

use bridge::{AdmitError, Kind, OpenSession, Seed, Streams};
use request::store::List;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc;

use super::*;
use crate::hosts::ProcessStarter;
use crate::neighbours::{Neighbours, tests::options};
use crate::options::ServeOptions;
use crate::tasks::spawn;

fn submission(session_id: &str) -> Submission {
    let blocks = r#"[{"type":"text","text":"hello"}]"#;
    Submission {
        request_id: RequestId::parse("X").unwrap(),
        is_named: true,
        session_id: session_id.to_owned(),
        client: None,
        content: Content {
            blocks: blocks.to_owned(),
            text: "hello".to_owned(),
            prompt_id: None,
            deadline_ms: None,
            run_deadline_ms: None,
            retry: false,
            extra: None,
        },
        canonical: Canonical::of(blocks).unwrap(),
        options: Options::default(),
        timeout_ms: 0,
    }
}

/// Answers whatever is asked until it is told to close, as a host does, and tells the methods of all that it hears.
async fn answering(far: DuplexStream, heard: mpsc::UnboundedSender<String>) {
    let (reader, mut writer) = tokio::io::split(far);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let method = message["method"].as_str().unwrap();
        let _ = heard.send(method.to_owned());
        if method == "turnd/close" {
            return;
        }
        let result = json!({ "protocolVersion": 1, "sessionId": "a", "stopReason": "end_turn" });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        if message.get("id").is_some() {
            writer.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }
}

/// Opens a session `s` in a workspace of its own, and gives what its agent hears.
async fn with_session(returns: &Arc<Returns>, store: &Path) -> (Arc<Workspace>, mpsc::UnboundedReceiver<String>) {
    let options = ServeOptions { initialize_timeout_ms: 10_000, ..options(store) };
    let hosts = ProcessStarter { launcher: "/nonexistent".into() };
    let workspace = Workspace::new("/one".as_ref(), Arc::new(options), Arc::new(hosts), Arc::clone(returns));
    let workspace = Arc::new(workspace);
    returns.neighbours().introduce(std::iter::once(&workspace));
    let (near, far) = duplex(1 << 16);
    let (reader, writer) = tokio::io::split(near);
    let (sender, heard) = mpsc::unbounded_channel();
    spawn(answering(far, sender));
    let open = OpenSession { session_id: "s".into(), workspace_cwd: "/one".into(), kind: Kind::New, same_id: false };
    let streams = Streams { reader: Box::new(reader), writer: Box::new(writer) };
    workspace.bridge.open(open, streams).await.unwrap().activate(0, Seed::default());
    (workspace, heard)
}

#[tokio::test]
async fn scenario_20_a_daemon_that_stops_takes_nothing_and_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::<Neighbours>::default());
    let open = returns.open(folder.path().join("requests")).await;
    assert!(open.is_empty());
    let (workspace, mut heard) = with_session(&returns, folder.path()).await;
    let before = || Submission { request_id: RequestId::parse("W").unwrap(), ..submission("s") };
    assert!(matches!(returns.submit(before()).await, Ok(Submitted::New(_))), "the session takes requests");
    returns.drain();
    for is_queued in [false, true] {
        let options = Options { queue: is_queued, ..Options::default() };
        let refusal = returns.submit(Submission { options, ..submission("s") }).await.err().unwrap();
        assert_eq!((refusal.status.as_u16(), &*refusal.code), (503, "draining"));
        assert!(refusal.fields.contains(&("input_written", "no".into())), "{refusal:?}");
    }
    assert!(matches!(returns.submit(before()).await, Ok(Submitted::Replayed(_))), "it is on record");
    let listed = returns.read(|store| store.list(&List { limit: 10, ..List::default() })).await.unwrap();
    assert_eq!(listed.requests.iter().map(|request| request.id().as_str()).collect::<Vec<_>>(), ["W"]);
    workspace.bridge.shutdown().await;
    returns.close().await;
    let mut methods = Vec::new();
    while let Some(method) = heard.recv().await {
        methods.push(method);
    }
    assert_eq!(methods, ["initialize", "session/new", "session/prompt", "turnd/close"]);
}

#[tokio::test]
async fn of_a_store_that_is_closed_nothing_is_said_but_that_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    returns.close().await;
    let other = Returns::new(Arc::default());
    other.open(folder.path().join("requests")).await;
    assert!(other.store().is_ok(), "it was let go");
    let third = Returns::new(Arc::default());
    assert!(third.open_once(folder.path().join("requests")).await.is_err());
    let refusal = third.submit(submission("s")).await.err().unwrap();
    assert_eq!((refusal.status.as_u16(), &*refusal.code), (503, "store_unavailable"), "another one has it");
    assert!(refusal.fields.contains(&("input_written", "maybe".into())), "another call may have sent it: {refusal:?}");
    let unnamed = Submission { is_named: false, ..submission("s") };
    let refusal = third.submit(unnamed).await.err().unwrap();
    assert!(refusal.fields.contains(&("input_written", "no".into())), "nobody else can have the id: {refusal:?}");
}

#[test]
fn of_what_broke_and_of_an_id_that_is_forgotten_or_was_used_nobody_says_that_it_was_not_sent() {
    for refusal in [
        refusal::unsent(Refusal::internal()),
        refusal::unsent(refusal::expired("X", 7)),
        refusal::unsent(refusal::reused("X")),
    ] {
        let told: Vec<_> = refusal.fields.iter().filter(|(key, _)| *key == refusal::INPUT_WRITTEN).collect();
        assert_eq!(told, [&(refusal::INPUT_WRITTEN, "maybe".into())], "{refusal:?}");
    }
}

#[test]
fn what_became_of_the_input_is_said_once_whatever_the_refusal_said_of_it_before() {
    let of_a_prompt = || Refusal::internal().with("inputWritten", "no");
    for refusal in [
        refusal::unsent(admission::no_room()),
        refusal::doubtful(admission::no_room()),
        refusal::doubtful(refusal::unsent(admission::no_room())),
        refusal::unsent(of_a_prompt()),
    ] {
        let names = refusal.fields.iter().map(|(key, _)| *key).filter(|key| key.to_lowercase().contains("written"));
        assert_eq!(names.collect::<Vec<_>>(), [refusal::INPUT_WRITTEN], "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_an_id_that_another_caller_is_at_is_told_what_that_one_makes_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    let id = submission("s").request_id;
    let foremost = returns.callers.take(&id).await;
    let telling = returns.spawn({
        let (returns, id) = (Arc::clone(&returns), id.clone());
        async move { returns.told_of(&id, refusal::busy("s")).await }
    });
    tokio::task::yield_now().await;
    assert!(!telling.is_finished());
    returns.register(registration(&submission("s"), None)).await.unwrap();
    drop(foremost);
    let told = telling.await.unwrap();
    assert!(told.fields.contains(&("state", "registered".into())), "{told:?}");
    returns.close().await;
}

#[test]
fn what_the_bridge_does_not_admit_was_not_sent() {
    for (error, status, code) in [
        (AdmitError::Busy, 409, "busy"),
        (AdmitError::QueueFull { limit: 5, pending: 5 }, 429, "queue_full"),
        (AdmitError::Closing, 409, "session_closed"),
        (AdmitError::Gone, 409, "session_closed"),
        (AdmitError::NotContent, 400, "invalid_prompt"),
    ] {
        let refusal = not_admitted("s", error);
        assert_eq!((refusal.status.as_u16(), &*refusal.code), (status, code));
        assert!(refusal.fields.contains(&("input_written", "no".into())), "{refusal:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_being_opened_callers_are_told_to_come_again_and_no_session_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.opened().await;
    let refusal = returns.submit(submission("s")).await.err().unwrap();
    assert_eq!((refusal.status.as_u16(), &*refusal.code), (503, "store_busy"));
    assert!(refusal.fields.contains(&("input_written", "maybe".into())), "{refusal:?}");
    assert!(at_once(returns.before_opening("s", 1_000)).is_none(), "it may have requests that are not decided");
    returns.open(folder.path().join("requests")).await;
    assert!(at_once(returns.before_opening("s", 1_000)).is_some());
    assert_eq!(returns.submit(submission("s")).await.err().unwrap().code, "session_not_found");
}

/// What a future comes to without waiting.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// The code with which a prompt id is refused to a caller's own prompt, if it is.
async fn refused(returns: &Returns, prompt_id: &str) -> Option<String> {
    let checked = returns.check_chosen("s", prompt_id).await;
    checked.err().map(|refusal| format!("{} {}", refusal.status.as_u16(), refusal.code))
}

#[tokio::test]
async fn the_prompt_id_of_a_request_is_no_other_prompts_whether_there_is_a_store_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    let made = registration(&submission("s"), None);
    let conflict = Some("409 prompt_id_conflict".to_owned());
    assert_eq!(refused(&returns, &made.prompt_id).await, conflict, "no store is open");
    let earlier = "11111111-1111-4111-8111-111111111111";
    assert_eq!(refused(&returns, earlier).await, None, "nothing is known of any row");
    returns.open(folder.path().join("requests")).await;
    returns.register(Registration { prompt_id: earlier.to_owned(), ..made.clone() }).await.unwrap();
    for (prompt_id, expected) in [
        (&*made.prompt_id, conflict.clone()),
        (earlier, conflict.clone()),
        ("22222222-2222-4222-8222-222222222222", None),
        ("job-1", None),
    ] {
        assert_eq!(refused(&returns, prompt_id).await, expected, "{prompt_id}");
    }
    returns.close().await;
    let next = Returns::new(Arc::default());
    next.open(folder.path().join("requests")).await;
    assert_eq!(refused(&next, earlier).await, conflict, "another life knows it too");
    next.close().await;
}
