//! What can be seen of a session, and what it says is due.

use super::notation::{Play, after, check};
use acp::{Speech, Whose};

use crate::incoming::Update;
use crate::input::Input;
use crate::moment::{Moment, Steady};
use crate::prompt::{Prompt, Receipt};
use crate::{Clipped, Deadline, InputWritten, Mediation, PromptState, Terminal, Waiting};

/// What is due after a script, and when.
fn due(script: &str) -> Option<(u64, String)> {
    due_under(Mediation::default(), script)
}

fn due_under(mediation: Mediation, script: &str) -> Option<(u64, String)> {
    let mut play = Play::under(mediation);
    for statement in script.split(';') {
        play.act(statement);
    }
    play.session.due().map(|(Steady(at_ms), input)| match input {
        Input::DeadlineExpired { prompt_id, deadline: Deadline::Absolute } => (at_ms, format!("deadline {prompt_id}")),
        Input::DeadlineExpired { prompt_id, deadline: Deadline::Run } => (at_ms, format!("run {prompt_id}")),
        Input::GraceOver => (at_ms, "grace".to_owned()),
        Input::ReplaceOver => (at_ms, "replace".to_owned()),
        Input::SettleOver => (at_ms, "settle".to_owned()),
        Input::EndOver => (at_ms, "end".to_owned()),
        Input::ChanceOver => (at_ms, "chance".to_owned()),
        Input::PauseOver => (at_ms, "pause".to_owned()),
        Input::PermissionExpired { request_id } => (at_ms, format!("denial {request_id}")),
        other => panic!("{other:?} does not happen by itself"),
    })
}

#[test]
fn nothing_is_due_in_a_session_without_deadlines() {
    assert_eq!(due("admit A; admit B"), None);
    assert_eq!(due("lost"), None);
}

#[test]
fn the_nearest_deadline_is_due_first_whether_its_prompt_runs_or_waits() {
    assert_eq!(due("admit A 100; admit B 300"), Some((100, "deadline A".into())));
    assert_eq!(due("admit A 300; admit B 100"), Some((100, "deadline B".into())));
    assert_eq!(due("admit A; wait 50; admit B 100"), Some((150, "deadline B".into())), "counted from admission");
}

#[test]
fn the_clock_of_a_run_starts_with_the_dispatch() {
    assert_eq!(due("admit A; admit B run 100"), None, "it only waits");
    assert_eq!(due("admit A; admit B run 100; wait 500; settle A end_turn"), Some((600, "run B".into())));
    assert_eq!(due("admit A 300 200"), Some((200, "run A".into())));
    assert_eq!(due("admit A; admit B 300 200; wait 150; settle A end_turn"), Some((300, "deadline B".into())));
    assert_eq!(due("admit A run 100; wait 100"), None);
}

#[test]
fn a_question_is_due_to_be_denied_when_its_own_time_is_over_whatever_else_is_due() {
    let timed = Mediation { response_timeout_ms: Some(100), ..Mediation::default() };
    assert_eq!(due_under(timed, "wait 7; ask q; wait 5; ask p"), Some((107, "denial q".into())));
    assert_eq!(due_under(timed, "ask q; wait 5; ask p; vote q yes"), Some((105, "denial p".into())));
    assert_eq!(due_under(timed, "admit A 50; ask q"), Some((50, "deadline A".into())));
    assert_eq!(due_under(timed, "admit A 500; ask q"), Some((100, "denial q".into())));
    assert_eq!(due_under(timed, "admit A; ask q; close"), Some((1_000, "settle".into())));
    assert_eq!(due("ask q"), None, "without a limit it waits");
}

#[test]
fn the_grace_of_a_turn_is_due_when_somebody_waits_for_its_end() {
    assert_eq!(due("admit A; wait 5; cancel"), Some((30_005, "grace".into())));
    assert_eq!(due("admit A 100; wait 100; wait 50; admit B"), Some((30_100, "grace".into())));
    assert_eq!(due("admit A 100; wait 40000; admit B"), Some((30_100, "grace".into())), "long ago, so at once");
    assert_eq!(due("admit A; cancel; wait 30000"), Some((30_500, "replace".into())));
    assert_eq!(due("admit A; cancel; admit B 100"), Some((100, "deadline B".into())));
    assert_eq!(due("admit A; cancel; wait 30000; kept"), None);
}

