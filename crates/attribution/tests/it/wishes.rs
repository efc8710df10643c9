//! Wishes to cancel: what they change of a verdict, and what they never change.

use attribution::{Basis, Unresolved, Verdict, Withheld};
use ledger::{Fact, Terminal};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::files::{Files, NOW_MS};
use crate::told::{self, verdict};

/// Before anything of a story, in epoch milliseconds.
const LONG_AGO_MS: u64 = 1_000;

/// The story's files without the lines of wishes.
fn unwished(notation: &str) -> Files {
    let mut remains = told::story(notation).remains();
    let lines = String::from_utf8(remains.ledger).unwrap();
    let kept = lines.split_inclusive('\n').filter(|line| !line.contains("cancel_requested"));
    remains.ledger = kept.collect::<String>().into_bytes();
    told::files(&remains)
}

#[test]
fn a_wish_cut_at_any_byte_is_a_wish_or_none() {
    for (notation, before, after) in [
        ("[A if, A user, call, A wish]", "A interrupted (open call)", "A cancelled (wish)"),
        ("[A if, A user, A wish, answer]", "A completed", "answered_or_cancelled"),
        ("[A if, B if, A user, A wish]", "several_dangling", "A cancelled (wish); tail_before_other_terminal"),
    ] {
        let remains = told::story(notation).remains();
        let start = remains.ledger.windows(2).rposition(|pair| pair == b"\n{").unwrap() + 1;
        for cut in start..=remains.ledger.len() {
            let files = Files::with(Some(&remains.ledger[..cut]), Some(&remains.transcript));
            // At the last byte but one nothing but the LF is missing.
            let expected = if cut + 1 < remains.ledger.len() { before } else { after };
            assert_eq!(verdict(&files), expected, "{notation} cut at {cut}");
            // What is appended behind it is read again, and the wish with it.
            let _ = files.reconcile();
            let appended = files.ledger().read().unwrap().records.len() - 1 - usize::from(notation.contains("B if"));
            assert_eq!(appended, usize::from(!expected.starts_with("several") && !expected.starts_with("answered")));
            assert_eq!(files.reconcile().appended, [], "{notation} cut at {cut}");
        }
    }
}

/// The end of a cancelled prompt is dated so that what waits behind it never gets its turn, whatever the clock says then.
#[test]
fn what_waits_behind_a_wished_prompt_stays_open_though_the_clock_was_set_back() {
    for notation in ["[A if, B if, A user, call, A wish]", "[A if, B if marked, A user, A wish, call, tool]"] {
        for now_ms in [LONG_AGO_MS, NOW_MS] {
            let files = told::files(&told::story(notation).remains());
            let last_ms = files.plan().not_before_ms;
            let first = files.plan().apply(files.ledger(), now_ms);
            assert_eq!(first.appended.len(), 1, "{notation}");
            assert_eq!(first.appended[0].at_ms, now_ms.max(last_ms) as f64, "{notation}");
            let again = files.plan().apply(files.ledger(), now_ms + 1);
            assert_eq!(again.appended, [], "{notation}");
            let reason = verdict(&files);
            assert!(
                ["same_ms_as_other_terminal", "tail_before_other_terminal"].contains(&&*reason),
                "{notation}: {reason}"
            );
        }
    }
}

#[test]
fn a_cancel_is_not_dated_before_its_wish_nor_by_one_of_no_time() {
    let files = told::files(&told::story("[A if, A user, later 60s, A wish]").remains());
    let wish_ms = files.ledger().read().unwrap().open_wishes()[0].at_ms;
    assert_eq!(files.plan().apply(files.ledger(), LONG_AGO_MS).appended[0].at_ms, wish_ms);
    for time in ["1e300", "-5", "1e15"] {
        let mut remains = told::story("[A if, A user, A wish]").remains();
        let (lines, wish) = (String::from_utf8(remains.ledger).unwrap(), wish_ms - 59_000.0);
        assert!(lines.contains(&format!("{wish}")), "{lines}");
        remains.ledger = lines.replace(&format!("{wish}"), time).into_bytes();
        let files = told::files(&remains);
        assert_eq!(verdict(&files), "A cancelled (wish)", "{time}");
        assert_eq!(files.plan().apply(files.ledger(), NOW_MS).appended[0].at_ms, NOW_MS as f64, "{time}");
    }
}

#[test]
fn an_id_that_may_have_been_another_is_not_cancelled_by_a_wish() {
    let mut remains = told::story("[A if, user, call, A wish]").remains();
    remains.ledger = String::from_utf8(remains.ledger).unwrap().replace("\"A\"", "\"\\ud800\"").into_bytes();
    let files = told::files(&remains);
    assert_eq!(verdict(&files), "attribution_guard");
    assert!(unresolved(&files)[0].wished_at_ms.is_some(), "the wish is shown all the same");
}

fn unresolved(files: &Files) -> Vec<Unresolved> {
    let plan = files.plan();
    let done = plan.apply(files.ledger(), NOW_MS);
    plan.unresolved(&done)
}

/// `B several_dangling wished` for each.
fn open(files: &Files) -> Vec<String> {
    let wished = |open: &Unresolved| if open.wished_at_ms.is_some() { " wished" } else { "" };
    unresolved(files).iter().map(|open| format!("{} {}{}", open.prompt_id, open.reason, wished(open))).collect()
}

