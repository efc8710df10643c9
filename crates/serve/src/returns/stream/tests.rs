use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;

use hyper::body::Body as _;
use request::Input;
use request::store::{Retention, Store};

use super::*;
use crate::clock::now_ms;
use crate::returns::asked;
use crate::returns::fixture::registration;

/// Requests that are made before one of them is waited for.
const BATCH: usize = 100;

/// No commit takes this long, however busy the machine is.
const COMMIT_LIMIT: Duration = Duration::from_secs(60);

/// A store in which so many requests have ended.
pub(crate) async fn returns_with(count: usize) -> (Arc<Returns>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    for first in (0..count).step_by(BATCH) {
        end(&returns, first..count.min(first + BATCH)).await;
    }
    (returns, folder)
}

/// Makes requests and ends them.
async fn end(returns: &Arc<Returns>, numbers: std::ops::Range<usize>) {
    let store = returns.store().unwrap();
    let cancelled = |number| {
        let request = registration(&format!("X{number}"));
        let id = request.request_id.clone();
        store.register(request, |registered| drop(registered.unwrap()));
        asked(move |reply| store.apply(id, Input::Cancel, 2, reply))
    };
    for cancel in numbers.map(cancelled).collect::<Vec<_>>() {
        assert!(cancel.await.unwrap().event.is_some());
    }
}

/// A reader behind a number, with its first page.
async fn reader(returns: &Arc<Returns>, after: u64, filter: Filter) -> (Reader, Events) {
    let mut reader = Reader::staying(returns, Position::Number(after), filter).unwrap();
    let first = reader.next().await.unwrap();
    (reader, first)
}

/// The next chunk; none at the end, an error where the body is broken off.
async fn chunk(body: &mut Body) -> Option<Result<String, ()>> {
    let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
    Some(frame.map_err(drop).map(|frame| String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()))
}

/// All lines, and whether that is all there is.
async fn lines(body: &mut Body) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    loop {
        match chunk(body).await {
            Some(Ok(text)) => lines.extend(text.lines().map(str::to_owned)),
            end => return (lines, end.is_none()),
        }
    }
}

fn number(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap()["terminal_event_sequence"].as_u64().unwrap()
}

/// Drives a future for once, as far as it comes.
async fn once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *future).poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

#[test]
fn scenario_68_an_end_behind_a_readers_look_and_before_its_wait_is_not_missed() {
    // One thread looks into the store, one look after the other, so that it is known when a look is over.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().max_blocking_threads(1).build().unwrap().block_on(async {
        let (returns, _folder) = returns_with(1).await;
        let (mut reader, first) = reader(&returns, 0, Filter::default()).await;
        assert!(is_at_head(&first));
        let mut looking = Box::pin(reader.next());
        assert!(once(&mut looking).await.is_none(), "the look has begun");
        blocking(|| ()).await.unwrap();
        end(&returns, 1..2).await;
        assert_eq!(looking.await.unwrap().events.len(), 0, "it came too late for that look");
        assert!(once(&mut Box::pin(reader.more())).await.is_some(), "there is nothing to wait for");
        let found = reader.next().await.unwrap();
        assert_eq!(found.events.iter().map(|event| event.seq).collect::<Vec<_>>(), [2]);
        returns.close().await;
    });
}

/// Ends so many requests, the store's thread and this one alone, and demands that each commit comes.
fn end_here(store: &Store, numbers: std::ops::Range<usize>) {
    for first in numbers.clone().step_by(BATCH) {
        let (told, ends) = mpsc::channel();
        for number in first..numbers.end.min(first + BATCH) {
            let (request, told) = (registration(&format!("X{number}")), told.clone());
            let id = request.request_id.clone();
            store.register(request, |registered| drop(registered.unwrap()));
            store.apply(id, Input::Cancel, 2, move |applied| told.send(applied.unwrap().event.is_some()).unwrap());
        }
        drop(told);
        for _ in first..numbers.end.min(first + BATCH) {
            assert!(ends.recv_timeout(COMMIT_LIMIT).expect("a commit waits for nobody who reads"));
        }
    }
}

