//! What becomes of the agent's questions, one row a statement.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::notation::{Play, check, check_under, word};
use crate::effect::{Effect, Reply};
use crate::{Mediation, Policy, VoteOutcome};

const RUNNING: (&str, &str) = ("admit A of a", "record A, receipt A, echo A, > prompt A");

fn under(policy: Policy) -> Mediation {
    Mediation { policy, response_timeout_ms: None }
}

fn timed(policy: Policy) -> Mediation {
    Mediation { policy, response_timeout_ms: Some(100) }
}

fn consensus(quorum: usize) -> Policy {
    Policy::Consensus { quorum: NonZeroUsize::new(quorum) }
}

#[test]
fn a_forbidden_vote_is_told_to_everybody_and_leaves_the_question_open() {
    check_under(
        under(Policy::Designated),
        &[
            ("join a", ""),
            ("join b", ""),
            RUNNING,
            ("ask q", "ask q"),
            ("vote q yes b", "forbidden q designated_mismatch, no vote designated_mismatch"),
            ("vote q yes", "forbidden q designated_mismatch, no vote designated_mismatch"),
            ("vote q maybe b", "no such option"),
            ("vote q yes a", "> ruling q \"yes\", resolved q yes, voted"),
        ],
    );
    check_under(
        under(Policy::LocalOnly),
        &[
            ("ask q", "ask q"),
            ("vote q yes a afar", "forbidden q remote_not_allowed, no vote remote_not_allowed"),
            ("vote q yes a", "> ruling q \"yes\", resolved q yes, voted"),
        ],
    );
}

#[test]
fn unlike_at_the_peer_a_vote_to_cancel_obeys_the_policy() {
    let refused = [
        (under(Policy::Designated), "vote q cancelled b", "designated_mismatch"),
        (under(Policy::Designated), "vote q cancelled", "designated_mismatch"),
        (under(Policy::LocalOnly), "vote q cancelled a afar", "remote_not_allowed"),
        (under(consensus(2)), "vote q cancelled", "designated_mismatch"),
    ];
    for (mediation, vote, why) in refused {
        let forbidden = format!("forbidden q {why}, no vote {why}");
        check_under(mediation, &[("join a", ""), ("join b", ""), RUNNING, ("ask q", "ask q"), (vote, &forbidden)]);
    }
    check_under(
        under(consensus(2)),
        &[
            ("join a", ""),
            ("join b", ""),
            ("ask q", "ask q"),
            ("vote q cancelled a", "partial q 1 of 2, voted"),
            ("vote q cancelled b", "> ruling q cancelled, resolved q cancelled, voted"),
        ],
    );
}

#[test]
fn several_decide_once_so_many_agree_as_must() {
    check_under(
        under(Policy::Consensus { quorum: None }),
        &[
            ("join a", ""),
            ("join b", ""),
            ("join c", ""),
            RUNNING,
            ("ask q", "ask q"),
            ("join late", ""),
            ("vote q yes a", "partial q 1 of 2, voted"),
            ("vote q yes a", "voted before"),
            ("vote q reject a", "voted before"),
            ("vote q yes late", "forbidden q designated_mismatch, no vote designated_mismatch"),
            ("vote q yes b", "> ruling q \"yes\", resolved q yes, voted"),
            ("vote q reject c", "was resolved q yes, too late yes"),
        ],
    );
}

#[test]
fn a_question_that_no_vote_can_decide_any_more_is_refused_and_does_not_hang() {
    let three = [("join a", ""), ("join b", ""), ("join c", ""), ("ask q", "ask q")];
    let refused = "> ruling q cancelled, resolved q cancelled undecidable";
    let split = format!("partial q 3 of 2, {refused}, voted");
    let votes = [
        ("vote q yes a", "partial q 1 of 2, voted"),
        ("vote q reject b", "partial q 2 of 2, voted"),
        ("vote q cancelled c", split.as_str()),
        ("vote q yes a", "was resolved q cancelled, too late cancelled undecidable"),
    ];
    check_under(under(consensus(2)), &[&three[..], &votes].concat());
    let gone = [("vote q yes a", "partial q 1 of 2, voted"), ("leave b", ""), ("leave c", refused)];
    check_under(under(consensus(2)), &[&three[..], &gone].concat());
    let too_few = format!("ask q, {refused}");
    check_under(under(consensus(4)), &[("join a", ""), ("ask q", &too_few)]);
    check_under(under(Policy::Designated), &[("join a", ""), RUNNING, ("ask q", "ask q"), ("leave a", refused)]);
    check_under(under(Policy::Designated), &[("join b", ""), RUNNING, ("ask q", &too_few)]);
}

#[test]
fn a_client_that_goes_takes_no_question_with_it_that_others_may_answer() {
    for policy in [Policy::FirstResponder, Policy::LocalOnly] {
        let rows = [("join a", ""), RUNNING, ("ask q", "ask q"), ("leave a", "")];
        check_under(
            under(policy),
            &[&rows[..], &[("vote q yes b", "> ruling q \"yes\", resolved q yes, voted")]].concat(),
        );
    }
}

