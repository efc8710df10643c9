//! The explanation for a person. The reports are kept whole in `reports.txt`, which reads like a chapter of its own;
//! `REWRITE_EXPECTED=1 cargo test -p turnd-attribution` writes them anew; the difference is for a person to judge.

use attribution::{Standing, Withheld, printable};
use ledger::Record;
use proptest::prelude::*;

use crate::expected::is_to_be_rewritten;
use crate::files::{Files, SESSION_ID};
use crate::told;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/reports.txt");
/// The widest line of a report.
const COLUMNS_MAX: usize = 100;

/// One story for each thing a person may be told: nothing open, every basis of an ending, every reason to withhold.
const STORIES: &str = "
[A if, A term]
[note, A if marked, A user, answer]
[A if, user]
[A if, A user, call]
[A if, user, blind call]
[A if, B if, A user, answer, A result completed, B user, B result cancelled]
[B if, A if, B user, answer, B term, A user, A result failed]
[A if, B if, user, answer]
[A if, B if, A if, B term, user, answer]
[A if, B if, C if, D if, E if, A user, answer, A result completed]
[A term, A if, user, answer]
[A if, A user, answer, A result completed, A term, A if]
[B if, A if, A user, answer, A result completed]
[note, A if marked 9, user, answer]
[user, answer, A if marked, note]
[B if, B deadline, C if, C deadline, D if, D term, A if, user, answer]
[A if, user, answer, compression, answer]
[note, A if marked, user, compression, answer]
[A if, reminder]
[user, A if, same ms, answer]
[user, answer, A if]
[B if, A if, user, B term, same ms, answer]
[B if, C if, B term, A if, user, answer, C cancelled]
[A if, B if, A user, answer, A result completed, B user, answer]
[A if, user, answer, reminder]
[A if, user, answer, notification]
[A if, A user, answer, user, answer]
[A if, B user, answer]
[A if, B user, notification, answer]
[A if, A user, notification, answer]
[A if, A user, B user, notification, answer]
[B user, note on lost, A if marked, answer]
[A if, A user, A result cancelled, back 60s, tool, later 120s, answer]
[A if, A user, back 60s, A result cancelled, later 120s, answer]
[A if, A user, back 60s, compression, later 120s, answer]
[note, A if marked, A user, call, A wish]
[A if, B if, A user, call, A wish]
[A if, A user, A wish, answer]
[A if, B if, A user, A wish, answer]
";

/// The files that no word of a story stands for, and what was done to them.
fn damaged() -> Vec<(&'static str, Files)> {
    let files = |from: &str, to: &str| changed("[A if, user, answer]", from, to);
    let in_the_way = Files::with(None, None);
    in_the_way.make_ledger_a_folder();
    vec![
        ("a folder is in the ledger's place", in_the_way),
        ("there are no files", Files::with(None, None)),
        ("there is no transcript", left_by("[A if]")),
        ("the transcript was begun elsewhere", files("\"/ws\"", "\"/other/place\"")),
        ("the transcript says not where it was begun", files("\"cwd\"", "\"uwd\"")),
        ("the transcript is another session's", files(SESSION_ID, "another")),
        ("the transcript holds nothing usable", files("\"uuid\"", "\"ubid\"")),
        ("the last write has no time", left_by("[A if, user, answer undated]")),
        // Without a marker a summary that nobody can date counts as later than the admission.
        ("a summary has no time", left_by("[compression undated, A if, user, answer]")),
        // With a marker the place counts, without one the time.
        (
            "the clock stepped back between two summaries",
            left_by("[note, A if marked, user, compression, back 4s, compression, later 6s, answer]"),
        ),
        (
            "the same without a marker",
            left_by("[note, A if, user, compression, back 4s, compression, later 6s, answer]"),
        ),
        ("a stamp stands on a reminder", left_by("[note, A if marked, A user, call, C reminder stamped, answer]")),
        ("the session asked something by itself", left_by("[note, A if marked, A user, call, job, answer]")),
        ("the turn lost its beginning", left_by("[A if, A user, tool on lost, answer]")),
        ("a summary is damaged", left_by("[user, compression unreadable, A if, user, answer]")),
        ("a damaged line is read in two ways", left_by("[A if, user, call torn, answer glued]")),
        ("the id is no text", files("\"A\"", "\"\\ud800\"")),
        ("a line of the ledger is torn", left_by("[B if torn, A if, user, answer]")),
    ]
}

