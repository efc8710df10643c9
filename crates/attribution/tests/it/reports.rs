//! The explanation for a person. The reports are kept whole in `reports.txt`, which reads like a chapter of its own;
//! `TURND_REWRITE=1 cargo test -p turnd-attribution` writes them anew, and the difference is there to be looked at.

use attribution::{Standing, Withheld, printable};
use proptest::prelude::*;

use crate::files::{Files, SESSION_ID};
use crate::story::Story;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/reports.txt");
/// The widest line of a report.
const COLUMNS_MAX: usize = 100;

/// One story for each thing a person may be told: nothing open, every basis of an ending, every reason to withhold.
const STORIES: &str = "
A+ A=done
note A+m A? !
A+ ?
A+ A? call
A+ ? blind
A+ B+ A? ! A#done B? B#cancelled
B+ A+ B? ! B=done A? A#failed
A+ B+ ? !
A+ B+ A+ B=done ? !
A+ B+ C+ D+ E+ A? ! A#done
A=done A+ ? !
A+ A? ! A#done A=done A+
note A+m9 ? !
? ! A+m note
B+ B=late C+ C=late D+ D=done A+ ? !
A+ ? ! zip !
note A+m ? zip !
A+ remind
? A+ same !
? ! A+
B+ A+ ? B=done same !
B+ C+ B=done A+ ? ! C=cancelled
A+ B+ A? ! A#done B? !
A+ ? ! remind
A+ ? ! task
A+ A? ! ? !
A+ B? !
";

/// The files that no story leaves, and what was done to them.
fn damaged() -> Vec<(&'static str, Files)> {
    let files = |from: &str, to: &str| {
        let story = Story::new("A+ ? !");
        let (ledger, transcript) = (story.ledger.replace(from, to), story.transcript.replace(from, to));
        assert!((ledger.as_str(), transcript.as_str()) != (&story.ledger, &story.transcript), "{from}");
        Files::with(Some(ledger.as_bytes()), Some(transcript.as_bytes()))
    };
    let in_the_way = Files::with(None, None);
    in_the_way.make_ledger_a_folder();
    let ledger = Story::new("A+ ? !").ledger;
    vec![
        ("a folder is in the ledger's place", in_the_way),
        ("there are no files", Files::with(None, None)),
        ("there is no transcript", Files::with(Some(ledger.as_bytes()), None)),
        ("the transcript was begun elsewhere", files("\"/ws\"", "\"/other/place\"")),
        ("the transcript says not where it was begun", files("\"cwd\"", "\"uwd\"")),
        ("the transcript is another session's", files(SESSION_ID, "another")),
        ("the transcript holds nothing usable", files("\"uuid\"", "\"ubid\"")),
        ("the last write has no time", files("2026-11-29T18:33:43", "yesterday")),
        ("a summary has no time", undated_summary()),
        ("the clock stepped back between two summaries", two_summaries("note A+m ? zip zip !")),
        ("the same without a marker", two_summaries("note A+ ? zip zip !")),
        ("a message is damaged", files("[{\"text\":\"an answer\"}]", "\"an answer\"")),
        ("the id is no text", files("\"A\"", "\"\\ud800\"")),
        ("a line of the ledger is torn", torn_ledger()),
    ]
}

fn torn_ledger() -> Files {
    let story = Story::new("A+ ? !");
    let files = story.files();
    files.write_ledger(format!("{{\"v\":1,\"promptId\":\"B\"\n{}", story.ledger).as_bytes());
    files
}

/// Without a marker a summary that nobody can date counts as later than the admission.
fn undated_summary() -> Files {
    let story = Story::new("zip A+ ? !");
    let files = story.files();
    files.write_transcript(story.transcript.replacen("2026-11-29T18:33:41", "yesterday", 1).as_bytes());
    files
}

/// The newer summary of the two has a time from before the admission. With a marker the place counts, without one the time.
fn two_summaries(words: &str) -> Files {
    let story = Story::new(words);
    let files = story.files();
    files.write_transcript(story.transcript.replacen("2026-11-29T18:33:45", "2026-11-29T18:33:40", 1).as_bytes());
    files
}