#[tokio::test]
async fn scenario_70_ten_thousand_ends_wait_for_no_reader_that_takes_nothing_and_each_is_cut_off_in_time_and_loses_none()
 {
    const BEFORE: usize = 3 * RETURNS_PAGE_EVENTS;
    const ALL: usize = BEFORE + 10_000;
    let (returns, _folder) = returns_with(BEFORE).await;
    tokio::time::pause();
    let begun = Instant::now();
    let (mut bodies, mut sendings) = (Vec::new(), Vec::new());
    for form in [Form::Lines, Form::Events, Form::Lines] {
        let (reader, first) = reader(&returns, 0, Filter::default()).await;
        let (body, sending) = open(reader, first, form, None);
        bodies.push(body);
        sendings.push(crate::tasks::spawn(async move {
            sending.await;
            begun.elapsed()
        }));
    }
    // As long as a thread is at work the clock stands.
    let store = Arc::clone(returns.store().unwrap());
    blocking(move || end_here(&store, BEFORE..ALL)).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(sendings.iter().all(|sending| !sending.is_finished()), "they hang, and all is committed");
    // What is there for one of them without its sender having another turn.
    let mut held = String::new();
    while let Some(Some(Ok(text))) = once(&mut Box::pin(chunk(&mut bodies[2]))).await {
        held += &text;
    }
    assert_eq!(held.lines().count(), RETURNS_PAGE_EVENTS, "what ended meanwhile waits in the store");
    for sending in sendings {
        let took = sending.await.unwrap();
        assert!(took >= Duration::from_millis(RETURNS_WRITE_MS), "{took:?}");
        assert!(took < Duration::from_millis(RETURNS_WRITE_MS + HEARTBEAT_MS), "{took:?}");
    }
    tokio::time::resume();
    for (body, before) in bodies.into_iter().zip(["", "", &held]) {
        goes_on(&returns, body, before, ALL as u64).await;
    }
    returns.close().await;
}

/// Of a body that was cut off nothing waits but a chunk, it is no whole one, and whoever goes on behind its last event has them all.
async fn goes_on(returns: &Arc<Returns>, mut body: Body, before: &str, all: u64) {
    let (rest, is_whole) = lines(&mut body).await;
    let waited = numbers(rest.iter().map(String::as_str));
    assert!(waited.len() <= RETURNS_PAGE_EVENTS && !is_whole, "{} events, {is_whole}", waited.len());
    let mut all_of_it = [numbers(before.lines()), waited].concat();
    let (again, first) = reader(returns, all_of_it.last().copied().unwrap_or_default(), Filter::default()).await;
    let until = Some(first.head);
    let (mut body, sending) = open(again, first, Form::Lines, until);
    let sending = crate::tasks::spawn(sending);
    let (rest, is_whole) = lines(&mut body).await;
    all_of_it.extend(numbers(rest.iter().map(String::as_str)));
    assert!(is_whole && all_of_it == (1..=all).collect::<Vec<_>>(), "{} of {all}", all_of_it.len());
    sending.await.unwrap();
}

/// The numbers of the events among lines of either form.
fn numbers<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<u64> {
    lines
        .map(|line| line.strip_prefix("data: ").unwrap_or(line))
        .filter(|line| line.starts_with('{'))
        .map(number)
        .collect()
}

#[tokio::test]
async fn a_stream_that_cannot_go_on_never_looks_like_one_that_has_told_everything() {
    let (returns, _folder) = returns_with(RETURNS_PAGE_EVENTS + 1).await;
    for form in [Form::Lines, Form::Events] {
        let (again, first) = reader(&returns, 0, Filter::default()).await;
        let until = Some(first.head);
        let (mut body, sending) = open(again, first, form, until);
        crate::tasks::spawn(sending);
        assert!(lines(&mut body).await.1, "{form:?}");
    }
    let [lines_reader, events_reader] =
        [reader(&returns, 0, Filter::default()).await, reader(&returns, 0, Filter::default()).await];
    // What comes behind the first page is forgotten before it is read.
    returns
        .read(|store| store.prune(Retention { kept_requests: 0, kept_ms: 0, ..Retention::default() }, now_ms()))
        .await
        .unwrap();
    for (form, (reader, first)) in [(Form::Lines, lines_reader), (Form::Events, events_reader)] {
        let until = Some(first.head);
        let (mut body, sending) = open(reader, first, form, until);
        crate::tasks::spawn(sending);
        let (lines, is_whole) = lines(&mut body).await;
        let is_told = lines.iter().any(|line| line == "event: gap");
        assert_eq!((is_whole, is_told), (form == Form::Events, form == Form::Events), "{form:?}: {}", lines.len());
    }
}

#[tokio::test]
async fn a_heartbeat_of_a_filtered_stream_says_how_far_the_others_have_come() {
    let (returns, _folder) = returns_with(3).await;
    let nobodys = Filter { session_id: Some("none".into()), ..Filter::default() };
    let (reader, first) = reader(&returns, 0, nobodys).await;
    let (mut body, sending) = open(reader, first, Form::Events, None);
    end(&returns, 3..5).await;
    tokio::time::pause();
    crate::tasks::spawn(sending);
    assert!(chunk(&mut body).await.unwrap().unwrap().starts_with("retry: "));
    let heartbeat = chunk(&mut body).await.unwrap().unwrap();
    let [id, kind, data] = heartbeat.trim_end().lines().collect::<Vec<_>>()[..] else { panic!("{heartbeat}") };
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((kind, &data["head"]), ("event: head", &json!(5)));
    let Ok(Position::Cursor(cursor)) = Position::parse(id.strip_prefix("id: ").unwrap()) else { panic!("{id}") };
    assert_eq!(cursor.seq, 5);
    tokio::time::resume();
}