#[test]
fn nothing_is_due_sooner_or_later_because_somebody_sets_the_wall_clock() {
    let timed = Mediation { response_timeout_ms: Some(100), ..Mediation::default() };
    for script in [
        "wait 50; admit A; wait 7; admit B 300",
        "wait 50; admit A run 300; wait 7",
        "admit A; wait 50; admit B run 300; settle A end_turn; wait 7",
        "wait 50; admit A; wait 7; ask q; wait 7",
        "wait 50; admit A; wait 7; cancel; wait 7",
        "wait 50; admit A; cancel; wait 30000; wait 7",
        "wait 50; admit A; wait 7; close; wait 7",
        "wait 50; admit A; lost; wait 7",
        "wait 50; witness A; go A; wait 7; shutdown; wait 7",
        "wait 50; admit A; settle A end_turn; wait 7; witness B; wait 1",
        "wait 50; admit A; steer B; wait 7; settle A end_turn; wait 7",
    ] {
        let expected = due_under(timed, script);
        let statements: Vec<&str> = script.split(';').collect();
        for place in 0..=statements.len() {
            for set in ["clock -40", "clock 3600000"] {
                let mut statements = statements.clone();
                statements.insert(place, set);
                assert_eq!(due_under(timed, &statements.join(";")), expected, "{statements:?}");
            }
        }
    }
}

#[test]
fn a_prompt_that_is_over_has_no_deadline() {
    assert_eq!(due("admit A 100; settle A end_turn"), None);
    assert_eq!(due("admit A; admit B 100; remove B"), None);
    assert_eq!(due("admit A 100; wait 100"), None, "though the agent still holds it");
}

#[test]
fn a_closing_session_waits_first_for_its_turn_and_then_for_its_agent() {
    assert_eq!(due("wait 7; admit A 100; close"), Some((1_007, "settle".into())));
    assert_eq!(due("wait 7; close"), Some((507, "end".into())));
    assert_eq!(due("admit A; close; wait 3; settle A end_turn"), Some((503, "end".into())));
    assert_eq!(due("admit A; kill"), Some((500, "end".into())));
}

#[test]
fn current_is_the_running_prompt_then_the_head_of_the_queue_then_the_newest_outcome() {
    let live = |script: &str| after(script).turn(None).live.map(|live| (live.prompt_id, live.state));
    assert_eq!(live("say hi"), None);
    assert_eq!(live("admit A; admit B"), Some(("A".into(), PromptState::Running)));
    assert_eq!(live("admit A 10; admit B; wait 10"), Some(("B".into(), PromptState::Queued)));
    let newest = after("admit A; settle A end_turn; admit B; fail B").turn(None).overlay.unwrap();
    assert_eq!(newest.prompt_id, "B");
}

#[test]
fn a_poll_never_shows_a_published_outcome_as_unfinished() {
    let session = after("admit A 10; wait 10");
    let view = session.turn(Some("A"));
    assert!(view.live.is_none() && session.pending().is_empty());
    assert_eq!(view.overlay.unwrap().terminal.code(), Some("prompt_deadline_exceeded"));
}

#[test]
fn an_ended_prompt_keeps_its_three_times() {
    let ended = after("wait 1; admit A; admit B; wait 10; settle A end_turn; wait 100; settle B end_turn");
    let ended = ended.turn(Some("B")).overlay.unwrap();
    assert_eq!((ended.queued_at_ms, ended.started_at_ms, ended.ended_at_ms), (Some(1), Some(11), 111));
    let removed = after("admit A; wait 5; admit B; wait 5; remove B").turn(Some("B")).overlay.unwrap();
    assert_eq!((removed.queued_at_ms, removed.started_at_ms, removed.ended_at_ms), (Some(5), None, 10));
}

