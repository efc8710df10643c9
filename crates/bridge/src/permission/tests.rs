//! The open requests, without a session around them.

use std::collections::BTreeSet;

use super::*;
use crate::Policy;

fn open(request_id: &str, prompt_id: Option<&str>) -> Open {
    let offer = |id: &str, raw: &str, rejects_once| Offer { id: id.into(), raw: raw.into(), rejects_once };
    Open {
        about: About { request_id: request_id.into(), prompt_id: prompt_id.map(PromptId::from), originator: None },
        created_at_ms: 5,
        expires_at_ms: None,
        due: None,
        ask: Ask {
            agent_request: RequestId::string("r"),
            tool_call: "{}".into(),
            options: "[]".into(),
            news: acp::Speech::Other,
            offers: vec![offer("yes", r#""y\u0065s""#, false), offer("no", r#""n\u006f""#, true)],
        },
        ballot: Ballot::new(Policy::FirstResponder, None, BTreeSet::new()),
    }
}

fn select(option_id: &str) -> Vote {
    Vote::Selected { option_id: option_id.into(), answers: None }
}

/// What a vote of nobody in particular decides.
fn decided(permissions: &mut Permissions, request_id: &str, vote: &Vote) -> Resolved {
    match permissions.vote(request_id, vote, &Voter::default(), 9) {
        Voted::Resolved(resolved) => resolved,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_valid_vote_decides_and_the_second_hears_it() {
    let mut permissions = Permissions::default();
    permissions.open(open("q", None));
    let invalid = permissions.vote("q", &select("maybe"), &Voter::default(), 8);
    assert!(matches!(invalid, Voted::InvalidOption));
    let resolved = decided(&mut permissions, "q", &select("yes"));
    let decision = Decision::Selected { option_id: "yes".into() };
    assert_eq!(resolved.resolution, Resolution { decision, reason: Reason::Vote, voter: None, at_ms: 9 });
    let second = permissions.vote("q", &Vote::Cancelled, &Voter::default(), 10);
    assert!(matches!(second, Voted::Already(decided) if decided.resolution == resolved.resolution));
}

#[test]
fn the_agent_gets_the_option_as_it_spelled_it() {
    let mut permissions = Permissions::default();
    permissions.open(open("q", None));
    let resolved = decided(&mut permissions, "q", &select("yes"));
    assert_eq!(resolved.ruling.option.as_deref(), Some(r#""y\u0065s""#));
    permissions.open(open("p", None));
    let denied = permissions.expire("p", 7).unwrap();
    assert_eq!(denied.ruling.option.as_deref(), Some(r#""n\u006f""#));
}

#[test]
fn what_nobody_decides_in_time_is_rejected_once_or_cancelled_where_the_agent_offers_no_such_option() {
    let mut permissions = Permissions::default();
    permissions.open(open("q", None));
    let denied = permissions.expire("q", 7).unwrap();
    let decision = Decision::Selected { option_id: "no".into() };
    assert_eq!(denied.resolution, Resolution { decision, reason: Reason::Timeout, voter: None, at_ms: 7 });
    let mut without = open("p", None);
    without.ask.offers.truncate(1);
    permissions.open(without);
    let denied = permissions.expire("p", 8).unwrap();
    assert_eq!((denied.resolution.decision, denied.ruling.option), (Decision::Cancelled, None));
    assert!(permissions.expire("p", 9).is_none(), "once");
}

#[test]
fn the_request_that_expires_first_is_due_first() {
    let mut permissions = Permissions::default();
    assert!(permissions.due().is_none());
    for (request_id, due) in [("never", None), ("later", Some(Steady(30))), ("sooner", Some(Steady(20)))] {
        permissions.open(Open { due, ..open(request_id, None) });
    }
    assert_eq!(permissions.due().map(|(due, id)| (due, &**id)), Some((Steady(20), "sooner")));
}

#[test]
fn an_unknown_request_is_unknown_before_and_after_others() {
    let mut permissions = Permissions::default();
    let unknown = |permissions: &mut Permissions| {
        matches!(permissions.vote("q", &Vote::Cancelled, &Voter::default(), 0), Voted::Unknown)
    };
    assert!(unknown(&mut permissions));
    permissions.open(open("p", None));
    assert!(unknown(&mut permissions));
}

#[test]
fn refusing_takes_only_what_is_picked() {
    let mut permissions = Permissions::default();
    permissions.open(open("q", Some("A")));
    permissions.open(open("p", None));
    let refused = permissions.refuse(|open| open.about.prompt_id.is_some(), Reason::TurnEnded, 0);
    assert_eq!(refused.len(), 1);
    assert_eq!(*refused[0].about.request_id, *"q");
    assert_eq!(permissions.pending().len(), 1);
    assert!(permissions.knows("q") && permissions.knows("p"));
}

#[test]
fn a_prompt_waits_since_its_oldest_question_and_for_none_of_anothers() {
    let mut permissions = Permissions::default();
    for (request_id, prompt_id, created_at_ms) in [("q", "A", 7), ("p", "B", 1), ("r", "A", 9)] {
        permissions.open(Open { created_at_ms, ..open(request_id, Some(prompt_id)) });
    }
    let waiting = permissions.waiting(&"A".into());
    assert_eq!(waiting, Some(Waiting { since_ms: 7, request_ids: vec!["q".into(), "r".into()] }));
    assert_eq!(permissions.waiting(&"C".into()), None);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut permissions = Permissions::default();
    for number in 0..=PERMISSIONS_DECIDED_MAX {
        permissions.open(open(&number.to_string(), None));
        permissions.refuse(|_| true, Reason::TurnEnded, 0);
    }
    assert!(!permissions.knows("0"));
    assert!(permissions.knows("1"));
}