fn all() -> Vec<(String, Files)> {
    let told = STORIES.lines().filter(|line| !line.is_empty());
    let stories = told.map(|words| (words.to_owned(), Story::new(words).files()));
    stories.chain(damaged().into_iter().map(|(name, files)| (name.to_owned(), files))).collect()
}

/// The report of these files, with a name in the place of their folder.
fn told(files: &Files) -> String {
    let folder = files.ledger().path().parent().unwrap().to_str().unwrap().to_owned();
    files.report().to_string().replace(&folder, "/chats")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a person says so when the kept reports are to be written anew")]
fn every_report_reads_as_it_is_kept() {
    let entry = |(name, files): &(String, Files)| format!("=== {name}\n\n{}\n", told(files));
    let found: String = all().iter().map(entry).collect();
    if std::env::var("TURND_REWRITE").is_ok() {
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
    let admissions: Vec<_> = (0..102).map(|number| format!("P{number}+")).collect();
    let report = Story::new(&admissions.join(" ")).files().report().to_string();
    assert!(report.contains("102 open prompts, unknown\n") && report.contains("\nprompt P99: unknown\n"), "{report}");
    assert!(!report.contains("prompt P100: "), "{report}");
    assert!(report.ends_with("\n\n2 more open prompts not told here: --json lists them all\n"), "{report}");
}

#[test]
fn a_damaged_result_is_not_named_as_the_one_that_decided() {
    let report = Story::new("A+ A? ! A#done A#running").files().report().to_string();
    assert!(report.contains("its own turn result says so: record r2,"), "{report}");
}

#[test]
fn a_long_transcript_is_read_as_far_as_the_verdict_needs() {
    let mut story = Story::new("? A+m A? !");
    let filler = "x".repeat(100_000);
    let lines: Vec<_> = story.transcript.lines().map(str::to_owned).collect();
    let long = |number: usize| {
        let parent = if number == 0 { "null".to_owned() } else { format!("\"f{}\"", number - 1) };
        let line = lines[0].replace("\"r0\"", &format!("\"f{number}\"")).replace("null", &parent);
        format!("{}\n", line.replace("a question", &filler))
    };
    let before: String = (0..70).map(long).collect();
    story.transcript = format!("{before}{}", story.transcript.replacen("null", "\"f69\"", 1));
    let (report, whole) = (story.files().report().to_string(), story.files().explain());
    assert_eq!(whole.projection.unwrap().len(), 73);
    let told = report.lines().find(|line| line.starts_with("  transcript")).unwrap();
    let told = told.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap();
    assert!(told < 60 && report.contains(" records at the end of the active branch"), "{report}");
}

#[test]
fn a_name_that_is_made_to_mislead_is_shown_for_what_it_is() {
    let evil = "\u{1b}[2J\u{202e}completed\u{2066}\n";
    let hostile = serde_json::to_string(evil).unwrap();
    for words in ["A+ B+ A? call", "A+ B? call", "note A+m9 ? !", "B+ B=late A+ A? !"] {
        let story = Story::new(words);
        let replaced = |text: &str| {
            ["A", "B", "ls", "r0", "r9"].iter().fold(text.to_owned(), |text, name| {
                text.replace(&format!("\"{name}\""), &format!("{}{name}\"", &hostile[..hostile.len() - 1]))
            })
        };
        let files = Files::with(Some(replaced(&story.ledger).as_bytes()), Some(replaced(&story.transcript).as_bytes()));
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
    fn every_open_prompt_is_told_of(words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..14)) {
        let files = Story::new(&words.join(" ")).files();
        let report = files.report();
        let text = report.to_string();
        let settled = &report.plan.verdict.settled;
        for id in files.explain().dangling {
            let is_known = settled.iter().any(|settled| settled.prompt_id == id);
            let says_unknown = text.contains(&format!("prompt {id}: unknown\n"));
            prop_assert!(text.contains(&format!("\nprompt {id}: ")) && says_unknown != is_known, "{:?}\n{}", words, text);
        }
        prop_assert!(!text.contains(":  ") && !text.contains(" \n") && !text.contains("; ;"), "{}", text);
    }
}

/// The words that random stories are made of.
const WORDS: &str = "A+ B+ A+m B+m A+m2 A=done B=done B=cancelled B=late A? B? ? ! \
     ! call blind tool A#done B#done A#cancelled B#failed note zip remind task job mid same";