#[test]
fn a_silent_turn_shows_since_when() {
    let heard = |script: &str| after(script).turn(None).live.unwrap().heard_at_ms;
    assert_eq!(heard("admit A; wait 50"), None);
    assert_eq!(heard("admit A; wait 50; say hi; wait 50"), Some(50));
    assert_eq!(heard("admit A; wait 50; ask q; wait 50"), Some(50));
}

#[test]
fn a_turn_that_asks_shows_what_it_waits_for_and_since_when_until_all_is_decided() {
    let waiting = |script: &str| after(script).turn(Some("A")).live.unwrap().waiting;
    let since = |since_ms, ids: &[&str]| {
        Some(Waiting { since_ms, request_ids: ids.iter().map(|id| (*id).to_owned()).collect() })
    };
    assert_eq!(waiting("ask idle; admit A"), None, "what was asked before is not this turn's");
    assert_eq!(waiting("admit A; wait 5; ask q; wait 5; ask p"), since(5, &["q", "p"]));
    assert_eq!(waiting("admit A; wait 5; ask q; wait 5; ask p; vote q yes"), since(10, &["p"]));
    assert_eq!(waiting("admit A; ask q; vote q yes"), None);
    assert_eq!(waiting("admit A; ask q; cancel"), None);
    assert_eq!(after("admit A; ask q").turn(None).live.unwrap().waiting, since(0, &["q"]), "current is no different");
    assert_eq!(after("admit A; admit B; ask q").turn(Some("B")).live.unwrap().waiting, None, "B only waits its turn");
}

#[test]
fn silence_is_counted_from_the_last_sign_in_this_turn_or_from_its_dispatch() {
    let silent = |script: &str, id: &str, now_ms| {
        after(script).turn(Some(id)).seen_at(now_ms).live.and_then(|live| live.silent_for_ms)
    };
    assert_eq!(silent("wait 5; admit A", "A", 5), Some(0));
    assert_eq!(silent("wait 5; admit A", "A", 95), Some(90));
    for sign in ["say hi", "call c", "ask q", "odd"] {
        assert_eq!(silent(&format!("admit A; wait 50; {sign}"), "A", 70), Some(20), "{sign}");
    }
    assert_eq!(silent("admit A; admit B", "B", 70), None, "what waits is not silent");
    let next = "admit A; admit B; wait 10; say last; wait 20; settle A end_turn";
    assert_eq!(silent(next, "B", 40), Some(10), "a sign of the turn before is none of this one's");
    assert_eq!(silent("wait 50; admit A", "A", 40), Some(0), "a clock that went back makes no silence");
    assert_eq!(silent("admit A; settle A end_turn", "A", 40), None);
}

#[test]
fn a_prompt_that_a_client_cancelled_shows_since_when() {
    let since = |script: &str| after(script).turn(None).live.unwrap().wished_at_ms;
    assert_eq!(since("admit A; wait 50"), None);
    assert_eq!(since("admit A; wait 50; cancel; wait 50; cancel"), Some(50));
    assert_eq!(since("admit A; wait 50; remove A; wait 50"), Some(50));
    assert_eq!(since("admit A; wait 50; close; wait 50"), None, "nobody cancelled it");
    assert_eq!(since("admit A; cancel; admit B; settle A end_turn"), None, "another one was cancelled");
}

#[test]
fn texts_are_kept_by_outcome() {
    let ended = |script: &str| after(script).turn(Some("A")).overlay.unwrap();
    let text = |clipped: Option<Clipped>| clipped.map(|clipped| clipped.text);
    let completed = ended("admit A; say look: ; call c; done c; say done; settle A end_turn");
    assert_eq!((text(completed.result_text), completed.partial_text), (Some("done".into()), None));
    let cancelled = ended("admit A; say half; cancel; settle A end_turn");
    assert_eq!((cancelled.result_text, text(cancelled.partial_text)), (None, Some("half".into())));
    let lost = ended("admit A; say half; lost");
    assert_eq!((lost.result_text, text(lost.partial_text)), (None, Some("half".into())));
    let silent = ended("admit A; settle A end_turn");
    assert_eq!((silent.result_text, silent.partial_text), (None, None));
}

