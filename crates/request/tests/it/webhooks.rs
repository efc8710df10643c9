//! Endpoints on disk: what was decided is there when it was told, whatever is killed in between.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnd_request::Input as OfRequest;
use turnd_request::fail_points::FailPoints;
use turnd_request::store::{Asked, Put, Retention, Rotated, Stepped, Store, StoreError, recover};
use turnd_request::webhook::limits::{ENDPOINTS_MAX, LETTERS_MAX, TRYING_MAX_MS};
use turnd_request::webhook::{
    Effect, Endpoint, EndpointName, Fault, Input, Letter, Moment, Rotation, RotationDenied, Secret, Sending, Standing,
    Ticket,
};

use crate::child;
use crate::world::{NOON, World, asked as asked_of, id, wait};

fn name(text: &str) -> EndpointName {
    EndpointName::parse(text).unwrap()
}

fn asked(text: &str) -> Asked {
    Asked {
        name: name(text),
        owner: "o".to_owned(),
        url: format!("https://{text}.test/hook"),
        secret: None,
        spare: Secret::new(vec![7; 32]).unwrap(),
        after: Some(0),
    }
}

impl World {
    fn put(&self, asked: Asked) -> Result<Put, StoreError> {
        wait(|reply| self.store().put_endpoint(asked, self.now, reply))
    }

    pub(crate) fn rotate(&self, text: &str, rotation: Rotation) -> Result<Rotated, StoreError> {
        wait(|reply| self.store().rotate_endpoint(name(text), "o".to_owned(), rotation, self.now, reply))
    }

    /// A new endpoint that is to have nothing of what there is.
    pub(crate) fn hook_at_the_head(&self, text: &str) {
        let put = self.put(Asked { after: None, ..asked(text) });
        assert!(matches!(put, Ok(Put::Done { is_new: true, .. })), "{put:?}");
    }

    /// A new endpoint that has had nothing.
    fn hook(&self, text: &str) -> Endpoint {
        match self.put(asked(text)).unwrap() {
            Put::Done { endpoint, is_new: true, is_secret_made: true } => *endpoint,
            other => panic!("{other:?}"),
        }
    }

    fn step(&self, text: &str, input: Input) -> Stepped {
        self.try_step(text, input).unwrap()
    }

    fn try_step(&self, text: &str, input: Input) -> Result<Stepped, StoreError> {
        let now = Moment { at_ms: self.now, dice: 1 << 31 };
        wait(|reply| self.store().step_endpoint(name(text), input, now, reply))
    }

    /// Begins the next try; what its answer is told with.
    fn send(&self, text: &str) -> Ticket {
        match self.step(text, Input::Due).effects[..] {
            [Effect::Send { ticket, .. }] => ticket,
            ref other => panic!("{other:?}"),
        }
    }

    fn answer(&self, text: &str, status: u16) -> Vec<Effect> {
        let ticket = self.send(text);
        self.step(text, answered(ticket, status)).effects
    }

    fn endpoint(&self, text: &str) -> Endpoint {
        self.store().endpoint(&name(text)).unwrap().unwrap().0
    }

    fn letters(&self, text: &str) -> Vec<Letter> {
        self.store().endpoint(&name(text)).unwrap().unwrap().1
    }

    /// Events, made in the cheapest way.
    fn events_of(&self, numbers: std::ops::Range<u64>) {
        for number in numbers {
            self.store().register(asked_of(&format!("r{number}")), |_| ());
            self.store().apply(id(&format!("r{number}")), OfRequest::Cancel, self.now, |_| ());
            if number % 100 == 0 {
                self.drain();
            }
        }
        self.drain();
    }

    /// Waits until everything that waits for the writer is done.
    fn drain(&self) {
        wait(|reply| self.store().remove_endpoint(name("nobody"), "o".to_owned(), reply)).unwrap();
    }
}

fn answered(ticket: Ticket, status: u16) -> Input {
    Input::Answered { ticket, status, retry_after_ms: None }
}