/// The files that a story leaves.
fn left_by(notation: &str) -> Files {
    told::files(&told::story(notation).remains())
}

/// The same with a text replaced wherever it stands.
fn changed(notation: &str, from: &str, to: &str) -> Files {
    let mut remains = told::story(notation).remains();
    let before = remains.clone();
    for bytes in [&mut remains.ledger, &mut remains.transcript] {
        *bytes = std::str::from_utf8(bytes).unwrap().replace(from, to).into_bytes();
    }
    assert_ne!(before, remains, "{from}");
    told::files(&remains)
}

fn all() -> Vec<(String, Files)> {
    let stories = STORIES.lines().filter(|line| !line.is_empty());
    let stories = stories.map(|notation| (notation.to_owned(), left_by(notation)));
    stories.chain(damaged().into_iter().map(|(name, files)| (name.to_owned(), files))).collect()
}

/// The report of these files, with a name in the place of their folder.
fn page(files: &Files) -> String {
    let folder = files.ledger().path().parent().unwrap().to_str().unwrap().to_owned();
    files.report().to_string().replace(&folder, "/chats")
}

#[test]
fn every_report_reads_as_it_is_kept() {
    let entry = |(name, files): &(String, Files)| format!("=== {name}\n\n{}\n", page(files));
    let found: String = all().iter().map(entry).collect();
    if is_to_be_rewritten() {
        std::fs::write(KEPT, &found).unwrap();
    }
    let kept = std::fs::read_to_string(KEPT).unwrap_or_default();
    let mut lines = kept.lines().zip(found.lines()).enumerate();
    if let Some((number, (kept, found))) = lines.find(|(_, (kept, found))| kept != found) {
        panic!("line {} of {KEPT}\n   kept: {kept}\n  found: {found}", number + 1);
    }
    assert_eq!(kept.len(), found.len(), "{KEPT} ends elsewhere");
}

#[test]
fn every_reason_that_a_plan_can_give_is_told_in_some_report() {
    let given: Vec<_> = all().iter().filter_map(|(_, files)| files.plan().verdict.withheld).collect();
    let missing: Vec<_> = Withheld::ALL.into_iter().filter(|reason| !given.contains(reason)).collect();
    // Which is given only by an append that came too late.
    assert_eq!(missing, [Withheld::LedgerChanged]);
}

#[test]
fn a_report_says_what_the_judge_says_and_with_its_very_words() {
    for (name, files) in all() {
        let (report, verdict) = (files.report(), files.plan().verdict);
        assert_eq!(report.plan.verdict, verdict, "{name}");
        let text = report.to_string();
        let unwrapped: Vec<_> = text.split_whitespace().collect();
        let text = unwrapped.join(" ");
        match (verdict.withheld, report.plan.standing()) {
            (_, Standing::NothingOpen) => assert!(text.contains("no prompt is open"), "{name}"),
            (Some(withheld), _) => {
                assert!(text.contains(withheld.explanation()), "{name}: {text}");
                assert!(text.contains(withheld.remedy()), "{name}: {text}");
            }
            (None, _) => assert!(!text.contains("unknown"), "{name}: {text}"),
        }
    }
}

#[test]
fn every_reason_has_a_remedy_that_is_one_sentence() {
    for reason in Withheld::ALL {
        let remedy = reason.remedy();
        assert!(!remedy.is_empty() && !remedy.contains(['.', '\n']) && !remedy.contains("  "), "{reason}: {remedy}");
    }
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    for (name, files) in all() {
        for line in files.report().to_string().lines() {
            // A path stands alone and whole, however long it is.
            let is_path = line.trim_start().starts_with('/');
            assert!(is_path || line.chars().count() <= COLUMNS_MAX, "{name}: {line}");
        }
    }
}

#[test]
fn more_prompts_than_a_person_reads_are_counted() {
    let admission = |number: u64| Record::in_flight(format!("P{number}"), None, number).to_line() + "\n";
    let ledger: String = (0..102).map(admission).collect();
    let report = Files::with(Some(ledger.as_bytes()), None).report().to_string();
    assert!(report.contains("102 open prompts, unknown\n") && report.contains("\nprompt P99: unknown\n"), "{report}");
    assert!(!report.contains("prompt P100: "), "{report}");
    assert!(report.ends_with("\n\n2 more open prompts not told here: --json lists them all\n"), "{report}");
}