#[test]
fn what_nobody_decides_in_time_is_denied_by_the_agents_own_option_and_a_late_vote_hears_that() {
    for policy in [Policy::FirstResponder, Policy::Designated, Policy::LocalOnly, consensus(2)] {
        check_under(
            timed(policy),
            &[
                ("join a", ""),
                ("join b", ""),
                RUNNING,
                ("wait 7", ""),
                ("ask q", "ask q"),
                ("wait 99", ""),
                ("wait 1", "> ruling q \"reject\", resolved q reject timeout"),
                ("vote q yes a", "was resolved q reject, too late reject timeout"),
                ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
            ],
        );
    }
}

#[test]
fn each_question_has_its_own_time() {
    check_under(
        timed(Policy::FirstResponder),
        &[
            ("ask q", "ask q"),
            ("wait 60", ""),
            ("ask p", "ask p"),
            ("wait 40", "> ruling q \"reject\", resolved q reject timeout"),
            ("vote p yes", "> ruling p \"yes\", resolved p yes, voted"),
            ("wait 1000", ""),
        ],
    );
}

#[test]
fn whatever_ends_a_turn_resolves_its_open_questions_as_cancelled_and_says_why() {
    let ends = [
        ("cancel", "prompt_cancelled"),
        ("remove A", "prompt_cancelled"),
        ("settle A end_turn", "turn_ended"),
        ("fail A", "turn_ended"),
        ("close", "session_closed"),
        ("kill", "session_killed"),
        ("shutdown", "daemon_shutdown"),
        ("lost", "channel_closed"),
        ("exited", "channel_closed"),
    ];
    for (end, reason) in ends {
        let mut play = Play::new();
        for statement in ["admit A", "ask q"] {
            play.act(statement);
        }
        let came: Vec<String> = play.act(end).iter().map(word).collect();
        let told = came.iter().position(|effect| effect == "> ruling q cancelled");
        let resolved = came.iter().position(|effect| *effect == format!("resolved q cancelled {reason}"));
        assert!(told.is_some() && resolved == told.map(|place| place + 1), "{end}: {came:?}");
        let outcome = came.iter().position(|effect| effect.starts_with("record A"));
        assert!(outcome.is_none_or(|outcome| Some(outcome) > resolved), "before the outcome: {end}: {came:?}");
        let late: Vec<String> = play.act("vote q yes").iter().map(word).collect();
        assert_eq!(late.last(), Some(&format!("too late cancelled {reason}")), "{end}");
    }
}

#[test]
fn a_deadline_that_releases_the_caller_resolves_what_the_turn_asked() {
    check(&[
        ("admit A 10", "record A, receipt A, echo A, > prompt A"),
        ("ask q", "ask q"),
        (
            "wait 10",
            "record A error prompt_deadline_exceeded, error A prompt_deadline_exceeded, cancel A, > cancel, \
             > ruling q cancelled, resolved q cancelled prompt_deadline_exceeded",
        ),
        ("ask p", "> ruling p cancelled"),
    ]);
}

#[test]
fn a_question_asked_while_idle_is_anybodys_and_outlives_the_turns() {
    check_under(
        under(Policy::Designated),
        &[
            ("join b", ""),
            ("ask q", "ask q"),
            RUNNING,
            ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
            ("vote q yes b", "> ruling q \"yes\", resolved q yes, voted"),
        ],
    );
}

#[test]
fn a_question_asked_after_its_turn_is_one_asked_while_idle() {
    check(&[
        RUNNING,
        ("settle A end_turn", "record A completed end_turn, complete A end_turn"),
        ("ask q", "ask q"),
        ("vote q yes", "> ruling q \"yes\", resolved q yes, voted"),
    ]);
}

#[test]
fn the_same_question_asked_again_under_the_same_id_has_one_answer() {
    check(&[
        ("ask q touch 7", "ask q"),
        ("ask p touch 7", ""),
        ("vote p yes", "no such request"),
        ("vote q yes", "> ruling 7 \"yes\", resolved q yes, voted"),
        ("ask r touch 7", "ask r"),
    ]);
}

#[test]
fn another_question_under_an_id_that_is_open_allows_neither() {
    check(&[
        ("ask q touch 7", "ask q"),
        ("ask p remove 7", "> ruling 7 cancelled, resolved q cancelled id_reused, > ruling 7 cancelled"),
        ("vote q yes", "was resolved q cancelled, too late cancelled id_reused"),
        ("vote p yes", "no such request"),
    ]);
}

