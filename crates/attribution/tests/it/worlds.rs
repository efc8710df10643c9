//! The verdict against the truth, in simulated worlds.

use std::collections::BTreeSet;

use attribution::strategies::{
    Deed, Entry, Event, Name, Remains, Residual, Rules, START_MS, Story, What, World, worlds,
};
use attribution::{Basis, Verdict, Withheld};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::files::{Files, NOW_MS};

/// The same worlds in every run, so that what fails here fails everywhere.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Worlds with any of the rules under which no verdict may be wrong.
fn closed_worlds() -> impl Strategy<Value = World> {
    prop_oneof![
        2 => worlds(Rules::STAMPED),
        1 => worlds(Rules::STAMPED_LOSSY),
        1 => worlds(Rules::UNSTAMPED),
        2 => worlds(Rules::STAMPED.with_wishes()),
    ]
}

/// Runs a property; what fails is said in the notation.
fn check(cases: u32, worlds: impl Strategy<Value = World>, property: impl Fn(&Files, &World) -> Result<(), String>) {
    let files = Files::with(None, None);
    let result = runner(cases).run(&worlds, |world| property(&files, &world).map_err(TestCaseError::fail));
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn verdict(files: &Files, remains: &Remains) -> Verdict {
    files.write_ledger(&remains.ledger);
    files.write_transcript(&remains.transcript);
    files.plan().verdict
}

fn wrong(world: &World, verdict: &Verdict) -> Result<(), String> {
    match verdict.settled.iter().find(|settled| !world.allows(&settled.prompt_id, &settled.fact)) {
        Some(settled) => Err(format!("{settled:?}")),
        None => Ok(()),
    }
}

fn same(given: &Verdict, expected: &Verdict, when: &str) -> Result<(), String> {
    if given == expected { Ok(()) } else { Err(format!("{when}: {given:?}, else {expected:?}")) }
}

#[test]
fn no_verdict_contradicts_the_truth_where_every_prompt_is_stamped() {
    check(9_000, worlds(Rules::STAMPED), |files, world| wrong(world, &verdict(files, &world.story.remains())));
    check(5_000, worlds(Rules::STAMPED_LOSSY), |files, world| wrong(world, &verdict(files, &world.story.remains())));
}

#[test]
fn no_verdict_contradicts_the_truth_where_nothing_is_stamped_and_the_clock_goes_forward() {
    check(6_000, worlds(Rules::UNSTAMPED), |files, world| wrong(world, &verdict(files, &world.story.remains())));
}

#[test]
fn no_verdict_contradicts_the_truth_where_wishes_to_cancel_are_in_the_ledger() {
    for (cases, rules) in [(3_000, Rules::STAMPED), (2_000, Rules::STAMPED_LOSSY), (3_000, Rules::UNSTAMPED)] {
        let worlds = worlds(rules.with_wishes());
        check(cases, worlds, |files, world| wrong(world, &verdict(files, &world.story.remains())));
    }
}

/// Whoever wrote no wish reads what he always read.
#[test]
fn without_its_wishes_a_ledger_is_judged_as_if_nobody_knew_of_any() {
    check(1_500, worlds(Rules::STAMPED.with_wishes()), |files, world| {
        let with = verdict(files, &world.story.remains());
        let is_wish = |event: &&Event| matches!(event.deed, Deed::Wish { .. });
        let wished: BTreeSet<_> =
            files.plan().reading.unwrap().open_wishes().iter().map(|wish| wish.prompt_id.clone()).collect();
        let mut without = world.story.clone();
        // A wish that was torn leaves a tear, which is sealed and drops with it; the time that it took stays.
        let mut passed_ms = 0;
        without.events.retain_mut(|event| {
            event.after_ms += std::mem::take(&mut passed_ms);
            if is_wish(&&*event) {
                passed_ms = event.after_ms;
                false
            } else {
                true
            }
        });
        let plain = verdict(files, &without.remains());
        let is_same = |settled: &&attribution::Settled| !wished.contains(&settled.prompt_id);
        let unwished = |verdict: &Verdict| verdict.settled.iter().filter(is_same).cloned().collect::<Vec<_>>();
        let expected = unwished(&plain);
        if unwished(&with) != expected {
            return Err(format!("{with:?}, without wishes {plain:?}"));
        }
        if wished.is_empty() { same(&with, &plain, "no wish counts") } else { Ok(()) }
    });
}

/// Else the properties above would hold of a judge that never says anything.
#[test]
fn the_worlds_reach_every_basis_and_every_reason_that_bytes_alone_can_give() {
    let files = Files::with(None, None);
    let mut runner = runner(1);
    let strategy = closed_worlds();
    let (mut bases, mut reasons) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..6_000 {
        let world = strategy.new_tree(&mut runner).unwrap().current();
        let verdict = verdict(&files, &world.story.remains());
        bases.extend(verdict.settled.iter().map(|settled| format!("{:?}", settled.basis)));
        reasons.extend(verdict.withheld.map(Withheld::as_str));
    }
    assert_eq!(
        bases,
        ["Answer", "CallWithoutId", "OpenCall", "OpenPrompt", "TurnResult", "Wish"].map(str::to_owned).into()
    );
    // A ledger that cannot be read, a message that is none, and a race are not in these worlds.
    let elsewhere = [Withheld::LedgerUnreadable, Withheld::HistoryUnreadable, Withheld::LedgerChanged];
    let expected = Withheld::ALL.into_iter().filter(|reason| !elsewhere.contains(reason)).map(Withheld::as_str);
    assert_eq!(reasons, expected.collect());
}

/// What nothing in the files tells apart stays open, and the generators come upon each class of it.
#[test]
fn every_class_that_stays_open_is_met() {
    let files = Files::with(None, None);
    for residual in Residual::ALL {
        let mut runner = runner(1);
        let strategy = worlds(residual.rules());
        let is_met = (0..60_000).any(|_| {
            let world = strategy.new_tree(&mut runner).unwrap().current();
            wrong(&world, &verdict(&files, &world.story.remains())).is_err()
        });
        assert!(is_met, "{residual:?}");
    }
}

/// Whatever the clock said when the first one wrote: before everything, in the middle, or after.
#[test]
fn a_second_run_appends_nothing() {
    let clocks = [1_000, u64::try_from(START_MS).unwrap() + 10_000, NOW_MS];
    check(800, closed_worlds(), |files, world| {
        for now_ms in clocks {
            let _ = verdict(files, &world.story.remains());
            let _ = files.plan().apply(files.ledger(), now_ms);
            let ledger = files.ledger_bytes();
            let again = files.plan().apply(files.ledger(), now_ms + 1);
            if !again.appended.is_empty() || files.ledger_bytes() != ledger {
                return Err(format!("at {now_ms}: {again:?}"));
            }
        }
        Ok(())
    });
}

#[test]
fn a_write_torn_at_any_byte_is_a_write_that_never_was() {
    check(150, closed_worlds(), |files, world| {
        let Some((last, before)) = world.story.events.split_last() else { return Ok(()) };
        let whole = Story { events: [before, &[Event { torn: None, ..last.clone() }]].concat() }.remains();
        let before = Story { events: before.to_vec() }.remains();
        let (with, without) = (verdict(files, &whole), verdict(files, &before));
        let is_record = matches!(last.deed, Deed::Write(_));
        let file = |remains: &Remains| if is_record { remains.transcript.clone() } else { remains.ledger.clone() };
        let (long, short) = (file(&whole), file(&before));
        for cut in short.len() + 1..long.len() {
            let bytes = long[..cut].to_vec();
            let torn = match is_record {
                true => Remains { transcript: bytes, ..whole.clone() },
                false => Remains { ledger: bytes, ..whole.clone() },
            };
            // At the last of these nothing but the LF is missing.
            let expected = if cut == long.len() - 1 { &with } else { &without };
            same(&verdict(files, &torn), expected, &format!("cut at {cut}"))?;
        }
        Ok(())
    });
}

#[test]
fn behind_another_prompts_stamped_turn_nothing_is_inferred_whichever_line_is_missing() {
    let turn = [What::User, What::Call, What::Tool, What::Answer, What::Note];
    check(250, prop_oneof![worlds(Rules::STAMPED), worlds(Rules::STAMPED_LOSSY)], |files, world| {
        let foreign = turn.map(|what| Event::new(Deed::Write(Entry::new(Name::new('F'), what))));
        let remains = Story { events: [&world.story.events[..], &foreign].concat() }.remains();
        let lines = remains.transcript.split_inclusive(|byte| *byte == b'\n').count();
        // Where this was the only stamped prompt, nothing tells the file without it from one in which nothing is stamped.
        let text = String::from_utf8_lossy(&remains.transcript);
        let is_prompt = |line: &&str| line.contains("daemonPromptId") && line.contains("a question");
        let question = if text.lines().filter(is_prompt).count() > 1 { lines } else { lines - turn.len() };
        let without = |bytes: &[u8], index: usize| -> Vec<u8> {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
            lines.filter(|(place, _)| *place != index).flat_map(|(_, line)| line.to_vec()).collect()
        };
        let ledger = 0..remains.ledger.split_inclusive(|byte| *byte == b'\n').count();
        let fewer = (0..lines)
            .filter(|index| *index != question)
            .map(|index| Remains { transcript: without(&remains.transcript, index), ..remains.clone() });
        let fewer =
            fewer.chain(ledger.map(|index| Remains { ledger: without(&remains.ledger, index), ..remains.clone() }));
        for remains in fewer.chain([remains.clone()]) {
            let verdict = verdict(files, &remains);
            if let Some(settled) = verdict.settled.iter().find(|settled| settled.basis != Basis::TurnResult) {
                return Err(format!("{settled:?} of {}", String::from_utf8_lossy(&remains.transcript)));
            }
        }
        Ok(())
    });
}

/// And the end of a turn that a client wished cancelled, where a stamp says among several open prompts whose turn it was.
#[test]
fn identity_only_adds_a_prompts_own_end() {
    check(3_000, closed_worlds(), |files, world| {
        let remains = world.story.remains();
        let with = verdict(files, &remains);
        // The same files as they are to a reader who knows no stamp and no turn result.
        let transcript = String::from_utf8_lossy(&remains.transcript);
        let blind = transcript.replace("daemonPromptId", "unread").replace("\"turn_result\"", "\"unread\"");
        let without = verdict(files, &Remains { transcript: blind.into_bytes(), ..remains.clone() });
        for settled in &with.settled {
            let result = format!("\"turn_result\",\"systemPayload\":{{\"promptId\":\"{}\"", settled.prompt_id);
            let stamp = format!("\"daemonPromptId\":\"{}\"", settled.prompt_id);
            let is_founded = match settled.basis {
                Basis::TurnResult => transcript.contains(&result),
                Basis::Wish if without.withheld == Some(Withheld::SeveralDangling) => transcript.contains(&stamp),
                _ => without.settled.contains(settled),
            };
            if !is_founded {
                return Err(format!("{settled:?}, without identity {without:?}"));
            }
        }
        Ok(())
    });
}
