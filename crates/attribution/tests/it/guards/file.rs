//! The text files that hold the cases: how they are read, and how their verdicts are written again.

use std::fs;
use std::path::{Path, PathBuf};

use attribution::strategies::Story;

use super::setting::Setting;

/// One guard's cases.
pub(super) struct CaseFile {
    pub(super) path: PathBuf,
    /// The file's name without its end: the number of the check and its name.
    pub(super) stem: String,
    pub(super) cases: Vec<Case>,
    lines: Vec<String>,
}

/// One story and what is said of it.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) story: Story,
    pub(super) settings: Vec<Setting>,
    pub(super) said: Said,
    /// What is said of the story without its decisive event.
    pub(super) without: Option<Said>,
}

/// A verdict and where it stands.
pub(super) struct Said {
    line: usize,
    pub(super) words: String,
}

/// What a case shows of its guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The guard fires.
    Fires,
    /// It just does not.
    JustDoesNot,
    /// It fires, and without the decisive event it does not.
    OnlyBecauseOf,
    /// What is said may be wrong, and no evidence in the two files could show it (ledger seed, residual risk).
    StaysOpen,
}

impl Kind {
    const ALL: [(&'static str, Self); 4] = [
        ("fires:", Self::Fires),
        ("just does not:", Self::JustDoesNot),
        ("only because of:", Self::OnlyBecauseOf),
        ("stays open:", Self::StaysOpen),
    ];
}

const SAID: &str = "  → ";
const WITHOUT: &str = "  without → ";

/// All files, in the order of their names.
pub(super) fn all() -> Vec<CaseFile> {
    let folder = folder();
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    paths.sort();
    paths.into_iter().map(CaseFile::read).collect()
}

/// Where the cases lie.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

impl CaseFile {
    fn read(path: PathBuf) -> Self {
        let lines: Vec<_> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut file = Self { path, stem, cases: Vec::new(), lines: Vec::new() };
        let mut kind = None;
        let mut draft: Option<Draft> = None;
        for (number, line) in lines.iter().enumerate().skip(1) {
            let place = || format!("{}:{}: {line}", file.path.display(), number + 1);
            if let Some((_, found)) = Kind::ALL.iter().find(|(heading, _)| heading == line) {
                file.cases.extend(draft.take().map(|draft| draft.finish(&place())));
                kind = Some(*found);
            } else if let Some(detail) = line.strip_prefix("  ") {
                draft.as_mut().unwrap_or_else(|| panic!("{}", place())).take(detail, number, &place());
            } else if !line.is_empty() {
                file.cases.extend(draft.take().map(|draft| draft.finish(&place())));
                draft = Some(Draft::new(line, kind.unwrap_or_else(|| panic!("{}", place()))));
            }
        }
        file.cases.extend(draft.map(|draft| draft.finish("the last case")));
        Self { lines, ..file }
    }

    /// The name of the check.
    pub(super) fn name(&self) -> &str {
        self.stem.split_once('_').unwrap().1
    }

    /// The sentence of the rules that the file is about.
    pub(super) fn rule(&self) -> &str {
        &self.lines[0]
    }

    /// Whether the words say what the file is about.
    pub(super) fn is_said_in(&self, words: &str) -> bool {
        words.split("; ").any(|word| match self.name() {
            "exact_result" => word.contains(" result "),
            "completed" => word.ends_with(" completed"),
            "interrupted" => word.contains(" interrupted "),
            "cancelled" => word.ends_with(" cancelled (wish)"),
            reason => word == reason,
        })
    }

    /// Writes the file again with what was found in the place of what was expected.
    pub(super) fn rewrite(&self, found: &[(&Said, &str)]) {
        let mut lines = self.lines.clone();
        for (said, words) in found {
            let line = &mut lines[said.line];
            let start = if line.starts_with(SAID) { SAID } else { WITHOUT };
            *line = format!("{start}{words}");
        }
        fs::write(&self.path, lines.join("\n") + "\n").unwrap();
    }
}

/// A case while its lines are read.
struct Draft {
    name: String,
    kind: Kind,
    story: Option<Story>,
    settings: Vec<Setting>,
    said: Option<Said>,
    without: Option<Said>,
}

impl Draft {
    fn new(name: &str, kind: Kind) -> Self {
        Self { name: name.to_owned(), kind, story: None, settings: Vec::new(), said: None, without: None }
    }

    fn take(&mut self, detail: &str, line: usize, place: &str) {
        let said = |words: &str| Some(Said { line, words: words.to_owned() });
        if detail.starts_with('[') {
            self.story = Some(detail.parse().unwrap_or_else(|error| panic!("{place}: {error}")));
        } else if let Some(words) = detail.strip_prefix(SAID.trim_start()) {
            self.said = said(words);
        } else if let Some(words) = detail.strip_prefix(WITHOUT.trim_start()) {
            self.without = said(words);
        } else if detail.trim_start_matches('<').starts_with("where ") {
            self.settings.push(detail.parse().unwrap_or_else(|()| panic!("{place}")));
        } else if !detail.starts_with("-- ") {
            panic!("{place}: no line of a case");
        }
    }

    fn finish(self, place: &str) -> Case {
        let missing = || panic!("{}, before {place}: a case has a story and a verdict", self.name);
        Case {
            name: self.name.clone(),
            kind: self.kind,
            story: self.story.unwrap_or_else(missing),
            settings: self.settings,
            said: self.said.unwrap_or_else(|| panic!("{}: no verdict", self.name)),
            without: self.without,
        }
    }
}
