//! A ledger and a transcript, whatever lies in their places: one verdict with any window, carried out once, and about
//! nothing but what is open.
#![no_main]

use std::path::{Path, PathBuf};

use attribution::{
    Basis, DAEMON_LOST, Evidence, RECONSTRUCTED, Session, Settled, Verdict, Withheld, explain, judge, plan, report,
};
use ledger::{Durability, Fact, Ledger, Reading, Record, Terminal, dangling};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use transcript::Transcript;
use turnd_fuzz::plain::PlainFile;
use turnd_fuzz::{Trial, mutate, path, read, split, write};

/// When the judging takes place, in epoch milliseconds: after every time that a transcript can name, or, by a clock that
/// was set back, before most.
const NOW_MS: u64 = 260_000_000_000_000;
const LONG_AGO_MS: u64 = 1_000;

fuzz_target!(|input: &[u8]| {
    let trial = Trial::of(input);
    let (ledger_bytes, transcript_bytes) = split(input);
    let transcript_bytes = &trial.transcript(transcript_bytes);
    let ledger = Ledger::new(path("s.ledger.jsonl"), Durability::Process);
    write(ledger.path(), ledger_bytes);
    let transcript = path("s.jsonl");
    write(&transcript, transcript_bytes);
    let plain = PlainFile::read(transcript_bytes);
    let (session_id, workspace) = owner(&transcript, plain.as_ref());
    let session = Session { ledger: &ledger, transcript: &transcript, session_id: &session_id, workspace: &workspace };
    let reading = ledger.read().expect("a regular file is read");
    let records = reading.records.clone();
    let verdict = plan(&session).verdict;
    check_sense(&reading, &verdict, plain.as_ref());
    check_windows(&reading, &session, &verdict, plain.as_ref(), trial.windows);
    check_explanation(&session, &verdict);
    check_race(&session, ledger_bytes);
    write(ledger.path(), ledger_bytes);
    let now_ms = if trial.is_clock_set_back { LONG_AGO_MS } else { NOW_MS };
    check_applied(&session, &records, &verdict, now_ms);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| { mutate(data, size, max_size, seed) });

/// The session and the folder that the transcript is of, so that it loads whatever ids it holds: those of its first object,
/// if a plain reader can tell, else of its first record.
fn owner(transcript: &Path, plain: Option<&PlainFile>) -> (String, PathBuf) {
    let (session_id, cwd) = match plain {
        Some(plain) => plain.head.clone().map(|head| (head.session_id, head.cwd)).unwrap_or_default(),
        None => {
            let transcript = Transcript::open(transcript).expect("a regular file is opened");
            let first = transcript.and_then(|transcript| transcript.first_record().expect("a regular file is read"));
            first.map(|first| (Some(first.session_id), first.cwd)).unwrap_or_default()
        }
    };
    (session_id.unwrap_or_else(|| "s1".to_owned()), cwd.unwrap_or_else(|| "/ws".to_owned()).into())
}

/// Only what is open is settled, each once: by a result with its own id, or, and that at most one, by inference. Only what
/// somebody wished cancelled is so by inference, and nothing else is said of it.
fn check_sense(reading: &Reading, verdict: &Verdict, plain: Option<&PlainFile>) {
    let open = dangling(&reading.records);
    let wishes = reading.open_wishes();
    assert_eq!(open.is_empty(), verdict.withheld == Some(Withheld::NoDangling));
    let mut inferred = 0;
    for settled in &verdict.settled {
        assert_eq!(open.iter().filter(|id| **id == settled.prompt_id).count(), 1, "{settled:?}");
        let Fact::Terminal { terminal, code, stop_reason } = &settled.fact else { panic!("{settled:?}") };
        let said = (*terminal, code.as_deref(), stop_reason.as_deref());
        match settled.basis {
            Basis::TurnResult => assert!(plain.is_none_or(|plain| is_told(plain, &settled.prompt_id, *terminal))),
            Basis::Wish => assert_eq!(said, (Terminal::Cancelled, None, None)),
            Basis::Answer => assert_eq!(said, (Terminal::Completed, None, Some(RECONSTRUCTED))),
            _ => assert_eq!(said, (Terminal::Interrupted, Some(DAEMON_LOST), None)),
        }
        let is_wished = wishes.iter().any(|wish| wish.prompt_id == settled.prompt_id);
        assert!(settled.basis == Basis::TurnResult || is_wished == (settled.basis == Basis::Wish), "{settled:?}");
        inferred += usize::from(settled.basis != Basis::TurnResult);
    }
    assert!(inferred <= 1 && (inferred == 0 || verdict.settled.len() == 1), "identity never adds an inferred ending");
    let unknown = open.len() - verdict.settled.len();
    assert_eq!(unknown > 0, verdict.withheld.is_some_and(|withheld| withheld != Withheld::NoDangling));
}

/// Whether a turn result of the prompt says so.
fn is_told(plain: &PlainFile, prompt_id: &str, terminal: Terminal) -> bool {
    plain.records.iter().any(|record| {
        record.subtype.as_deref() == Some("turn_result")
            && record.payload["promptId"] == prompt_id
            && record.payload["state"] == terminal.as_str()
    })
}

/// The whole file gives the verdict that was planned, and so does a bounded reading of a file that is tame. Where the
/// clock stepped back it may withhold more, or not see a compression: that is looked for by its clock as far as was read.
fn check_windows(
    reading: &Reading,
    session: &Session<'_>,
    planned: &Verdict,
    plain: Option<&PlainFile>,
    windows: [u64; 2],
) {
    let (records, wishes) = (&reading.records[..], reading.open_wishes());
    let admissions = attribution::open_admissions(records);
    let open = || transcript::open(session.transcript, session.session_id, session.workspace).ok();
    let judged = |window_bytes| {
        let gather = |transcript| Evidence::gather(&transcript, session.session_id, &admissions, window_bytes);
        let evidence = open().and_then(gather);
        let verdict = judge(records, &wishes, evidence.as_ref());
        if evidence.is_none_or(|evidence| !evidence.is_disputed) {
            return verdict;
        }
        let undisputed = open().map(Transcript::leaving_out_disputed).and_then(gather);
        agreed(verdict, &judge(records, &wishes, undisputed.as_ref()))
    };
    if !admissions.is_empty() {
        assert_eq!(judged(u64::MAX), *planned);
    }
    let Some(plain) = plain.filter(|plain| plain.is_tame()) else { return };
    for window_bytes in windows {
        let bounded = judged(window_bytes);
        let may_differ = !plain.is_in_the_order_of_time()
            && (is_less(&bounded, planned) || planned.withheld == Some(Withheld::CompressionFence));
        assert!(bounded == *planned || may_differ, "window of {window_bytes}: {bounded:?} {planned:?}");
    }
}

/// Whether everything that `less` settles is settled the same by `more`, and something is withheld instead of the rest.
fn is_less(less: &Verdict, more: &Verdict) -> bool {
    less.withheld.is_some() && less.settled.iter().all(|settled| more.settled.contains(settled))
}

/// What is left of a verdict where a reader who does not find disputed records comes to another one: results, and what
/// both say.
fn agreed(verdict: Verdict, undisputed: &Verdict) -> Verdict {
    let is_said = |settled: &&Settled| settled.basis == Basis::TurnResult || is_said_by(undisputed, settled);
    let settled: Vec<_> = verdict.settled.iter().filter(is_said).cloned().collect();
    let is_whole = settled.len() == verdict.settled.len();
    Verdict { settled, withheld: if is_whole { verdict.withheld } else { Some(Withheld::HistoryUnreadable) } }
}

fn is_said_by(verdict: &Verdict, said: &Settled) -> bool {
    verdict.settled.iter().any(|settled| (&settled.prompt_id, &settled.fact) == (&said.prompt_id, &said.fact))
}

/// What a program is told is the verdict, and JSON; what a person is told is no more, and steers no terminal.
fn check_explanation(session: &Session<'_>, planned: &Verdict) {
    let explanation = explain(session);
    assert_eq!(explanation.plan.verdict, *planned);
    let report = report(session);
    assert_eq!(report.plan.verdict, *planned);
    let page = report.to_string();
    assert!(!page.is_empty() && page.lines().all(|line| !line.chars().any(char::is_control)));
    let json: Value = serde_json::from_str(&explanation.to_json()).expect("the explanation is JSON");
    assert_eq!(json["verdict"]["withheld"].as_str(), planned.withheld.map(Withheld::as_str));
    assert_eq!(json["verdict"]["append"].as_array().map_or(0, Vec::len), planned.settled.len());
}

/// A ledger that changed after it was read is not appended to.
fn check_race(session: &Session<'_>, ledger_bytes: &[u8]) {
    let plan = plan(session);
    let is_something = !plan.verdict.settled.is_empty();
    let changed = [ledger_bytes, b"\n"].concat();
    write(session.ledger.path(), &changed);
    let outcome = plan.apply(session.ledger, NOW_MS);
    assert!(outcome.appended.is_empty() && outcome.failure.is_none());
    assert!(!is_something || outcome.withheld == Some(Withheld::LedgerChanged));
    assert_eq!(read(session.ledger.path()), changed);
}

/// What is settled is appended behind what was there, and a second time nothing is.
fn check_applied(session: &Session<'_>, before: &[Record], planned: &Verdict, now_ms: u64) {
    let outcome = plan(session).apply(session.ledger, now_ms);
    assert!(outcome.failure.is_none() && outcome.settled == planned.settled && outcome.withheld == planned.withheld);
    let after = session.ledger.read().expect("a regular file is read").records;
    assert_eq!(after, [before, &outcome.appended].concat());
    let still_open = dangling(&after);
    assert!(planned.settled.iter().all(|settled| !still_open.contains(&settled.prompt_id.as_str())));
    let again = plan(session).apply(session.ledger, now_ms + 1);
    assert!(again.appended.is_empty(), "{:?} after {:?}", again.settled, planned);
}