#[test]
fn an_endpoint_is_read_back_as_it_was_and_goes_on_where_it_was() {
    let mut world = World::new();
    world.events_of(1..4);
    let made = world.hook("a");
    assert_eq!((made.acked, made.standing, made.secret.as_bytes()), (0, Standing::Active, &[7; 32][..]));
    world.answer("a", 200);
    world.answer("a", 503);
    world.step("a", Input::Redeliver { seq: 3 });
    world.step("a", Input::Redeliver { seq: 1 });
    world.send("a");
    let before = world.endpoint("a");
    assert_eq!((before.acked, before.trying.tries, before.trying.fault), (1, 1, Some(Fault::Answered(503))));
    assert_eq!(before.wanted, [3, 1], "in the order of the demands");
    assert_eq!(before.sending, Some(Sending { seq: 3, is_again: true }));
    world.open();
    assert_eq!(world.endpoint("a"), before, "every column");
    assert_eq!(world.store().endpoints().unwrap(), [(before, 0)]);
    world.assert_sound();
}

#[test]
fn two_secrets_sign_until_one_of_them_is_ended_also_in_the_next_life_and_of_a_try_on_its_way_nothing_changes() {
    let key = |byte: u8| Secret::new(vec![byte; 32]).unwrap();
    let mut world = World::new();
    world.events_of(1..4);
    world.hook("a");
    let ticket = world.send("a");
    assert_eq!(world.rotate("a", Rotation::End).unwrap(), Err(RotationDenied::OnlyOne));
    let rotated = world.rotate("a", Rotation::Begin(key(8))).unwrap().unwrap();
    assert_eq!((&rotated.secret, &rotated.former_secret), (&key(8), &Some(key(7))));
    assert_eq!(world.rotate("a", Rotation::Begin(key(9))).unwrap(), Err(RotationDenied::Rotating));
    world.open();
    assert_eq!(world.endpoint("a"), *rotated, "every column");
    assert_eq!(world.step("a", answered(ticket, 200)).effects, [Effect::MoveOn { seq: 1 }], "it is the same receiver");
    let ended = world.rotate("a", Rotation::End).unwrap().unwrap();
    assert_eq!((&ended.secret, &ended.former_secret), (&key(8), &None));
    let unknown = world.rotate("b", Rotation::End);
    assert!(matches!(unknown, Err(StoreError::Unknown)), "{unknown:?}");
    // A secret that is named takes the place of both: one that has leaked signs no more.
    world.rotate("a", Rotation::Begin(key(9))).unwrap().unwrap();
    let Put::Done { endpoint, .. } = world.put(Asked { secret: Some(key(5)), after: None, ..asked("a") }).unwrap()
    else {
        panic!()
    };
    assert_eq!((&endpoint.secret, &endpoint.former_secret), (&key(5), &None));
    let rotated = world.rotate("a", Rotation::Begin(key(6))).unwrap().unwrap();
    let Put::Done { endpoint, .. } = world.put(Asked { secret: Some(key(6)), after: None, ..asked("a") }).unwrap()
    else {
        panic!()
    };
    assert_eq!((&endpoint.secret, &endpoint.former_secret), (&key(6), &None), "also the newer of both");
    assert_eq!(endpoint.generation, rotated.generation, "it is the same receiver");
    world.assert_sound();
}

#[test]
fn what_is_recovered_of_a_file_of_version_1_has_its_endpoints() {
    let mut world = World::new();
    world.events_of(1..4);
    let made = world.hook("a");
    world.store = None;
    let file = rusqlite::Connection::open(world.file()).unwrap();
    file.execute_batch("ALTER TABLE webhook DROP COLUMN former_secret; PRAGMA user_version = 1").unwrap();
    drop(file);
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert!(!rescue.is_damaged);
    world.open();
    let endpoint = world.endpoint("a");
    assert_eq!((endpoint.secret, endpoint.former_secret), (made.secret, None));
}

#[test]
fn a_new_endpoint_begins_at_the_head_unless_it_says_where() {
    let world = World::new();
    world.events_of(1..4);
    let put = world.put(Asked { after: None, ..asked("a") }).unwrap();
    assert!(matches!(put, Put::Done { endpoint, .. } if endpoint.acked == 3));
    assert_eq!(world.put(Asked { after: Some(4), ..asked("b") }), Err(StoreError::Ahead { asked: 4, head: 3 }));
    world.store().prune(everything(), world.now + 1).unwrap();
    let too_old = Put::TooOld { oldest: 4, head: 3 };
    assert_eq!(world.put(asked("b")).unwrap(), too_old, "what is gone is not promised");
    assert_eq!(world.store().endpoint(&name("b")).unwrap(), None);
}

