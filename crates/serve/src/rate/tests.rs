//! Buckets, told the time; requests, told apart.

use super::*;

const RATES: Rates = Rates { prompt: 2, mutation: 5, read: 6, window_ms: 60_000 };

/// Takes one admission at each time; `.` for one that was there, else after how many milliseconds one is.
fn check(times_ms: &[u64], expected: &str) {
    let mut buckets = Buckets::new(RATES, 10);
    let takes = times_ms.iter().map(|at| match buckets.take("a".to_owned(), Tier::Prompt, *at) {
        Ok(()) => ".".to_owned(),
        Err(spent) => spent.retry_after_ms.to_string(),
    });
    assert_eq!(takes.collect::<Vec<_>>().join(" "), expected, "{times_ms:?}");
}

#[test]
fn a_bucket_refills_steadily_and_never_beyond_its_brim() {
    check(&[0, 0, 0], ". . 30000");
    check(&[0, 0, 20], ". . 29980");
    check(&[0, 0, 29_999, 30_000, 30_000], ". . 1 . 30000");
    check(&[0, 0, 600_000, 600_000, 600_000], ". . . . 30000");
    check(&[0, 0, 0, 0, 30_000], ". . 30000 30000 .");
}

#[test]
fn a_clock_that_is_set_back_keeps_nobody_out_for_longer_than_a_window() {
    check(&[1_000_000, 1_000_000, 5, 30_005], ". . 30000 .");
}

#[test]
fn callers_and_tiers_have_buckets_of_their_own() {
    let mut buckets = Buckets::new(RATES, 10);
    let mut take = |key: &str, tier| buckets.take(key.to_owned(), tier, 0).is_ok();
    assert!(take("a", Tier::Prompt) && take("a", Tier::Prompt) && !take("a", Tier::Prompt));
    assert!(take("b", Tier::Prompt) && take("a", Tier::Read) && take("a", Tier::Mutation));
    assert_eq!(buckets.hits, 1);
}

#[test]
fn beyond_the_last_bucket_all_who_come_new_share_one() {
    let mut buckets = Buckets::new(RATES, 3);
    let mut take = |key: &str, at_ms| buckets.take(key.to_owned(), Tier::Prompt, at_ms).is_ok();
    assert!(take("a", 0) && take("b", 0) && take("c", 0));
    assert!(take("d", 0) && take("e", 0), "the shared bucket holds two");
    assert!(!take("f", 0) && !take("d", 0));
    assert!(take("a", 0), "whoever has a bucket keeps it");
    assert!(take("g", 3_600_000) && take("g", 3_600_000), "full buckets are forgotten");
    assert!(buckets.full_at.len() <= 4);
}

#[test]
fn requests_are_counted_as_what_they_are() {
    for (line, tier) in [
        ("POST /session/a/prompt", "prompt"),
        ("POST /session/a/prompt/", "prompt"),
        ("POST /session/a/return-requests", "prompt"),
        ("POST /return-requests/a/cancel", "mutation"),
        ("POST /session", "mutation"),
        ("DELETE /session/a", "mutation"),
        ("POST /session/a/cancel", "mutation"),
        ("POST /session/a/b/prompt", "mutation"),
        ("POST /health", "mutation"),
        ("GET /session/a/prompt", "read"),
        ("GET /session/a/turns/p", "read"),
        ("HEAD /capabilities", "read"),
        ("POST /session/a/heartbeat", "-"),
        ("GET /session/a/events", "-"),
        ("GET /health", "-"),
        ("OPTIONS /session", "-"),
    ] {
        let (method, path) = line.split_once(' ').unwrap();
        let got = Tier::of(&Method::from_bytes(method.as_bytes()).unwrap(), path).map_or("-", Tier::as_str);
        assert_eq!(got, tier, "{line}");
    }
}

/// The key of a request from `address` that calls itself `client`.
fn key(loopback: bool, address: &str, client: &str) -> String {
    let request = hyper::Request::builder().uri("/").header(CLIENT_ID, client).body(()).unwrap();
    let mut head = request.into_parts().0;
    head.extensions.insert(Caller::at(address.parse::<std::net::SocketAddr>()));
    Gate::new(None, loopback).key(&head)
}

#[test]
fn on_this_machine_callers_are_told_apart_by_their_word_and_elsewhere_by_their_place() {
    assert_eq!(key(true, "127.0.0.1:1", "a"), "cid:a");
    assert_eq!(key(true, "127.0.0.1:1", "not a token"), "anonymous");
    assert_eq!(key(true, "127.0.0.1:1", ""), "anonymous");
    assert_eq!(key(false, "192.0.2.7:1", "a"), key(false, "192.0.2.7:2", "b"));
    assert_ne!(key(false, "192.0.2.7:1", "a"), key(false, "192.0.2.8:1", "a"));
    assert_eq!(
        key(false, "[2001:db8::1]:1", "a"),
        key(false, "[2001:db8::ffff:2]:1", "a"),
        "one network of IPv6 is one caller"
    );
    assert_ne!(key(false, "[2001:db8:0:1::1]:1", "a"), key(false, "[2001:db8:0:2::1]:1", "a"));
    assert_eq!(key(false, "[::ffff:192.0.2.7]:1", "a"), key(false, "192.0.2.7:1", "a"));
}

#[test]
fn the_answer_has_the_numbers_of_the_wire_rules() {
    let (head, ()) = hyper::Request::post("/session/s/prompt").body(()).unwrap().into_parts();
    let reply = too_many(&head, Tier::Prompt, &Spent { limit: 2, retry_after_ms: 29_980 }, 1_795_978_474_300);
    assert_eq!(reply.status(), 429);
    for (name, value) in [
        ("retry-after", "30"),
        ("x-ratelimit-limit", "2"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1795978505"),
    ] {
        assert_eq!(reply.headers()[name], value, "{name}");
    }
}
