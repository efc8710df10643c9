//! Every check as cases in the design's own notation (evidence rules, section 4): the files of `cases/`, each of which
//! says of one reason where it fires, where it just does not, and that it fires because of the very event that it is
//! about. What the seed says, sentence by sentence, and the case for each stands in `cases/README.md`.
//!
//! `REWRITE_EXPECTED=1` writes what was found in the place of what was expected; the difference is for a person to judge.

mod file;
mod setting;
mod shells;

use std::collections::HashSet;
use std::fs;
use std::io::Write;

use attribution::Withheld;
use attribution::strategies::Story;

use self::file::{Case, CaseFile, Kind, Said};
use self::setting::Setting;
use crate::expected::is_to_be_rewritten;
use crate::files::{Files, NOW_MS};
use crate::told;

/// What is given when nothing withholds it, in files that follow those of the reasons.
const GIVEN: [&str; 4] = ["exact_result", "completed", "interrupted", "cancelled"];

#[test]
fn every_case_is_judged_as_it_is_written_down() {
    let mut differences = Vec::new();
    for file in file::all() {
        let found: Vec<_> = file.cases.iter().flat_map(Found::both).collect();
        let different: Vec<_> = found.iter().flat_map(|found| found.differences(&file.stem)).collect();
        if !different.is_empty() && is_to_be_rewritten() {
            file.rewrite(&found.iter().map(|found| (found.expected, found.words.as_str())).collect::<Vec<_>>());
        }
        differences.extend(different);
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

/// What became of a case's files.
struct Found<'a> {
    case: &'a Case,
    expected: &'a Said,
    words: String,
    /// What a reconciliation must not do and this one did.
    faults: Vec<String>,
}

impl<'a> Found<'a> {
    /// What became of the story, and of the story without what everything hangs on.
    fn both(case: &'a Case) -> Vec<Self> {
        let without = case.without.as_ref().map(|without| {
            let settings: Vec<_> = case.settings.iter().filter(|setting| !setting.is_decisive).cloned().collect();
            Self::new(case, without, &case.story.without_decisive(), &settings)
        });
        [Some(Self::new(case, &case.said, &case.story, &case.settings)), without].into_iter().flatten().collect()
    }

    /// Plans, lets happen what happens in between, applies, and runs a second time.
    fn new(case: &'a Case, expected: &'a Said, story: &Story, settings: &[Setting]) -> Self {
        let mut remains = story.remains();
        settings.iter().for_each(|setting| setting.change(&mut remains));
        let files = told::files(&remains);
        settings.iter().for_each(|setting| setting.make(&files));
        let plan = files.plan();
        race(&files, &remains.late_ledger);
        let before = files.ledger_bytes();
        let outcome = plan.apply(files.ledger(), NOW_MS);
        let words = told::words(&outcome.settled, outcome.withheld);
        let mut found = Self { case, expected, words, faults: Vec::new() };
        found.check_appended(&before, &files.ledger_bytes());
        if !remains.late_ledger.is_empty() {
            // What came in between was not judged; the next load judges it.
            let _ = files.reconcile();
        }
        let settled = files.ledger_bytes();
        if !files.reconcile().appended.is_empty() || files.ledger_bytes() != settled {
            found.faults.push("a second run appended something".to_owned());
        }
        found
    }

    /// Holds what the ledger got to what was said of the prompts, byte for byte.
    fn check_appended(&mut self, before: &[u8], after: &[u8]) {
        let lines = told::lines(&self.words, NOW_MS);
        let is_sealed = lines.is_empty() || before.last().is_none_or(|last| *last == b'\n');
        let expected = [before, if is_sealed { b"" } else { b"\n" }, lines.as_bytes()].concat();
        if after != expected {
            self.faults.push(format!("the ledger became {:?}", String::from_utf8_lossy(after)));
        }
    }

    fn differences(&self, file: &str) -> Vec<String> {
        let (case, expected, words) = (&self.case.name, &self.expected.words, &self.words);
        let differs = (expected != words).then(|| format!("{file} {case}: expected {expected}, found {words}"));
        let faults = self.faults.iter().map(|fault| format!("{file} {case}: {fault}"));
        differs.into_iter().chain(faults).collect()
    }
}

/// Writes what is written between the reading and the appending.
fn race(files: &Files, late: &[u8]) {
    if !late.is_empty() {
        let mut ledger = fs::OpenOptions::new().create(true).append(true).open(files.ledger().path()).unwrap();
        ledger.write_all(late).unwrap();
    }
}

#[test]
fn every_reason_has_its_file_in_the_order_of_the_checks() {
    let names = Withheld::ALL.iter().map(|withheld| withheld.as_str()).chain(GIVEN);
    let expected: Vec<_> = names.enumerate().map(|(index, name)| format!("{:02}_{name}", index + 1)).collect();
    let found: Vec<_> = file::all().into_iter().map(|file| file.stem).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_file_cites_its_rule_and_shows_it_from_three_sides() {
    for file in file::all() {
        assert!(file.rule().contains("section") || file.rule().contains("seed"), "{}: {}", file.stem, file.rule());
        for kind in [Kind::Fires, Kind::JustDoesNot, Kind::OnlyBecauseOf] {
            assert!(file.cases.iter().any(|case| case.kind == kind), "{}: no case where it {kind:?}", file.stem);
        }
        file.cases.iter().for_each(|case| check_kind(&file, case));
    }
}

fn check_kind(file: &CaseFile, case: &Case) {
    let place = format!("{} {}", file.stem, case.name);
    let decisive = case.story.events.iter().filter(|event| event.is_decisive).count()
        + case.settings.iter().filter(|setting| setting.is_decisive).count();
    let is_decided = case.kind == Kind::OnlyBecauseOf;
    assert_eq!(file.is_said_in(&case.said.words), case.kind != Kind::JustDoesNot, "{place}");
    assert_eq!((case.without.is_some(), decisive), (is_decided, usize::from(is_decided)), "{place}: what it hangs on");
    assert!(case.without.iter().all(|without| !file.is_said_in(&without.words)), "{place}: it does not hang on that");
}

#[test]
fn a_name_is_given_once_and_the_table_of_sentences_names_cases_that_are_there() {
    let mut names = HashSet::new();
    for file in file::all() {
        for case in &file.cases {
            assert!(names.insert(case.name.clone()), "{} {}", file.stem, case.name);
        }
    }
    let table = fs::read_to_string(file::folder().join("README.md")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|'));
    let named = rows.filter_map(|row| row.rsplit('|').nth(1)).flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let missing: Vec<_> = named.filter(|name| !names.contains(*name) && !stands_elsewhere(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Whether the name is that of a test, or of a case of the evidence rules that the notation has no words for.
fn stands_elsewhere(name: &str) -> bool {
    match name.split_once("::") {
        Some(("cases", id)) => crate::cases::CASES.contains(&format!("{{\"id\":\"{id}\"")),
        Some(("identity", test)) => include_str!("identity.rs").contains(&format!("fn {test}()")),
        Some(("torn", test)) => include_str!("torn.rs").contains(&format!("fn {test}()")),
        _ => false,
    }
}

#[test]
fn every_story_is_printed_so_that_it_can_be_read_again() {
    for case in file::all().into_iter().flat_map(|file| file.cases) {
        assert_eq!(told::story(&case.story.to_string()), case.story, "{}", case.name);
    }
}
