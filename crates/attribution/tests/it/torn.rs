//! Files torn at every byte: what is judged then is never more than what is left on the disk says.

use crate::files::Files;
use crate::told::{self, verdict};

/// The two files of a story as texts, to be cut anywhere.
struct Torn {
    ledger: String,
    transcript: String,
}

impl Torn {
    fn new(notation: &str) -> Self {
        let remains = told::story(notation).remains();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { ledger: text(remains.ledger), transcript: text(remains.transcript) }
    }

    fn files(&self) -> Files {
        Files::with(Some(self.ledger.as_bytes()), Some(self.transcript.as_bytes()))
    }
}

/// Judges a story whose transcript was cut after so many bytes.
fn with_transcript_cut(story: &Torn, length: usize) -> String {
    verdict(&Files::with(Some(story.ledger.as_bytes()), Some(&story.transcript.as_bytes()[..length])))
}

fn with_ledger_cut(story: &Torn, length: usize) -> String {
    verdict(&Files::with(Some(&story.ledger.as_bytes()[..length]), Some(story.transcript.as_bytes())))
}

/// Where the last line of a text begins.
fn last_line(text: &str) -> usize {
    text.trim_end().rfind('\n').map_or(0, |lf| lf + 1)
}

#[test]
fn no_answer_is_completed_before_all_of_it_is_written() {
    for words in [
        "[A if, user, answer]",
        "[note, A if marked, user, answer]",
        "[A if, A user, call, tool, answer]",
        "[note, A if marked, A user, answer]",
    ] {
        let story = Torn::new(words);
        let whole = story.transcript.len() - 1;
        for cut in last_line(&story.transcript)..whole {
            assert_eq!(with_transcript_cut(&story, cut), "A interrupted (open prompt)", "{words}, cut at {cut}");
        }
        for cut in [whole, whole + 1] {
            let completed = "A completed";
            assert_eq!(with_transcript_cut(&story, cut), completed, "{words}, cut at {cut}");
        }
    }
}

#[test]
fn no_result_counts_before_all_of_it_is_written() {
    let story = Torn::new("[note, A if marked, A user, answer, A result cancelled]");
    let whole = story.transcript.len() - 1;
    for cut in last_line(&story.transcript)..whole {
        assert_eq!(with_transcript_cut(&story, cut), "A completed", "cut at {cut}");
    }
    assert_eq!(with_transcript_cut(&story, whole), "A result cancelled");
}

#[test]
fn a_transcript_cut_anywhere_never_invents_an_answer() {
    let story = Torn::new("[B if, B user, answer, B result completed, B term, A if marked, A user, call, tool, call]");
    for cut in 0..=story.transcript.len() {
        let verdict = with_transcript_cut(&story, cut);
        assert!(!verdict.contains("completed"), "cut at {cut}: {verdict}");
    }
}

#[test]
fn what_is_appended_behind_a_torn_record_is_judged_with_it() {
    let story = Torn::new("[note, A if marked, A user, answer]");
    let answer = last_line(&story.transcript);
    let again = "{\"uuid\":\"x\",\"parentUuid\":\"r1\",\"sessionId\":\"11111111-2222-4333-8444-555555555555\",\
                 \"timestamp\":\"2026-11-29T18:59:00.000Z\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"parts\":[{\"text\":\"q\"}]}}";
    for cut in answer..story.transcript.len() - 1 {
        for seal in ["", "\n"] {
            let torn = format!("{}{seal}{again}\n", &story.transcript[..cut]);
            let files = Files::with(Some(story.ledger.as_bytes()), Some(torn.as_bytes()));
            assert_eq!(verdict(&files), "foreign_prompt", "cut at {cut}");
        }
    }
}

