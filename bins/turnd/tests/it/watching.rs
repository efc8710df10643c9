//! `turnd request watch` against a stream that a test plays: nothing is repeated, nothing is lost, whatever the connection does.

use std::io::{BufRead, BufReader, Read};

use serde_json::{Value, json};

use crate::commands::stdout;
use crate::requests::stderr;
use crate::scripted::{End, Heard, Reply, Scripted};
use crate::world::until;

/// The line of one event. Its bytes are not what a JSON library would write, so that a copy is seen to be one.
fn event(number: u64) -> String {
    format!(
        "{{\"v\": 1,\"terminal_event_sequence\":{number},\"cursor\":\"st.{number}/c\",\"stream_id\":\"st\", \"state\":\"completed\",\
         \"final_message\":\"\u{fc}\\n{number}\"}}\n"
    )
}

fn events(numbers: impl IntoIterator<Item = u64>) -> String {
    numbers.into_iter().map(event).collect()
}

/// The number behind which a request wants to read, as a number or as a cursor.
fn after(request: &Heard) -> u64 {
    let query = request.target.split_once('?').unwrap().1;
    let value = |key| query.split('&').find_map(|pair| pair.strip_prefix(key));
    match value("cursor=") {
        Some(cursor) => cursor.strip_prefix("st.").unwrap().strip_suffix("%2Fc").unwrap().parse().unwrap(),
        None => value("after=").unwrap().parse().unwrap(),
    }
}

/// The page behind a number, of so many events at most.
fn page(after: u64, most: u64, head: u64) -> String {
    let last = head.min(after + most);
    let events: Vec<String> = (after + 1..=last).map(|number| event(number).trim_end().to_owned()).collect();
    format!(
        "{{\"v\":1,\"stream_id\":\"st\",\"events\":[{}],\"next_after\":{last},\"next_cursor\":\"st.{last}/c\",\"oldest\":1,\"head\":{head}}}",
        events.join(", ")
    )
}

#[test]
fn scenario_65_once_prints_all_that_there_is_in_order_and_exits() {
    let daemon = Scripted::play(|request, _| Reply::Answer(200, "", page(after(request), 100, 250)));
    let output = daemon.run(&["request", "watch", "--once", "--after", "0"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), events(1..=250)), "{}", stderr(&output));
    assert_eq!(daemon.heard().iter().map(after).collect::<Vec<_>>(), [0, 100, 200]);
    assert_eq!(daemon.heard()[0].target, "/return-requests/events?after=0&limit=1000");
}

#[test]
fn scenario_66_once_on_an_empty_stream_prints_nothing_and_exits() {
    let daemon = Scripted::play(|request, _| Reply::Answer(200, "", page(after(request), 100, 0)));
    let output = daemon.run(&["request", "watch", "--once"]);
    assert_eq!((output.status.code(), stdout(&output).as_str(), stderr(&output).as_str()), (Some(0), "", ""));
}

#[test]
fn once_ends_at_the_head_that_it_found_and_passes_what_a_filter_leaves_out() {
    // The stream grows while it is read: nobody would ever be done with it.
    let daemon = Scripted::play(|request, before| {
        let (begin, head) = (after(request), 20 + 10 * before as u64);
        let mut page: Value = serde_json::from_str(&page(begin, 10, head)).unwrap();
        if begin == 0 {
            page["events"] = json!([]);
        }
        Reply::Answer(200, "", page.to_string())
    });
    let output = daemon.run(&["request", "watch", "--once", "--state", "completed"]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(0), 10), "{}", stderr(&output));
    let heard = daemon.heard();
    assert_eq!(heard.iter().map(after).collect::<Vec<_>>(), [0, 10]);
    assert!(heard.iter().all(|request| request.target.contains("&state=completed&limit=1000")), "{heard:?}");
}

#[test]
fn once_goes_on_over_a_restart_and_never_takes_half_a_page_for_the_end() {
    let daemon = Scripted::play(|request, before| match before {
        1 => Reply::HangUp,
        2 => Reply::Torn(page(after(request), 100, 250)),
        3 => Reply::Answer(503, "retry-after: 0\r\n", r#"{"code":"store_busy"}"#.into()),
        _ => Reply::Answer(200, "", page(after(request), 100, 250)),
    });
    let output = daemon.run(&["request", "watch", "--once"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), events(1..=250)), "{}", stderr(&output));
    assert_eq!(daemon.heard().iter().map(after).collect::<Vec<_>>(), [0, 100, 100, 100, 100, 200]);
}

#[test]
fn a_page_that_does_not_lead_on_is_not_read_for_ever() {
    let daemon = Scripted::play(|_, before| Reply::Answer(200, "", page(0, 10, 30 + before as u64)));
    let output = daemon.run(&["request", "watch", "--once"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), events(1..=10)));
    assert_eq!(daemon.heard().len(), 2);
}

