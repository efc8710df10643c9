//! Votes in a row, and what each of them does.

use proptest::prelude::*;

use super::*;

/// Lets clients vote: `c yes` is client c, `- yes` is nobody in particular, `c yes afar` comes from another machine, `c leaves`.
fn check(policy: Policy, originator: Option<&str>, clients: &str, rows: &[(&str, &str)]) {
    let registered: BTreeSet<Arc<str>> = clients.split_whitespace().map(Into::into).collect();
    let originator = originator.map(Into::into);
    let mut ballot = Ballot::new(policy, originator.as_ref(), registered);
    for (row, expected) in rows {
        let words: Vec<&str> = row.split_whitespace().collect();
        let got = match words[..] {
            [client, "leaves"] => {
                ballot.leave(client);
                String::new()
            }
            [client, choice] => word(&ballot.cast(&voter(client, true), choice)),
            [client, choice, "afar"] => word(&ballot.cast(&voter(client, false), choice)),
            _ => String::new(),
        };
        let got = if ballot.can_decide() { got } else { format!("{got} never").trim().to_owned() };
        assert_eq!(got, *expected, "after {row:?} in {rows:#?}");
    }
}

fn voter(client: &str, is_local: bool) -> Voter {
    Voter { client_id: (client != "-").then(|| client.into()), is_local }
}

fn word(cast: &Cast) -> String {
    match cast {
        Cast::Decides => "decides".into(),
        Cast::Counts(Tally { received, needed, quorum, by_option }) => {
            let options: Vec<String> = by_option.iter().map(|(id, count)| format!("{id}={count}")).collect();
            format!("{received} of {quorum}, {needed} to go: {}", options.join(" "))
        }
        Cast::Repeats => "repeats".into(),
        Cast::Forbidden(why) => why.as_str().into(),
    }
}

const CONSENSUS: Policy = Policy::Consensus { quorum: None };

fn quorum(votes: usize) -> Policy {
    Policy::Consensus { quorum: NonZeroUsize::new(votes) }
}

#[test]
fn under_first_responder_anybody_decides() {
    check(Policy::FirstResponder, Some("a"), "a b", &[("- yes afar", "decides")]);
    check(Policy::FirstResponder, Some("a"), "", &[("b __cancelled__", "decides")]);
}

#[test]
fn under_designated_only_the_prompts_own_client_decides() {
    let rows = [
        ("b yes", "designated_mismatch"),
        ("- yes", "designated_mismatch"),
        ("b __cancelled__", "designated_mismatch"),
        ("- __cancelled__", "designated_mismatch"),
        ("a yes afar", "decides"),
    ];
    check(Policy::Designated, Some("a"), "a b", &rows);
}

#[test]
fn under_designated_anybody_decides_for_an_anonymous_prompt() {
    check(Policy::Designated, None, "a b", &[("b yes", "decides")]);
    check(Policy::Designated, None, "a b", &[("- yes", "decides")]);
}

#[test]
fn under_designated_nobody_can_decide_once_the_prompts_client_is_gone() {
    check(
        Policy::Designated,
        Some("a"),
        "a b",
        &[("b leaves", ""), ("a leaves", "never"), ("a yes", "designated_mismatch never")],
    );
    check(Policy::Designated, Some("a"), "b", &[("", "never"), ("- yes", "designated_mismatch never")]);
}

#[test]
fn under_local_only_anybody_on_this_machine_decides() {
    check(Policy::LocalOnly, Some("a"), "a", &[("a yes afar", "remote_not_allowed"), ("- yes", "decides")]);
    check(Policy::LocalOnly, None, "a", &[("a __cancelled__ afar", "remote_not_allowed"), ("b yes", "decides")]);
}

#[test]
fn under_consensus_more_than_half_of_the_clients_decide() {
    let rows = [("a yes", "1 of 2, 1 to go: yes=1"), ("b yes", "decides")];
    check(CONSENSUS, None, "a b c", &rows);
    check(CONSENSUS, None, "a b", &rows);
    check(CONSENSUS, None, "a", &[("a yes", "decides")]);
    let rows = [("a yes", "1 of 3, 2 to go: yes=1"), ("b yes", "2 of 3, 1 to go: yes=2"), ("c yes", "decides")];
    check(CONSENSUS, None, "a b c d", &rows);
}