#[test]
fn every_prompt_that_stays_open_is_named_with_its_reason_and_its_wish() {
    let cases: [(&str, &[&str]); 6] = [
        ("[A if, A term]", &[]),
        ("[A if, A user, call, A wish]", &[]),
        ("[A if, A user, A wish, answer]", &["A answered_or_cancelled wished"]),
        ("[A if, B if, A user, call, A wish]", &["B tail_before_other_terminal"]),
        ("[A if, B if, user, call, A wish]", &["A several_dangling wished", "B several_dangling"]),
        ("[A if, A wish, A if, A term, B if]", &["B no_transcript"]),
    ];
    for (notation, expected) in cases {
        assert_eq!(open(&told::files(&told::story(notation).remains())), expected, "{notation}");
    }
}

#[test]
fn an_ending_that_cannot_be_written_leaves_its_prompt_open() {
    let files = told::files(&told::story("[A if, B if, A user, call, A wish]").remains());
    let plan = files.plan();
    std::fs::remove_file(files.ledger().path()).unwrap();
    files.make_ledger_a_folder();
    let done = plan.apply(files.ledger(), NOW_MS);
    assert!(done.failure.is_some());
    let reasons: Vec<_> = plan.unresolved(&done).into_iter().map(|open| open.reason).collect();
    assert_eq!(reasons, ["ledger_unwritable", "tail_before_other_terminal"]);
    // Nobody can name what is open in a ledger that cannot be read.
    assert_eq!(unresolved(&files), []);
}

#[test]
fn a_race_leaves_everything_open() {
    let files = told::files(&told::story("[A if, A user, call, A wish]").remains());
    let plan = files.plan();
    files.ledger().append(&ledger::Record::in_flight("B", None, 1)).unwrap();
    let done = plan.apply(files.ledger(), NOW_MS);
    assert_eq!(plan.unresolved(&done)[0].reason, "ledger_changed");
}

#[test]
fn a_program_is_told_of_the_wishes_that_count_and_of_no_others() {
    let explained = |notation: &str| -> Value {
        serde_json::from_str(&told::files(&told::story(notation).remains()).explain().to_json()).unwrap()
    };
    let told = explained("[A if, B if, A user, call, A wish, A wish]");
    assert_eq!(
        told["wishes"],
        json!([{"v": 1, "promptId": "A", "state": "cancel_requested", "at": 1_795_977_225_000_u64}])
    );
    assert_eq!(told["verdict"]["append"], json!([{"v": 1, "promptId": "A", "terminal": "cancelled"}]));
    assert_eq!((&told["droppedLines"], &told["records"].as_array().unwrap().len()), (&json!(0), &2));
    assert_eq!(explained("[A if, A wish, A term, B if]").get("wishes"), None);
}

/// The events that stories are made of.
const EVENTS: &str = "A if, B if, A if marked, B if marked, A wish, B wish, A wish, B wish, A term, B term, B cancelled, \
     B deadline, A user, B user, A user, user, answer, answer, call, call, tool, A result completed, B result cancelled, \
     note, compression, reminder, notification, job, mid-turn, same ms, back 3s, rewind on 1, A user torn, A wish torn, \
     answer glued, answer undated, B reminder stamped";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever happened: of what no wish counts for, a ledger says what it says to a reader who drops the lines of wishes. Of a
    /// wished prompt it says `cancelled` where that reader would say `interrupted`, and nothing where he would say `completed`; only
    /// of one that ran with others behind it, whose own stamp is on the last question, it says more than he.
    #[test]
    fn a_wish_changes_the_ending_of_its_own_prompt_and_nothing_else(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..14),
    ) {
        let notation = format!("[{}]", events.join(", "));
        let files = told::files(&told::story(&notation).remains());
        let wishes = files.ledger().read().unwrap();
        let wished = |id: &str| wishes.open_wishes().iter().any(|wish| wish.prompt_id == id);
        let (with, without) = (files.plan().verdict, unwished(&notation).plan().verdict);
        let expected = expected(&without, wished);
        let is_more = without.withheld == Some(Withheld::SeveralDangling)
            && with.settled.iter().any(|settled| settled.basis == Basis::Wish && wished(&settled.prompt_id));
        // Where a damaged line is read in two ways, the first reading of a wished prompt may withhold before they are compared.
        let is_named_otherwise = with.settled == expected.settled
            && expected.withheld == Some(Withheld::HistoryUnreadable)
            && with.withheld == Some(Withheld::AnsweredOrCancelled);
        prop_assert!(with == expected || is_more || is_named_otherwise, "{}: {:?}, without wishes {:?}", notation, with, without);
    }
}

/// What a wish makes of a verdict that knew none.
fn expected(without: &Verdict, wished: impl Fn(&str) -> bool) -> Verdict {
    let mut verdict = without.clone();
    for settled in &mut verdict.settled {
        if settled.basis != Basis::TurnResult && settled.basis != Basis::Answer && wished(&settled.prompt_id) {
            settled.basis = Basis::Wish;
            settled.fact = Fact::Terminal { terminal: Terminal::Cancelled, code: None, stop_reason: None };
        }
    }
    let count = verdict.settled.len();
    verdict.settled.retain(|settled| settled.basis != Basis::Answer || !wished(&settled.prompt_id));
    if verdict.settled.len() < count {
        verdict.withheld = Some(Withheld::AnsweredOrCancelled);
    }
    verdict
}