#[test]
fn scenario_67_a_line_is_handed_on_while_the_stream_stays_open_byte_for_byte() {
    let text = event(7);
    let (half, rest) = text.split_at(40);
    let pieces = vec!["\n".into(), half.to_owned(), format!("{rest}\n\r\n")];
    let mut stream = Some(Reply::Stream(pieces, End::Open));
    let daemon = Scripted::play(move |_, _| stream.take().unwrap_or(Reply::HangUp));
    let mut watch = daemon.start(&["request", "watch", "--after", "6", "--state", "completed"]);
    assert_eq!(watch.lines().take(1), text);
    assert!(watch.0.try_wait().unwrap().is_none(), "it stays");
    assert_eq!(daemon.heard()[0].target, "/return-requests/events?after=6&state=completed");
}

#[test]
fn a_watch_that_a_filter_shows_nothing_goes_on_behind_what_it_left_out() {
    // Between the first two heartbeats 40 others end, and then one that is wanted, of which no page takes it past.
    let daemon = Scripted::play(|request, before| match before {
        0 => Reply::Stream(vec!["\n".into()], End::Cut),
        1 => Reply::Answer(200, "", page(40, 0, 90)),
        2 => Reply::Stream(vec!["\n".into(), event(41)], End::Cut),
        3 => Reply::Answer(200, "", page(after(request), 1, 90)),
        _ => Reply::Stream(vec![events(after(request) + 1..=43)], End::Open),
    });
    let mut watch = daemon.start(&["request", "watch", "--state", "completed"]);
    assert_eq!(watch.lines().take(3), events(41..=43));
    let heard = daemon.heard();
    assert_eq!(heard.iter().map(after).collect::<Vec<_>>(), [0, 0, 40, 40, 41]);
    for asked in [1, 3] {
        assert!(heard[asked].target.ends_with("&state=completed&limit=1"), "{}", heard[asked].target);
    }
}

