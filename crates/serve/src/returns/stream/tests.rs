use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use hyper::body::Body as _;
use request::Input;
use request::store::Retention;

use super::*;
use crate::clock::now_ms;
use crate::returns::asked;
use crate::returns::fixture::registration;

/// Requests that are made before one of them is waited for.
const BATCH: usize = 100;

/// A store in which so many requests have ended.
async fn returns_with(count: usize) -> (Arc<Returns>, tempfile::TempDir) {
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

#[tokio::test]
async fn scenario_70_a_reader_that_takes_nothing_is_cut_off_in_time_holds_one_page_and_goes_on_where_it_was() {
    let (returns, _folder) = returns_with(1_000).await;
    let (stalled, first) = reader(&returns, 0, Filter::default()).await;
    let (mut body, sending) = open(stalled, first, Form::Lines, None);
    tokio::time::pause();
    let begun = Instant::now();
    sending.await;
    let took = begun.elapsed();
    tokio::time::resume();
    assert!(took >= Duration::from_millis(RETURNS_WRITE_MS), "{took:?}");
    assert!(took < Duration::from_millis(RETURNS_WRITE_MS + HEARTBEAT_MS), "{took:?}");
    let (held, is_whole) = lines(&mut body).await;
    assert_eq!(
        (held.len(), is_whole),
        (RETURNS_PAGE_EVENTS, false),
        "nothing waits but a page, and it is no whole body"
    );
    let (again, first) = reader(&returns, number(held.last().unwrap()), Filter::default()).await;
    let until = Some(first.head);
    let (mut body, sending) = open(again, first, Form::Lines, until);
    let sending = crate::tasks::spawn(sending);
    let (rest, is_whole) = lines(&mut body).await;
    assert!(is_whole);
    let numbers: Vec<u64> = held.iter().chain(&rest).map(|line| number(line)).collect();
    assert_eq!(numbers, (1..=1_000).collect::<Vec<_>>());
    sending.await.unwrap();
    returns.close().await;
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