#[test]
fn a_line_that_two_readers_read_apart_settles_nothing() {
    let story = Torn::new("[note, A if marked, A user, call, tool, answer]");
    let answer = last_line(&story.transcript);
    let glued = |fragment: &str| {
        let (before, last) = story.transcript.split_at(answer);
        let torn = format!("{before}{fragment}{last}");
        verdict(&Files::with(Some(story.ledger.as_bytes()), Some(torn.as_bytes())))
    };
    // Whoever loses the answer behind an open brace takes the turn for interrupted.
    assert_eq!(glued("{\"uuid\":\"r4\",\"par"), "history_unreadable");
    assert_eq!(glued("{\"uuid\":"), "history_unreadable");
    assert_eq!(glued("\0\0\0"), "A completed");
    assert_eq!(glued("{}"), "A completed");
}

#[test]
fn a_line_that_two_readers_read_apart_settles_what_both_say() {
    let story = Torn::new("[A if, A user, call, tool, answer, A user, answer]");
    let lines: Vec<_> = story.transcript.lines().collect();
    let torn = format!("{}\n{{\"uu{}\n{}\n", lines[..3].join("\n"), lines[3], lines[4..].join("\n"));
    let files = Files::with(Some(story.ledger.as_bytes()), Some(torn.as_bytes()));
    assert_eq!(verdict(&files), "A completed");
    // A result with the prompt's own id is believed wherever it is found.
    let exact = Torn::new("[A if, A user, answer, A result failed]");
    let result = last_line(&exact.transcript);
    let torn = format!("{}{{\"uu{}", &exact.transcript[..result], &exact.transcript[result..]);
    assert_eq!(verdict(&Files::with(Some(exact.ledger.as_bytes()), Some(torn.as_bytes()))), "A result failed boom");
}

#[test]
fn an_admission_counts_when_all_of_it_is_written() {
    let story = Torn::new("[A if, user, answer]");
    let whole = story.ledger.len() - 1;
    for cut in 0..whole {
        assert_eq!(with_ledger_cut(&story, cut), "no_dangling", "cut at {cut}");
    }
    assert_eq!(with_ledger_cut(&story, whole), "A completed");
}

#[test]
fn a_torn_end_leaves_its_prompt_open_and_no_other_one_settled() {
    let story = Torn::new("[B if, B user, answer, B result completed, A if, B term, A user, answer, A term]");
    let whole = story.ledger.len() - 1;
    for cut in last_line(&story.ledger)..whole {
        assert_eq!(with_ledger_cut(&story, cut), "A completed", "cut at {cut}");
    }
    let before = last_line(&story.ledger[..last_line(&story.ledger)]);
    for cut in before..last_line(&story.ledger) - 1 {
        // B's own result settles it; A's evidence is older than that end, which is now.
        let verdict = with_ledger_cut(&story, cut);
        assert_eq!(verdict, "B result completed max_tokens; tail_before_other_terminal", "cut at {cut}");
    }
}

#[test]
fn what_was_appended_to_a_torn_ledger_settles_the_prompt() {
    let story = Torn::new("[A if, user, answer, B if]");
    for cut in last_line(&story.ledger) + 1..story.ledger.len() - 1 {
        let files = Files::with(Some(&story.ledger.as_bytes()[..cut]), Some(story.transcript.as_bytes()));
        assert_eq!(files.reconcile().appended.len(), 1, "cut at {cut}");
        assert!(files.ledger_bytes().starts_with(&[&story.ledger.as_bytes()[..cut], b"\n{"].concat()), "cut at {cut}");
        assert_eq!(verdict(&files), "no_dangling", "cut at {cut}");
    }
}

#[test]
fn a_ledger_that_cannot_be_written_leaves_the_prompt_unknown() {
    let story = Torn::new("[A if, user, answer]");
    let files = story.files();
    let plan = files.plan();
    std::fs::remove_file(files.ledger().path()).unwrap();
    std::fs::create_dir(files.ledger().path()).unwrap();
    let outcome = plan.apply(files.ledger(), 1);
    assert!(outcome.appended.is_empty() && outcome.settled.is_empty());
    assert!(outcome.failure.is_some() || outcome.withheld.is_some());
}