#[test]
fn the_session_knows_the_voter_of_a_decision_and_its_time() {
    let mut play = Play::new();
    for statement in ["ask q", "wait 30", "vote q yes c", "wait 5"] {
        play.act(statement);
    }
    match &play.act("vote q yes")[..] {
        [_, Effect::Reply(Reply::Voted(VoteOutcome::AlreadyResolved(resolution)))] => {
            assert_eq!((resolution.voter.as_deref(), resolution.at_ms), (Some("c"), 30));
        }
        other => panic!("{other:?}"),
    }
}

/// Every order of these.
fn orders(of: &[&'static str]) -> Vec<Vec<&'static str>> {
    let Some((last, others)) = of.split_last() else { return vec![Vec::new()] };
    let with_last = |order: &Vec<&'static str>| {
        (0..=order.len()).map(|place| [&order[..place], &[*last], &order[place..]].concat()).collect::<Vec<_>>()
    };
    orders(others).iter().flat_map(with_last).collect()
}

#[test]
fn a_vote_a_deadline_a_cancel_the_end_of_the_turn_and_a_close_in_one_instant_decide_once_in_every_order() {
    let orders = orders(&["vote q yes", "wait 100", "cancel", "settle A end_turn", "close"]);
    assert_eq!(orders.len(), 120);
    for order in orders {
        let mut play = Play::under(timed(Policy::FirstResponder));
        let mut came: Vec<String> = Vec::new();
        for statement in ["admit A", "ask q"] {
            play.act(statement);
        }
        for statement in &order {
            came.extend(play.act(statement).iter().map(word));
            let count = |wanted: &str| came.iter().filter(|effect| effect.starts_with(wanted)).count();
            // The first of them decides, whichever it is.
            assert_eq!((count("> ruling q"), count("resolved q")), (1, 1), "{statement} in {order:?}: {came:?}");
        }
        assert_eq!(came.iter().filter(|effect| effect.starts_with("record A ")).count(), 1, "{order:?}");
    }
}

fn statement() -> impl Strategy<Value = String> {
    let one_of = |words: &'static [&'static str]| prop::sample::select(words);
    let question = move || one_of(&["q1", "q2", "q3", "q4", "q5"]);
    prop_oneof![
        3 => one_of(&["admit A of a", "admit B", "admit C 80", "settle ? end_turn", "cancel", "say hi"]).prop_map(str::to_owned),
        4 => (one_of(&["touch", "remove"]), one_of(&["7", "8"])).prop_map(|(call, number)| format!("ask {call} {number}")),
        8 => (question(), one_of(&["yes", "reject", "cancelled", "no"]), one_of(&["", " a", " b", " c", " a afar"]))
            .prop_map(|(id, choice, voter)| format!("vote {id} {choice}{voter}")),
        2 => one_of(&["join a", "join b", "join c", "leave a", "leave b", "leave c"]).prop_map(str::to_owned),
        2 => (0u64..90).prop_map(|ms| format!("wait {ms}")),
        1 => one_of(&["close", "kill", "shutdown", "lost", "hostgone ?"]).prop_map(str::to_owned),
    ]
}

fn mediation() -> impl Strategy<Value = Mediation> {
    let policies = [Policy::FirstResponder, Policy::Designated, Policy::LocalOnly, consensus(0), consensus(2)];
    (prop::sample::select(policies.to_vec()), prop::option::of(1u64..200))
        .prop_map(|(policy, response_timeout_ms)| Mediation { policy, response_timeout_ms })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn under_any_policy_each_question_is_resolved_once_and_none_is_open_beyond_its_time(
        mediation in mediation(),
        script in prop::collection::vec(statement(), 0..50),
    ) {
        let mut play = Play::under(mediation);
        for client in ["join a", "join b"] {
            play.act(client);
        }
        let (mut asked, mut resolved) = (0, 0);
        let rest = ["shutdown".to_owned(), "wait 5000".to_owned()];
        let mut questions = 0;
        for statement in script.iter().chain(&rest) {
            // Our ids are each used once.
            questions += usize::from(statement.starts_with("ask "));
            let statement = &statement.replace("ask ", &format!("ask q{questions} "));
            let came: Vec<String> = play.act(statement).iter().map(word).collect();
            asked += came.iter().filter(|effect| effect.starts_with("ask ")).count();
            resolved += came.iter().filter(|effect| effect.starts_with("resolved ")).count();
            let voted = statement.starts_with("vote") && came.last().is_some_and(|reply| reply == "voted");
            let counted = came.iter().any(|effect| effect.starts_with("partial") || effect.starts_with("resolved"));
            prop_assert_eq!(voted, statement.starts_with("vote") && counted, "{}: {:?}", statement, came);
            let open = play.session.status(0, 0, 0).pending_permissions;
            prop_assert_eq!(asked - resolved, open.len(), "{}: {:?}", statement, came);
            let overdue = open.iter().any(|open| open.expires_at_ms.is_some_and(|at_ms| at_ms <= play.now_ms));
            prop_assert!(!(overdue && statement.starts_with("wait")), "{}", statement);
        }
        prop_assert_eq!(asked, resolved);
    }
}
