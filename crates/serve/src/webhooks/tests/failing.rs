//! What is no delivery.

use request::webhook::limits::TRYING_MAX_MS;
use request::webhook::{Fault, Input, Standing};
use tokio::io::AsyncWriteExt as _;

use super::world::{World, name};
use crate::limits::WEBHOOK_TRY_MS;

/// An endpoint whose first try is at hand.
async fn first_try() -> (World, super::receiver::Receiver) {
    let mut world = World::new().await;
    let receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    (world, receiver)
}

/// The fault of the try before, once the next one has come, which is taken.
async fn fault_before(world: &World, receiver: &mut super::receiver::Receiver) -> Option<Fault> {
    let next = receiver.next().await;
    assert_eq!(next.seq(), 1, "the same again");
    let fault = world.endpoint("a").trying.fault;
    next.answer(200).await;
    fault
}

#[tokio::test(start_paused = true)]
async fn silence_is_waited_for_no_longer_than_a_try_may_take() {
    let (world, mut receiver) = first_try().await;
    let silent = receiver.next().await;
    assert_eq!(fault_before(&world, &mut receiver).await, Some(Fault::Timeout));
    assert!((WEBHOOK_TRY_MS..WEBHOOK_TRY_MS + 1_100).contains(&world.elapsed_ms()), "{}", world.elapsed_ms());
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_trickles_counts_only_when_it_is_whole_in_time() {
    let (world, mut receiver) = first_try().await;
    let slow = receiver.next().await;
    let mut stream = slow.say_and_stay("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").await;
    let trickling = async {
        loop {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            if stream.write_all(b"x").await.is_err() {
                return;
            }
        }
    };
    trickling.await;
    assert_eq!(fault_before(&world, &mut receiver).await, Some(Fault::Timeout));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_a_failure_and_nobody_goes_where_it_points() {
    let (world, mut receiver) = first_try().await;
    let _elsewhere = world.listen("elsewhere");
    receiver.next().await.answer_with(307, "location: http://elsewhere/\r\n").await;
    assert_eq!(fault_before(&world, &mut receiver).await, Some(Fault::Answered(307)));
    assert_eq!(world.dialed("elsewhere"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_torn_or_none_is_no_delivery() {
    for said in [
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly so much",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "220 mail.example.org ESMTP\r\n",
        "",
    ] {
        let (world, mut receiver) = first_try().await;
        receiver.next().await.say(said).await;
        assert_eq!(fault_before(&world, &mut receiver).await, Some(Fault::Torn), "{said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end_is_no_answer() {
    let (world, mut receiver) = first_try().await;
    let lines = format!("x-filling: {}\r\n", "x".repeat(1_000)).repeat(200);
    receiver.next().await.say(&format!("HTTP/1.1 200 OK\r\n{lines}")).await;
    assert_eq!(fault_before(&world, &mut receiver).await, Some(Fault::Torn));
}

#[tokio::test(start_paused = true)]
async fn of_a_huge_body_the_status_counts_and_the_rest_is_not_read() {
    let (world, mut receiver) = first_try().await;
    let huge = receiver.next().await;
    let mut stream = huge.say_and_stay("HTTP/1.1 200 OK\r\n\r\n").await;
    let piece = [b'x'; 4096];
    let mut said = 0;
    while stream.write_all(&piece).await.is_ok() {
        said += piece.len();
        assert!(said < 1024 * 1024, "it is read on and on");
    }
    assert_eq!(receiver.take().await, 2);
    world.until("a", |endpoint| endpoint.acked == 2).await;
}

#[tokio::test(start_paused = true)]
async fn who_says_gone_gets_nothing_more_until_somebody_says_so() {
    let (mut world, mut receiver) = first_try().await;
    receiver.next().await.answer(410).await;
    let endpoint = world.until("a", |endpoint| endpoint.standing == Standing::Disabled).await;
    assert_eq!((endpoint.acked, endpoint.trying.fault), (0, Some(Fault::Answered(410))));
    world.commit(1);
    tokio::time::advance(std::time::Duration::from_secs(100_000)).await;
    world.live().await;
    world.until("a", |endpoint| endpoint.sending.is_none()).await;
    assert_eq!(world.dialed("a"), 1);
    world.hooks().demand(&name("a"), Input::Resumed).await.unwrap();
    assert_eq!(receiver.take().await, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_never_taken_becomes_a_dead_letter_and_the_next_one_goes_out() {
    let (mut world, mut receiver) = first_try().await;
    let mut tries = 0;
    loop {
        let delivery = receiver.next().await;
        if delivery.seq() == 2 {
            delivery.answer(200).await;
            break;
        }
        tries += 1;
        delivery.answer(500).await;
    }
    assert!(world.elapsed_ms() >= TRYING_MAX_MS, "{}", world.elapsed_ms());
    let [ref letter] = world.letters("a")[..] else { panic!() };
    assert_eq!((letter.seq, letter.tries, letter.fault), (1, tries, Some(Fault::Answered(500))));
    world.live().await;
    world.hooks().demand(&name("a"), Input::Redeliver { seq: 1 }).await.unwrap();
    assert_eq!(receiver.take().await, 1);
    world.until("a", |endpoint| endpoint.wanted.is_empty()).await;
    assert_eq!(world.letters("a"), []);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_reached_is_tried_again() {
    let mut world = World::new().await;
    world.commit(1);
    world.hook("a").await;
    world.until("a", |endpoint| endpoint.trying.fault == Some(Fault::Unreachable)).await;
    let mut receiver = world.listen("a");
    assert_eq!(receiver.take().await, 1);
}