#[test]
fn scenario_71_a_watch_outlives_restarts_of_the_daemon_and_repeats_and_loses_nothing() {
    let daemon = Scripted::play(|request, before| match before {
        0 => Reply::Stream(vec![events(1..=3)], End::Cut),
        1 => Reply::HangUp,
        2 => Reply::Answer(503, "retry-after: 0\r\n", r#"{"code":"draining","error":"it ends"}"#.into()),
        // In order, as a daemon ends that was asked to.
        3 => Reply::Stream(vec![events(after(request) + 1..=5)], End::Ended),
        // A daemon that begins too early is not believed.
        4 => Reply::Stream(vec![events(4..=6)], End::Cut),
        5 => Reply::Stream(vec![], End::Cut),
        _ => Reply::Stream(vec![events(after(request) + 1..=8)], End::Open),
    });
    let mut watch = daemon.start(&["request", "watch"]);
    assert_eq!(watch.lines().take(8), events(1..=8));
    let heard = daemon.heard();
    assert_eq!(heard.iter().map(after).collect::<Vec<_>>(), [0, 3, 3, 3, 5, 6, 6]);
    assert!(heard[1].target.contains("cursor=st.3%2Fc"), "the cursor also tells the history: {}", heard[1].target);
    watch.0.kill().unwrap();
    let mut said = String::new();
    watch.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let behind: Vec<_> = said.lines().map(|line| line.rsplit("; ").next().unwrap()).collect();
    let expected = ["going on behind 3, as long as it takes", "going on behind 6, as long as it takes"];
    assert_eq!(behind, expected, "each outage is said once, and a cut that the next try mends is none: {said}");
}

#[test]
fn scenario_74_a_proxy_that_cuts_every_few_events_costs_none_and_doubles_none() {
    let daemon = Scripted::play(|request, _| {
        let begin = after(request);
        if begin + 7 >= 40 {
            return Reply::Stream(vec![events(begin + 1..=40)], End::Open);
        }
        let torn = event(begin + 8);
        Reply::Stream(vec![events(begin + 1..=begin + 7), torn[..torn.len() - 1].to_owned()], End::Cut)
    });
    let mut watch = daemon.start(&["request", "watch"]);
    assert_eq!(watch.lines().take(40), events(1..=40));
    assert_eq!(daemon.heard().iter().map(after).collect::<Vec<_>>(), [0, 7, 14, 21, 28, 35]);
    assert!(daemon.heard().iter().all(|request| request.head.contains("accept: application/x-ndjson")));
}

#[test]
fn a_line_that_the_end_of_the_connection_tore_is_not_printed() {
    for end in [End::Cut, End::Ended] {
        let mut torn = Some(Reply::Stream(vec![events(1..=2), r#"{"terminal_event_sequence":3}"#.into()], end));
        let daemon = Scripted::play(move |request, _| {
            torn.take().unwrap_or_else(|| Reply::Stream(vec![events(after(request) + 1..=3)], End::Open))
        });
        let mut watch = daemon.start(&["request", "watch"]);
        assert_eq!(watch.lines().take(3), events(1..=3));
        assert_eq!(daemon.heard().iter().map(after).collect::<Vec<_>>(), [0, 2]);
    }
}

#[test]
fn a_watch_begins_where_it_is_told_and_goes_on_behind_what_it_printed() {
    let daemon = Scripted::play(|_, before| match before {
        0 => Reply::Stream(vec![], End::Cut),
        1 => Reply::Stream(vec![events(8..=8)], End::Cut),
        _ => Reply::Stream(vec![events(9..=9)], End::Open),
    });
    let mut watch = daemon.start(&["request", "watch", "--cursor", "st.7/c"]);
    assert_eq!(watch.lines().take(2), events(8..=9));
    let targets: Vec<String> = daemon.heard().into_iter().map(|request| request.target).collect();
    let target = |number| format!("/return-requests/events?cursor=st.{number}%2Fc");
    assert_eq!(targets, [target(7), target(7), target(8)]);
}

#[test]
fn another_stream_is_not_read() {
    let foreign = event(2).replace("\"st\"", "\"other\"");
    let daemon = Scripted::play(move |request, _| match request.target.as_str() {
        "/return-requests/stream" => Reply::Answer(200, "", json!({"stream_id": "st", "head": 2}).to_string()),
        _ => Reply::Stream(vec![event(1), foreign.clone(), event(3)], End::Ended),
    });
    // The stream changes under a watch.
    let output = daemon.run(&["request", "watch"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(7), event(1)));
    assert!(stderr(&output).starts_with("turnd: stream_changed"), "{}", stderr(&output));
    // It is another one than the caller's from the beginning.
    for flags in [&["--once"][..], &[]] {
        let output = daemon.run(&[&["request", "watch", "--stream", "mine"], flags].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(7), ""));
        assert!(stderr(&output).starts_with("turnd: stream_changed"), "{}", stderr(&output));
    }
    let output = daemon.run(&["request", "watch", "--stream", "st"]);
    assert_eq!(stdout(&output), event(1));
}

#[test]
fn what_is_no_event_ends_a_watch_and_is_not_printed() {
    for (line, expected, said) in
        [("<html>", 1, "no event"), ("{}", 1, "no event"), (r#"{"terminal_event_sequence":"2"}"#, 1, "no event")]
    {
        let text = format!("{}{line}\n{}", event(1), event(2));
        let daemon = Scripted::play(move |_, _| Reply::Stream(vec![text.clone()], End::Ended));
        let output = daemon.run(&["request", "watch"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(expected), event(1)), "{line}");
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
    }
}

#[test]
fn a_watch_that_falls_behind_what_was_pruned_ends_with_6() {
    let daemon = Scripted::play(|_, before| match before {
        0 => Reply::Stream(vec![event(1)], End::Cut),
        _ => Reply::Answer(410, "", json!({"code": "cursor_too_old", "error": "gone", "oldest": 9}).to_string()),
    });
    let output = daemon.run(&["request", "watch"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(6), event(1)));
}

#[test]
fn a_watch_whose_output_nobody_reads_ends_without_a_panic() {
    let daemon = Scripted::play(|_, _| Reply::Stream(vec![events(1..=3)], End::Open));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = daemon.command(&["request", "watch"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(141), ""));
}

#[test]
fn a_watch_whose_reader_went_away_ends_though_nothing_happens() {
    let daemon = Scripted::play(|_, _| Reply::Stream(vec![event(1)], End::Open));
    let mut watch = daemon.start(&["request", "watch"]);
    let mut reader = BufReader::new(watch.0.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    drop(reader);
    assert_eq!(line, event(1));
    let ended = until("the watch has ended", || watch.0.try_wait().unwrap());
    assert_eq!(ended.code(), Some(141));
}

#[test]
fn a_reader_that_is_slow_gets_every_line() {
    // More than a pipe and the sockets' buffers hold: the watch has to stop reading and go on.
    let pieces = || (1..=40).map(|n| events(n * 1_000..n * 1_000 + 1_000)).collect();
    let daemon = Scripted::play(move |_, _| Reply::Stream(pieces(), End::Open));
    let mut watch = daemon.start(&["request", "watch", "--after", "999"]);
    until("the stream was asked for", || (!daemon.heard().is_empty()).then_some(()));
    let mut lines = watch.lines();
    for number in 1_000..41_000 {
        assert_eq!(lines.next(), event(number));
    }
}