#[test]
fn the_same_again_changes_nothing_and_another_url_is_another_receiver() {
    let world = World::new();
    world.events_of(1..4);
    let made = world.hook("a");
    let ticket = world.send("a");
    let before = world.endpoint("a");
    let Put::Done { endpoint, is_new, is_secret_made } = world.put(asked("a")).unwrap() else { panic!() };
    assert_eq!((&*endpoint, is_new, is_secret_made), (&before, false, false));
    let moved = Asked { url: "https://other.test/".to_owned(), after: None, ..asked("a") };
    let Put::Done { endpoint, .. } = world.put(moved).unwrap() else { panic!() };
    assert!(endpoint.generation > made.generation);
    assert_eq!((endpoint.sending, endpoint.trying.tries, &endpoint.secret), (None, 0, &made.secret));
    assert_eq!(
        world.step("a", answered(ticket, 200)).effects,
        [],
        "what the former one answered is not about this one"
    );
    assert_eq!(world.send("a").sending.seq, 1);
}

#[test]
fn an_endpoint_that_wants_no_more_is_served_again_under_another_url() {
    let world = World::new();
    world.events_of(1..3);
    world.hook("a");
    world.answer("a", 410);
    world.put(asked("a")).unwrap();
    assert_eq!(world.endpoint("a").standing, Standing::Disabled, "the same again is no demand to go on");
    world.put(Asked { url: "https://other.test/".to_owned(), ..asked("a") }).unwrap();
    assert_eq!(world.send("a").sending.seq, 1);
}

#[test]
fn a_number_moves_an_endpoint_forward_and_never_back() {
    let world = World::new();
    world.events_of(1..6);
    world.hook("a");
    let ticket = world.send("a");
    world.put(Asked { after: Some(3), ..asked("a") }).unwrap();
    assert_eq!(world.step("a", answered(ticket, 200)).effects, []);
    world.put(Asked { after: Some(1), ..asked("a") }).unwrap();
    assert_eq!((world.endpoint("a").acked, world.send("a").sending.seq), (3, 4));
}

#[test]
fn there_are_so_many_endpoints_and_no_more() {
    let world = World::new();
    for number in 0..ENDPOINTS_MAX {
        world.hook(&format!("e{number}"));
    }
    assert_eq!(world.put(asked("more")).unwrap(), Put::TooMany);
    world.put(asked("e3")).unwrap();
    assert!(wait(|reply| world.store().remove_endpoint(name("e3"), "o".to_owned(), reply)).unwrap());
    assert!(!wait(|reply| world.store().remove_endpoint(name("e3"), "o".to_owned(), reply)).unwrap());
    assert_eq!(world.try_step("e3", Input::Due), Err(StoreError::Unknown));
    world.hook("more");
    world.assert_sound();
}

#[test]
fn an_endpoint_of_the_same_name_as_a_former_one_is_another_one() {
    let world = World::new();
    world.events_of(1..3);
    world.hook("a");
    world.answer("a", 500);
    world.now_dead("a");
    let ticket = world.send("a");
    wait(|reply| world.store().remove_endpoint(name("a"), "o".to_owned(), reply)).unwrap();
    world.hook("a");
    world.put(Asked { after: Some(1), ..asked("a") }).unwrap();
    assert_eq!(world.letters("a"), []);
    world.send("a");
    assert_eq!(world.step("a", answered(ticket, 200)).effects, []);
}

impl World {
    /// Lets the event whose turn it is become a dead letter.
    fn now_dead(&self, text: &str) {
        let late = Moment { at_ms: self.now + TRYING_MAX_MS, dice: 0 };
        let due = wait(|reply| self.store().step_endpoint(name(text), Input::Due, late, reply)).unwrap();
        let [Effect::Send { ticket, .. }] = due.effects[..] else { panic!() };
        let late = Moment { at_ms: self.now + 2 * TRYING_MAX_MS, dice: 0 };
        let failed = Input::Failed { ticket, fault: Fault::Timeout };
        let dead = wait(|reply| self.store().step_endpoint(name(text), failed, late, reply)).unwrap();
        assert!(matches!(dead.effects[..], [Effect::DeadLetter { .. }]), "{dead:?}");
    }
}