#[test]
fn a_result_that_cannot_be_read_is_named_as_what_withheld() {
    let notation = "[A if, A user, answer, A result completed, A result cancelled]";
    let report = changed(notation, "\"cancelled\"", "\"running\"").report().to_string();
    assert!(report.contains("its own turn result is there, and what it says cannot be read"), "{report}");
}

#[test]
fn a_long_transcript_is_read_as_far_as_the_verdict_needs() {
    let mut remains = told::story("[user, A if marked, A user, answer]").remains();
    let end = String::from_utf8(remains.transcript).unwrap();
    let filler = "x".repeat(100_000);
    let first = end.lines().next().unwrap();
    let long = |number: usize| {
        let parent = if number == 0 { "null".to_owned() } else { format!("\"f{}\"", number - 1) };
        let line = first.replace("\"r0\"", &format!("\"f{number}\"")).replace("null", &parent);
        format!("{}\n", line.replace("a question", &filler))
    };
    let before: String = (0..70).map(long).collect();
    remains.transcript = format!("{before}{}", end.replacen("null", "\"f69\"", 1)).into_bytes();
    let files = told::files(&remains);
    let (report, whole) = (files.report().to_string(), files.explain());
    assert_eq!(whole.projection.unwrap().len(), 73);
    let told = report.lines().find(|line| line.starts_with("  transcript")).unwrap();
    let told = told.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    assert!(told < 60 && report.contains(" records at the end of the active branch"), "{report}");
}

#[test]
fn a_name_that_is_made_to_mislead_is_shown_for_what_it_is() {
    let evil = "\u{1b}[2J\u{202e}completed\u{2066}\n";
    let hostile = serde_json::to_string(evil).unwrap();
    for notation in [
        "[A if, B if, A user, call]",
        "[A if, B user, call]",
        "[note, A if marked 9, user, answer]",
        "[B if, B deadline, A if, A user, answer]",
    ] {
        let remains = told::story(notation).remains();
        let replaced = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).unwrap().to_owned();
            ["A", "B", "ls", "r0", "r9"].iter().fold(text, |text, name| {
                text.replace(&format!("\"{name}\""), &format!("{}{name}\"", &hostile[..hostile.len() - 1]))
            })
        };
        let (ledger, transcript) = (replaced(&remains.ledger), replaced(&remains.transcript));
        let files = Files::with(Some(ledger.as_bytes()), Some(transcript.as_bytes()));
        let report = files.report().to_string();
        let raw: Vec<_> = report.chars().filter(|letter| *letter != '\n' && !matches!(letter, ' '..='~')).collect();
        assert_eq!(raw, [], "{report}");
        assert!(report.contains(&printable(&format!("{evil}A"))), "{report}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever happened, every open prompt has its own paragraph, and its verdict is the judge's.
    #[test]
    fn every_open_prompt_is_told_of(
        events in prop::collection::vec(prop::sample::select(EVENTS.split(", ").collect::<Vec<_>>()), 0..14),
    ) {
        let files = left_by(&format!("[{}]", events.join(", ")));
        let report = files.report();
        let text = report.to_string();
        let settled = &report.plan.verdict.settled;
        for id in files.explain().dangling {
            let is_known = settled.iter().any(|settled| settled.prompt_id == id);
            let says_unknown = text.contains(&format!("prompt {id}: unknown\n"));
            prop_assert!(text.contains(&format!("\nprompt {id}: ")) && says_unknown != is_known, "{:?}\n{}", events, text);
        }
        // A row without text is a record that was looked for and not found, and so is "nothing".
        let in_one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert!(!text.contains("\n\n  ") && !in_one_line.contains(": nothing help"), "{:?}\n{}", events, text);
        prop_assert!(!text.contains(":  ") && !text.contains(" \n") && !text.contains("; ;"), "{}", text);
    }
}

/// The events that stories are made of.
const EVENTS: &str = "A if, B if, A if marked, B if marked, A if marked 2, A term, B term, B cancelled, B deadline, \
     A user, B user, user, user, answer, answer, call, blind call, tool, A result completed, B result completed, \
     A result cancelled, B result failed, note, compression, reminder, notification, job, mid-turn, same ms, back 3s, \
     rewind on lost, rewind on 1, answer undated, compression undated, A wish, B wish";
