//! What a receiver gets.

use request::webhook::Input;

use super::world::{NOON, World, name};

#[tokio::test]
async fn an_event_is_posted_as_the_stream_has_it_and_signed() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(1);
    world.hook("a").await;
    let delivery = receiver.next().await;
    assert_eq!(delivery.line(), "POST /hook?of=a HTTP/1.1");
    assert_eq!(delivery.header("host"), "a");
    assert_eq!(delivery.header("content-type"), "application/json");
    assert_eq!(delivery.header("user-agent"), "turnd/test");
    assert_eq!(delivery.body, world.body(1));
    let stream_id = world.store().head().unwrap().stream_id;
    assert_eq!(delivery.header("webhook-id"), format!("{stream_id}_1"));
    let at_s: u64 = delivery.header("webhook-timestamp").parse().unwrap();
    assert!((NOON / 1_000..NOON / 1_000 + 60).contains(&at_s), "{at_s}");
    assert!(delivery.is_signed());
    delivery.answer(204).await;
    world.until("a", |endpoint| endpoint.acked == 1).await;
}

#[tokio::test]
async fn events_arrive_in_order_one_at_a_time_and_those_that_come_meanwhile_behind_them() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.hook("a").await;
    world.commit(3);
    let first = receiver.next().await;
    assert!(receiver.is_quiet(), "the second waits for the first one's answer");
    world.commit(2);
    first.answer(200).await;
    for seq in 2..=5 {
        assert_eq!(receiver.take().await, seq);
    }
}

#[tokio::test]
async fn a_courier_that_rests_is_woken_by_a_commit() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.hook("a").await;
    for seq in 1..=3 {
        world.rest().await;
        world.commit(1);
        assert_eq!(receiver.take().await, seq);
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_that_failed_is_followed_by_another_one_with_the_same_id_and_a_time_of_its_own() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    let first = receiver.next().await;
    let id = first.header("webhook-id").to_owned();
    first.answer_with(503, "retry-after: 90\r\n").await;
    let second = receiver.next().await;
    assert_eq!(second.header("webhook-id"), id);
    assert_eq!(second.body, world.body(1));
    let at_s: u64 = second.header("webhook-timestamp").parse().unwrap();
    assert!((NOON / 1_000 + 90..NOON / 1_000 + 92).contains(&at_s), "{at_s}: as it was asked to, and no later");
    assert!(second.is_signed());
    let endpoint = world.endpoint("a");
    assert_eq!((endpoint.trying.tries, endpoint.acked), (2, 0));
    second.answer(200).await;
    assert_eq!(receiver.take().await, 2);
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_holds_no_other_one_up() {
    let mut world = World::new().await;
    let (mut silent, mut well) = (world.listen("silent"), world.listen("well"));
    world.hook("silent").await;
    world.hook("well").await;
    world.commit(10);
    let held = silent.next().await;
    world.commit(10);
    for seq in 1..=20 {
        assert_eq!(well.take().await, seq);
    }
    assert_eq!((held.seq(), world.dialed("silent")), (1, 1), "all of it while the first one waits");
    assert_eq!(world.endpoint("silent").acked, 0);
}

#[tokio::test]
async fn a_demand_wakes_a_courier_that_waits_and_is_sent_out_of_order() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(3);
    world.hook("a").await;
    assert_eq!(receiver.take().await, 1);
    receiver.next().await.answer_with(429, "retry-after: 3000\r\n").await;
    world.until("a", |endpoint| endpoint.trying.next_at.is_some()).await;
    world.hooks().demand(&name("a"), Input::Redeliver { seq: 1 }).await.unwrap();
    let again = receiver.next().await;
    assert_eq!(again.seq(), 1);
    assert!(again.is_signed());
    again.answer(200).await;
    world.until("a", |endpoint| endpoint.wanted.is_empty() && endpoint.acked == 1).await;
    world.hooks().demand(&name("a"), Input::Resumed).await.unwrap();
    assert_eq!(receiver.take().await, 2, "who is resumed does not wait for the pause");
}