#[test]
fn a_dead_letter_is_kept_until_a_demand_delivers_it() {
    let mut world = World::new();
    world.events_of(1..3);
    world.hook("a");
    world.now_dead("a");
    world.open();
    let at_ms = world.now + 2 * TRYING_MAX_MS;
    let dead = Letter { seq: 1, is_wanted: false, tries: 1, fault: Some(Fault::Timeout), at_ms };
    assert_eq!(world.letters("a"), std::slice::from_ref(&dead));
    assert_eq!(world.store().endpoints().unwrap()[0].1, 1);
    world.step("a", Input::Redeliver { seq: 1 });
    assert_eq!(world.letters("a"), [Letter { is_wanted: true, ..dead }]);
    world.open();
    assert_eq!(world.answer("a", 404).len(), 1);
    let fault = Some(Fault::Answered(404));
    let twice = Letter { seq: 1, is_wanted: false, tries: 2, fault, at_ms: world.now };
    assert_eq!(world.letters("a"), [twice]);
    world.step("a", Input::Redeliver { seq: 1 });
    assert_eq!(world.answer("a", 200), [Effect::Redelivered { seq: 1 }]);
    assert_eq!((world.letters("a"), world.endpoint("a").acked), (vec![], 1));
}

#[test]
fn what_was_wanted_before_its_turn_is_no_dead_letter_once_it_was_taken_in_its_turn() {
    let world = World::new();
    world.events_of(1..2);
    world.hook("a");
    world.step("a", Input::Redeliver { seq: 1 });
    world.answer("a", 500);
    assert_eq!(world.letters("a").len(), 1);
    world.answer("a", 200);
    assert_eq!(world.letters("a"), []);
}

#[test]
fn the_newest_dead_letters_are_kept() {
    let world = World::new();
    world.events_of(1..LETTERS_MAX + 3);
    let generation = world.hook("a").generation;
    for seq in 1..=LETTERS_MAX + 2 {
        let ticket = Ticket { generation, sending: Sending { seq, is_again: false } };
        let moment = |days: u64| Moment { at_ms: NOON + seq + days * TRYING_MAX_MS, dice: 0 };
        world.store().step_endpoint(name("a"), Input::Due, moment(0), |_| ());
        let failed = Input::Failed { ticket, fault: Fault::Torn };
        if seq % 100 == 0 {
            wait(|reply| world.store().step_endpoint(name("a"), failed, moment(1), reply)).unwrap();
        } else {
            world.store().step_endpoint(name("a"), failed, moment(1), |_| ());
        }
    }
    world.drain();
    let kept: Vec<u64> = world.letters("a").iter().map(|letter| letter.seq).collect();
    assert_eq!((kept.len() as u64, kept[0], *kept.last().unwrap()), (LETTERS_MAX, 3, LETTERS_MAX + 2));
}

fn everything() -> Retention {
    Retention { kept_ms: 0, kept_requests: 0, bytes_max: u64::MAX, tombstone_ms: u64::MAX }
}

#[test]
fn pruning_waits_for_an_endpoint_up_to_four_times_the_retention_and_then_it_is_told() {
    let world = World::new();
    world.events_of(1..11);
    world.hook("a");
    world.answer("a", 200);
    world.answer("a", 410);
    let retention = Retention { kept_ms: 1_000, ..everything() };
    world.store().prune(retention, world.now + 4_000).unwrap();
    assert_eq!(world.store().head().unwrap().pruned_through, 1, "also for one that is disabled");
    world.step("a", Input::Resumed);
    world.store().prune(retention, world.now + 4_001).unwrap();
    assert_eq!(world.store().head().unwrap().pruned_through, 10);
    assert_eq!(world.step("a", Input::Due).effects, [Effect::Gap { from: 2, through: 10 }]);
    world.events_of(11..13);
    assert_eq!(world.step("a", Input::Due).effects, [Effect::Sleep { until_ms: None }]);
    world.step("a", Input::Resumed);
    assert_eq!(world.send("a").sending.seq, 11);
    world.store().prune(retention, world.now + 4_000).unwrap();
    assert_eq!(world.store().head().unwrap().pruned_through, 10, "it is waited for again");
}