#[test]
fn under_consensus_nobody_votes_twice_and_nobody_changes_a_vote() {
    let rows = [
        ("a yes", "1 of 2, 1 to go: yes=1"),
        ("a yes", "repeats"),
        ("a no", "repeats"),
        ("b no", "2 of 2, 1 to go: no=1 yes=1"),
    ];
    check(CONSENSUS, None, "a b c", &rows);
}

#[test]
fn under_consensus_only_who_was_registered_when_the_agent_asked_votes() {
    check(CONSENSUS, Some("d"), "a b c", &[("d yes", "designated_mismatch"), ("- yes", "designated_mismatch")]);
}

#[test]
fn under_consensus_a_cancel_is_one_vote_among_the_others_and_not_the_peers_way_past_the_policy() {
    let rows = [
        ("- __cancelled__", "designated_mismatch"),
        ("a __cancelled__", "1 of 2, 1 to go: __cancelled__=1"),
        ("b yes", "2 of 2, 1 to go: __cancelled__=1 yes=1"),
        ("c __cancelled__", "decides"),
    ];
    check(CONSENSUS, None, "a b c", &rows);
}

#[test]
fn under_consensus_votes_that_split_can_never_decide() {
    let rows = [
        ("a yes", "1 of 2, 1 to go: yes=1"),
        ("b no", "2 of 2, 1 to go: no=1 yes=1"),
        ("c __cancelled__", "3 of 2, 1 to go: __cancelled__=1 no=1 yes=1 never"),
    ];
    check(CONSENSUS, None, "a b c", &rows);
}

#[test]
fn under_consensus_who_is_gone_is_not_waited_for_and_what_it_voted_stays() {
    let rows = [("a yes", "1 of 2, 1 to go: yes=1"), ("a leaves", ""), ("b leaves", ""), ("c yes", "decides")];
    check(CONSENSUS, None, "a b c", &rows);
    check(CONSENSUS, None, "a b", &[("a yes", "1 of 2, 1 to go: yes=1"), ("b leaves", "never")]);
    check(CONSENSUS, None, "a b", &[("b leaves", "never"), ("b yes", "designated_mismatch never")]);
}

#[test]
fn a_stated_quorum_is_never_lowered_to_the_clients_there_are() {
    check(quorum(1), None, "a b c", &[("b no", "decides")]);
    check(quorum(3), None, "a b", &[("", "never"), ("a yes", "1 of 3, 2 to go: yes=1 never")]);
    check(CONSENSUS, None, "", &[("", "never")]);
}

proptest! {
    /// Whatever is voted, at most one option is ever decided for, and only with as many voters as the quorum.
    #[test]
    fn a_decision_has_its_quorum_and_an_open_vote_can_still_reach_it(
        clients in 0usize..6,
        votes in prop::collection::vec((0usize..8, 0usize..3, any::<bool>()), 0..20),
        stated in 0usize..5,
    ) {
        let name = |number: usize| Arc::<str>::from(number.to_string());
        let mut ballot = Ballot::new(quorum(stated), None, (0..clients).map(name).collect());
        let quorum = if stated == 0 { clients / 2 + 1 } else { stated };
        let mut agreed: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut voted = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for (client, choice, leaves) in votes {
            if leaves {
                ballot.leave(&name(client));
                gone.insert(client);
                continue;
            }
            let counts = client < clients && !voted.contains(&client) && !gone.contains(&client);
            let cast = ballot.cast(&Voter { client_id: Some(name(client)), is_local: true }, &choice.to_string());
            if counts {
                voted.insert(client);
                agreed.entry(choice).or_default().insert(client);
            }
            let votes = agreed.get(&choice).map_or(0, BTreeSet::len);
            prop_assert_eq!(cast == Cast::Decides, counts && votes >= quorum);
            if cast == Cast::Decides {
                break;
            }
            let most = agreed.values().map(BTreeSet::len).max().unwrap_or(0);
            let to_come = (0..clients).filter(|client| !voted.contains(client) && !gone.contains(client)).count();
            prop_assert_eq!(ballot.can_decide(), most + to_come >= quorum);
        }
    }
}