#[test]
fn both_texts_of_a_turn_are_whole_up_to_their_bound_and_end_before_half_a_letter() {
    let shown = |text: String| {
        let mut play = Play::new();
        let receipt = Receipt { prompt_id: "A".into(), last_event_id: 0, event_epoch: "e".into() };
        let prompt = Prompt { content: "[]".into(), text: text.clone(), ..Prompt::default() };
        play.session.step(Input::Admit { prompt, receipt }, Moment::of(0));
        let live = play.session.turn(None).live.unwrap().prompt_text;
        let (raw, speech) = ("{}".into(), Speech::Text(text));
        play.session.step(
            Input::Updated(Update { raw, speech, state: None, message_id: None, whose: Whose::Own }),
            Moment::of(0),
        );
        play.act("settle A end_turn");
        let ended = play.session.turn(Some("A")).overlay.unwrap();
        let result = ended.result_text.unwrap();
        assert_eq!((&live, &live), (&result, &ended.prompt_text.unwrap()), "all three are bounded alike");
        (result.text.encode_utf16().count(), result.truncated)
    };
    assert_eq!(shown("x".repeat(32_768)), (32_768, false));
    assert_eq!(shown("x".repeat(32_769)), (32_768, true));
    // A letter of two units, of which only one has room.
    assert_eq!(shown(format!("x{}", "😀".repeat(16_384))), (32_767, true));
}

#[test]
fn what_an_agent_says_after_its_callers_deadline_is_nobodys_answer() {
    let session =
        after("admit A 10; say half; wait 10; admit B; say more; settle A end_turn; say B; settle B end_turn");
    let text = |id| {
        let ended = session.turn(Some(id)).overlay.unwrap();
        ended.result_text.or(ended.partial_text).map(|clipped| clipped.text)
    };
    assert_eq!((text("A").as_deref(), text("B").as_deref()), (Some("half"), Some("B")));
}

#[test]
fn only_what_certainly_never_reached_the_agent_may_be_sent_again() {
    let written = |script: &str, id: &str| after(script).turn(Some(id)).overlay.unwrap().input_written.unwrap();
    assert_eq!(written("admit A; settle A end_turn", "A"), InputWritten::Yes);
    assert_eq!(written("admit A; fail A", "A"), InputWritten::Yes);
    assert_eq!(written("admit A; hostfail A", "A"), InputWritten::No);
    assert_eq!(written("admit A; admit B; hostgone A", "B"), InputWritten::No);
    assert_eq!(written("admit A; lost", "A"), InputWritten::Maybe);
    assert_eq!(written("admit A; exited", "A"), InputWritten::Yes);
    assert_eq!(written("admit A; say hi; lost", "A"), InputWritten::Yes);
    assert_eq!(written("admit A; ask q; lost", "A"), InputWritten::Yes);
    assert_eq!(written("admit A; shutdown", "A"), InputWritten::Yes);
    for script in ["admit A; admit B; remove B", "admit A; admit B; lost", "admit A; admit B; close"] {
        assert_eq!(written(script, "B"), InputWritten::No, "{script}");
    }
    assert_eq!(written("admit A; admit B 10; wait 10", "B"), InputWritten::No);
}

#[test]
fn the_error_of_a_turn_is_remembered_until_one_succeeds() {
    let code = |script: &str| after(script).status(0, 0, 0).turn_error.and_then(|error| error.code);
    assert_eq!(code("admit A; fail A").as_deref(), Some("-32603"));
    assert_eq!(code("admit A; fail A; admit B; cancel; settle B end_turn").as_deref(), Some("-32603"));
    assert_eq!(code("admit A; fail A; admit B; settle B end_turn"), None);
}

#[test]
fn what_a_poll_absorbs_never_touches_an_unfinished_prompt() {
    let mut session = after("admit A; settle A end_turn; admit B");
    let mut ended = session.turn(Some("A")).overlay.unwrap();
    ended.terminal = Terminal::Cancelled { agent_stop_reason: None };
    session.absorb(ended.clone(), 0);
    assert_eq!(session.turn(Some("A")).overlay, Some(ended.clone()));
    ended.prompt_id = "B".into();
    session.absorb(ended, 0);
    assert_eq!(session.turn(Some("B")).overlay, None);
}

