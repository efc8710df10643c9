//! What outlives a daemon, and what changes while one lives.

use request::webhook::{Input, Sending, Standing};

use super::world::{World, asked, name};
use crate::limits::WEBHOOK_STORE_PAUSE_MS;

#[tokio::test(start_paused = true)]
async fn a_daemon_that_dies_before_the_answer_sends_the_same_again() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    let first = receiver.next().await;
    let id = first.header("webhook-id").to_owned();
    world.live().await;
    let second = receiver.next().await;
    assert_eq!((second.header("webhook-id"), &second.body), (&*id, &first.body));
    assert_eq!(world.endpoint("a").trying.tries, 2, "the try that was cut off is one");
    second.answer(200).await;
    assert_eq!(receiver.take().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_dies_between_the_answer_and_its_note_sends_the_same_again() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    world.fail_points.set("before:webhook_answer=busy");
    let first = receiver.next().await;
    let id = first.header("webhook-id").to_owned();
    first.answer(200).await;
    assert_eq!(world.endpoint("a").sending, Some(Sending { seq: 1, is_again: false }));
    world.die().await;
    world.fail_points.set("");
    world.live().await;
    let second = receiver.next().await;
    assert_eq!((second.header("webhook-id"), second.seq()), (&*id, 1));
    second.answer(200).await;
    assert_eq!(receiver.take().await, 2);
}

#[tokio::test(start_paused = true)]
async fn what_the_store_does_not_take_now_it_takes_later_and_nothing_is_sent_meanwhile() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    world.fail_points.set("before:webhook_answer=full*3");
    receiver.next().await.answer(200).await;
    let second = receiver.next().await;
    assert_eq!(second.seq(), 2, "the answer was not forgotten");
    assert_eq!(world.elapsed_ms(), 3 * WEBHOOK_STORE_PAUSE_MS);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_is_on_record_although_the_store_said_otherwise_stops_nobody() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(2);
    world.hook("a").await;
    let first = receiver.next().await;
    // That the second one is on its way is committed behind the first one's answer, and its courier is told that the disk failed.
    world.fail_points.set("after:commit=io@2; reopen=io*1");
    first.answer(200).await;
    let second = receiver.next().await;
    assert_eq!((second.seq(), world.endpoint("a").trying.tries), (2, 2), "the first try is one that nobody made");
    second.answer(200).await;
    world.until("a", |endpoint| endpoint.acked == 2).await;
}

#[tokio::test(start_paused = true)]
async fn another_url_is_another_receiver_and_has_what_the_former_one_did_not_confirm() {
    let mut world = World::new().await;
    let (mut former, mut latter) = (world.listen("a"), world.listen("b"));
    world.commit(2);
    world.hook("a").await;
    let held = former.next().await;
    world.hook_at("a", "http://b/").await;
    held.answer(200).await;
    assert_eq!(latter.take().await, 1, "what the former one says now is not about this one");
    assert_eq!(latter.take().await, 2);
    assert_eq!(world.dialed("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_not_served_and_its_name_is_free() {
    let mut world = World::new().await;
    let (mut former, mut latter) = (world.listen("a"), world.listen("b"));
    world.commit(2);
    world.hook("a").await;
    let held = former.next().await;
    assert!(world.hooks().remove(&name("a"), "o").await.unwrap());
    assert!(!world.hooks().remove(&name("a"), "o").await.unwrap());
    world.hook_at("a", "http://b/").await;
    assert_eq!(latter.take().await, 1);
    held.answer(410).await;
    assert_eq!(latter.take().await, 2);
    world.until("a", |endpoint| endpoint.acked == 2 && endpoint.standing == Standing::Active).await;
    assert_eq!(world.dialed("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_told_and_served_on_behind_it_when_somebody_says_so() {
    let mut world = World::new().await;
    let mut receiver = world.listen("a");
    world.commit(5);
    world.hook("a").await;
    receiver.next().await.answer(410).await;
    world.until("a", |endpoint| endpoint.standing == Standing::Disabled).await;
    let all = request::store::Retention { kept_ms: 0, kept_requests: 0, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
    world.store().prune(all, super::world::NOON + 1).unwrap();
    world.commit(1);
    world.hooks().demand(&name("a"), Input::Resumed).await.unwrap();
    let gap = Standing::Gap { from: 1, through: 5 };
    world.until("a", |endpoint| endpoint.standing == gap).await;
    world.hooks().demand(&name("a"), Input::Resumed).await.unwrap();
    assert_eq!(receiver.take().await, 6);
    let again = world.hooks().put(asked("a", "http://a/hook?of=a")).await;
    assert!(again.is_ok(), "{again:?}");
}
