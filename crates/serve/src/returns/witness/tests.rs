use request::store::Registered;
use request::{Code, Request, State};

use super::*;
use crate::returns::fixture::registration;
use crate::returns::tracked::Standing;

const LIFE: &str = "life";

fn process(start_ticks: u64) -> Process {
    Process { pid: 7, start_ticks, boot_id: "boot".into() }
}

/// What becomes of a request whose prompt went to one process, of that life of its session, and whose answer came from another.
async fn answered(dispatched_to: Option<(Process, &str)>, answered_by: Option<Process>) -> Request {
    let folder = tempfile::tempdir().unwrap();
    let returns = Returns::new(Arc::default());
    returns.open(folder.path().join("requests")).await;
    let store = Arc::clone(returns.store().unwrap());
    let registered = asked(|reply| store.register(registration("X"), reply)).await.unwrap();
    let Registered::New(request) = registered else { panic!("{registered:?}") };
    let entry = Arc::new(Entry::of(&request, (LIFE.to_owned(), 0), [0; 32]));
    returns.tracked.insert(&entry);
    entry.dispatched_to(dispatched_to.and_then(|(process, life)| returns.incarnation_id(&process, life)));
    let dispatched =
        Input::Dispatched { armed: ArmedCursor::default(), baseline: Baseline::default(), incarnation_id: None };
    for input in [Input::Admitted, dispatched, Input::Written] {
        returns.applied(&entry, input).await.unwrap();
    }
    let terminal = Terminal::Completed { stop_reason: "end_turn".into() };
    let text = FinalText::Whole("the answer".into());
    let (strayed, stopped_by, input_written) = (false, None, InputWritten::Yes);
    returns.settle(
        "s",
        &entry,
        Answer { terminal, input_written, text, strayed, unreadable: false, stopped_by, process: answered_by },
    );
    let mut standing = entry.follow();
    standing.wait_for(Standing::is_over).await.unwrap();
    let known = returns.known(&entry.request_id).await.unwrap();
    returns.close().await;
    let Some(request::store::Entry::Request(request)) = known else { panic!("{known:?}") };
    *request
}

#[tokio::test]
async fn scenario_44_an_answer_of_another_process_than_the_one_that_has_the_prompt_is_not_given() {
    let was = || Some((process(1), LIFE));
    for (dispatched_to, answered_by) in [
        (was(), Some(process(2))),
        (was(), Some(Process { boot_id: "boat".into(), ..process(1) })),
        (was(), None),
        (None, Some(process(1))),
        (Some((process(1), "another life")), Some(process(1))),
    ] {
        let over = answered(dispatched_to.clone(), answered_by.clone()).await;
        let (state, code) = (State::Indeterminate, Some(Code::Mismatch(Mismatch::IncarnationChanged)));
        assert_eq!((over.state, over.code), (state, code), "{dispatched_to:?} {answered_by:?}");
        assert_eq!(over.final_message, None, "{dispatched_to:?} {answered_by:?}");
    }
    let over = answered(was(), Some(process(1))).await;
    assert_eq!(over.state, State::Completed);
}