#[test]
fn an_absorbed_outcome_does_not_change_what_the_next_admission_of_that_id_hears() {
    let mut play = Play::new();
    play.act("admit A");
    play.act("settle A end_turn");
    let mut ended = play.session.turn(Some("A")).overlay.unwrap();
    ended.result_text = Some(Clipped::new("from the transcript", 100));
    play.session.absorb(ended, 0);
    assert_eq!(play.act("admit A").iter().map(super::notation::word).collect::<Vec<_>>(), ["known true"]);
}

#[test]
fn a_session_is_busy_until_its_agent_is_not() {
    let busy = |script: &str| after(script).status(0, 0, 0).has_active_prompt;
    assert!(!busy("say hi"));
    assert!(busy("admit A"));
    assert!(busy("admit A 10; wait 10"), "released, and still at work");
    assert!(!busy("admit A; settle A end_turn"));
    assert!(busy("admit A; kill"), "its agent has yet to go");
    assert!(!busy("admit A; kill; lost") && !busy("admit A; lost") && !busy("admit A; close; wait 2000"));
}

#[test]
fn a_status_counts_and_dates_what_happened() {
    let status = after("admit A; admit B; ask q; wait 20; settle A end_turn; wait 5").status(3, 2, 1);
    assert_eq!((status.created_at_ms, status.client_count, status.subscriber_count), (3, 2, 1));
    assert_eq!((status.updated_at_ms, status.active_at_ms), (Some(20), 20));
    assert_eq!((status.pending_prompt_count, status.pending_permissions.len(), status.closing), (1, 0, false));
    let status = after("ask q; settle A end_turn; admit A; close").status(0, 0, 0);
    assert_eq!((status.late_answers, status.closing, status.pending_permissions.len()), (1, true, 0));
}

#[test]
fn a_sign_of_life_counts_as_activity_but_never_backwards() {
    let mut session = after("wait 10; admit A");
    session.note_activity(5);
    assert_eq!(session.status(0, 0, 0).active_at_ms, 10);
    session.note_activity(15);
    assert_eq!(session.status(0, 0, 0).active_at_ms, 15);
}

#[test]
fn a_request_is_known_before_and_after_its_decision() {
    let knows = |script: &str| after(script).knows_permission("q");
    assert!(!knows("ask p"));
    assert!(knows("ask q"));
    assert!(knows("ask q; vote q yes"));
    assert!(knows("ask q; lost"));
}

#[test]
fn after_its_streams_have_ended_a_session_answers_and_tells_nobody() {
    check(&[
        ("ask q", "ask q"),
        (
            "kill",
            "ok, > ruling q cancelled, resolved q cancelled session_killed, died killed, end, > close session_killed",
        ),
        ("vote q yes", "too late cancelled session_killed"),
        ("say late", ""),
        ("ask p", "> ruling p cancelled"),
        ("odd", "> unsupported odd"),
        ("lost", "forget"),
        ("ask p", ""),
        ("odd", ""),
        ("remove A", "gone"),
        ("close", "gone"),
    ]);
}

#[test]
fn a_closing_session_still_tells_what_its_last_turn_says() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("close", "ok, > cancel"),
        ("say last words", "update A"),
        ("ask q", "> ruling q cancelled"),
        ("fail A", "record A cancelled, complete A cancelled, > close session_closed"),
        ("say afterwords", "update"),
        ("exited", "closed client_close, end, forget"),
    ]);
}

#[test]
fn a_kill_does_not_wait_for_a_close() {
    check(&[
        ("admit A", "record A, receipt A, echo A, > prompt A"),
        ("close", "ok, > cancel"),
        ("kill", "ok, record A error session_killed, error A session_killed, died killed, end, > close session_killed"),
        ("settle A end_turn", ""),
        ("wait 500", "forget"),
    ]);
}