#[test]
fn nobody_else_says_what_an_endpoint_has_had() {
    let world = World::new();
    world.events_of(1..3);
    world.hook("a");
    assert_eq!(world.consume("webhook:a", 2, None), Err(StoreError::ForeignOwner));
    assert_eq!(world.consume("webhook:b", 2, None), Err(StoreError::ForeignOwner));
    world.consume("a", 2, None).unwrap();
    assert_eq!(world.endpoint("a").acked, 0);
    let theirs = Asked { owner: "b".to_owned(), ..asked("a") };
    assert_eq!(world.put(theirs), Err(StoreError::ForeignOwner));
    let removed = wait(|reply| world.store().remove_endpoint(name("a"), "b".to_owned(), reply));
    assert_eq!(removed, Err(StoreError::ForeignOwner));
}

#[test]
fn a_recovered_store_serves_its_endpoints_on() {
    let mut world = World::new();
    world.events_of(1..4);
    world.hook("a");
    world.now_dead("a");
    world.step("a", Input::Redeliver { seq: 1 });
    world.send("a");
    let (before, letters) = (world.endpoint("a"), world.letters("a"));
    world.store = None;
    recover(&world.folder(), 0, world.now).unwrap();
    world.open();
    assert_eq!(world.endpoint("a"), Endpoint { sending: None, ..before });
    assert_eq!(world.letters("a"), letters);
    assert_eq!(world.send("a").sending, Sending { seq: 1, is_again: true });
    world.assert_sound();
}

/// Has two events taken in a process of its own, which is killed by its plan.
fn killed(folder: &Path, plan: &str) {
    child::killed("webhooks::a_child_that_sends", &folder.display().to_string(), plan);
}

/// Not a test of its own: what a child runs.
#[test]
fn a_child_that_sends() {
    let Some(folder) = child::part() else { return };
    let mut world = World::closed();
    world.fail_points = Arc::new(FailPoints::from_env());
    world.store = Some(Arc::new(Store::open(&PathBuf::from(folder), world.options(), NOON).unwrap().0));
    world.events_of(1..4);
    world.hook("a");
    world.answer("a", 200);
    world.answer("a", 200);
}

#[test]
fn killed_around_each_note_an_event_is_sent_again_or_was_taken_and_none_is_passed_over() {
    for (plan, acked, tries, next) in [
        ("before:webhook_due=kill@1", 0, 0, 1),
        ("after:webhook_due=kill@1", 0, 1, 1),
        ("before:webhook_answer=kill@1", 0, 1, 1),
        ("after:webhook_answer=kill@1", 1, 0, 2),
        ("before:webhook_answer=kill@2", 1, 1, 2),
        ("after:webhook_answer=kill@2", 2, 0, 3),
    ] {
        let mut world = World::closed();
        killed(&world.folder(), plan);
        world.open();
        let endpoint = world.endpoint("a");
        assert_eq!((endpoint.acked, endpoint.trying.tries), (acked, tries), "{plan}");
        world.step("a", Input::Started);
        assert_eq!(world.send("a").sending, Sending { seq: next, is_again: false }, "{plan}");
        assert_eq!(world.endpoint("a").trying.tries, tries + 1, "{plan}: a try that was cut off is one");
        world.assert_sound();
    }
}

#[test]
fn killed_around_the_naming_of_an_endpoint_it_is_there_or_not() {
    for (when, is_there) in [("before", false), ("after", true)] {
        let mut world = World::closed();
        killed(&world.folder(), &format!("{when}:webhook_put=kill"));
        world.open();
        assert_eq!(world.store().endpoint(&name("a")).unwrap().is_some(), is_there);
        world.assert_sound();
    }
}

#[test]
fn while_the_store_takes_nothing_a_note_is_refused_and_the_event_is_sent_again() {
    let world = World::new();
    world.events_of(1..3);
    world.hook("a");
    let ticket = world.send("a");
    world.fail_points.set("before:commit=full*1");
    assert_eq!(world.try_step("a", answered(ticket, 200)), Err(StoreError::Full));
    assert_eq!(world.endpoint("a").acked, 0);
    assert_eq!(world.step("a", answered(ticket, 200)).effects, [Effect::MoveOn { seq: 1 }], "told again, it is heard");
}
