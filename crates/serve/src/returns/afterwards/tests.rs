use request::{ArmedCursor, Baseline, RequestId};

use super::*;
use crate::returns::fixture::registration;

/// A request of an earlier life whose prompt may be with its agent, and that is not decided yet.
async fn left_open(returns: &Arc<Returns>, id: &str) -> Request {
    let store = returns.store().unwrap();
    let registration = registration(id);
    let request_id = registration.request_id.clone();
    asked(|reply| store.register(registration, reply)).await.unwrap();
    asked(|reply| store.apply(request_id.clone(), Input::Admitted, 2, reply)).await.unwrap();
    let armed = ArmedCursor { event_id: 1, tail: None };
    let dispatched = Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None };
    asked(|reply| store.apply(request_id, dispatched, 3, reply)).await.unwrap().request
}

#[tokio::test]
async fn a_cancel_whose_interrupt_finds_no_place_ends_the_record_and_says_that_the_turn_is_not_told() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    let (first, second) = (left_open(&returns, "first").await, left_open(&returns, "second").await);
    returns.recovering.begin(&[first.clone(), second.clone()]);
    for number in 1..AFTERWARDS_TURNS_MAX {
        assert!(returns.recovering.following.want_stop(&RequestId::parse(&format!("other-{number}")).unwrap()));
    }
    returns.cancel(&first, true).await.unwrap();
    let refusal = returns.cancel(&second, true).await.unwrap_err();
    assert_eq!((refusal.status.as_u16(), &*refusal.code), (429, "too_many_interrupts"));
    assert!(refusal.fields.contains(&("state", "cancelled".into())), "{refusal:?}");
    assert!(returns.recovering.following.take_stop(first.id()), "its turn will be told when it is found");
    assert!(!returns.recovering.following.take_stop(second.id()));
    returns.close().await;
}

#[tokio::test]
async fn a_cancel_without_an_interrupt_needs_no_place() {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    let request = left_open(&returns, "X").await;
    returns.recovering.begin(std::slice::from_ref(&request));
    for number in 0..AFTERWARDS_TURNS_MAX {
        assert!(returns.recovering.following.want_stop(&RequestId::parse(&format!("other-{number}")).unwrap()));
    }
    returns.cancel(&request, false).await.unwrap();
    returns.close().await;
}
