//! The checks, one story for each, named for the sentence of the design.

use crate::story::Story;

fn check(words: &str, verdict: &str) {
    assert_eq!(Story::new(words).verdict(), verdict, "{words}");
}

const COMPLETED: &str = "A=completed:reconstructed_from_transcript";
const INTERRUPTED: &str = "A=interrupted:daemon_lost";

#[test]
fn a_clean_tail_is_an_answer() {
    check("A+ ? !", COMPLETED);
    check("note A+m ? !", COMPLETED);
    check("A+ ? call tool ! note", COMPLETED);
}

#[test]
fn an_open_tail_is_an_interruption() {
    check("A+ ?", INTERRUPTED);
    check("A+ ? call", INTERRUPTED);
    check("A+ ? call tool", INTERRUPTED);
    check("A+ ? blind", INTERRUPTED);
    check("A+ ? ! mid", INTERRUPTED);
}

#[test]
fn nothing_open_is_nothing_to_judge() {
    check("A+ ? ! A=done", "no_dangling");
}

#[test]
fn several_open_prompts_have_no_sure_owner() {
    check("A+ B+ ? !", "several_dangling");
}

#[test]
fn a_settled_prompt_behind_the_open_one_does_not_shadow_it() {
    check("A+ B+ B=cancelled ? !", COMPLETED);
}

#[test]
fn a_prompt_that_had_ended_is_not_judged_again() {
    check("A=done A+ ? !", "attribution_guard");
}

#[test]
fn a_marker_must_be_on_the_branch_and_something_behind_it() {
    check("note A+m9 ? !", "marker_absent");
    check("? ! A+m note", "marker_nothing_after");
    check("? ! A+m remind", "marker_nothing_after");
}

#[test]
fn a_deadline_elsewhere_spoils_the_evidence_for_good() {
    check("B+ B=late A+ ? !", "deadline_fence");
    check("B+ B=late B=done A+ ? !", "deadline_fence");
}

#[test]
fn a_compression_after_the_admission_hides_the_turn() {
    check("A+ ? ! zip !", "compression_fence");
    check("note A+m ? zip !", "compression_fence");
    check("zip A+ ? !", COMPLETED);
    check("zip A+m ? !", COMPLETED);
}

#[test]
fn a_turn_that_wrote_nothing_is_not_known() {
    check("A+ note", "no_visible_write");
    check("A+ remind", "no_visible_write");
}

#[test]
fn the_tail_must_be_later_than_the_admission() {
    check("? ! A+", "tail_before_admission");
    check("? A+ same !", "same_ms_as_admission");
}

#[test]
fn the_tail_must_be_later_than_every_other_end() {
    check("B+ A+ ? ! B=done", "tail_before_other_terminal");
    check("B+ A+ ? B=done same !", "same_ms_as_other_terminal");
    check("B+ A+ ? ! B=done ? !", COMPLETED);
}

#[test]
fn what_is_no_answer_is_no_end() {
    check("A+ ? ! remind", "tail_is_no_answer");
    check("A+ ? ! task", "tail_is_no_answer");
    check("A+ ? ! job", "tail_is_no_answer");
    check("note A+m ? ! job job", "tail_is_no_answer");
    check("note A+m job", "marker_nothing_after");
    check("A+ job", "no_visible_write");
    check("A+ ? task", INTERRUPTED);
    check("A+ ? job", INTERRUPTED);
    check("A+ ? call task", INTERRUPTED);
}

#[test]
fn a_goal_that_ended_with_a_tool_leaves_nothing_sure() {
    let goal = r#""goalContext":{"goalId":"g","turnId":"t","revision":1},"#;
    let story = Story::new("A+ ? call tool note");
    let end = r#""subtype":"goal_turn_end","systemPayload":{"toolCallId":"c1"}"#;
    let note = r#""subtype":"ui_telemetry","systemPayload":{}"#;
    let with_goal = |transcript: &str| {
        let lines: Vec<_> = transcript.lines().collect();
        let marked = |line: &&str| line.replacen('{', &format!("{{{goal}"), 1);
        format!("{}\n{}\n{}\n{}\n", lines[0], lines[1], marked(&lines[2]), marked(&lines[3]))
    };
    let closed = story.transcript.replace(note, end);
    assert_ne!(closed, story.transcript);
    let judged = |transcript: String| story.with_transcript(transcript).verdict();
    assert_eq!(judged(with_goal(&closed)), "tail_is_no_answer");
    // Nor does a command that the session answered by itself, or a note that has no say, open it again.
    let behind = |words: &str| {
        let longer = Story::new(&format!("A+ ? call tool note {words}")).transcript;
        format!("{}{}", with_goal(&closed), longer.lines().skip(4).map(|line| format!("{line}\n")).collect::<String>())
    };
    assert_eq!(judged(behind("/ told")), "tail_is_no_answer");
    assert_eq!(judged(behind("job")), "tail_is_no_answer");
    assert_eq!(judged(behind("mute")), "tail_is_no_answer");
    assert_eq!(judged(behind("?")), INTERRUPTED);
    assert_eq!(judged(with_goal(&closed.replace("\"toolCallId\":\"c1\"", "\"toolCallId\":\"c2\""))), INTERRUPTED);
    assert_eq!(judged(closed), INTERRUPTED);
}

#[test]
fn a_command_is_answered_when_its_answer_is_after_the_admission() {
    check("A+ / told", COMPLETED);
    check("note A+m / told", COMPLETED);
    let told = |words: &str, change: fn(&str) -> String| {
        let story = Story::new(words);
        let (before, answer) = story.transcript.trim_end().rsplit_once('\n').unwrap();
        story.with_transcript(format!("{before}\n{}\n", change(answer))).verdict()
    };
    let earlier = |line: &str| line.replace("2026-11-29", "2026-11-28");
    let undated = |line: &str| line.replace("2026-11-29", "once");
    assert_eq!(told("A+ / told", earlier), "tail_is_no_answer");
    assert_eq!(told("A+ / told", undated), "tail_is_no_answer");
    // With a marker the place decides.
    assert_eq!(told("note A+m / told", earlier), COMPLETED);
    assert_eq!(told("note A+m / told", undated), COMPLETED);
}

#[test]
fn without_a_transcript_there_is_no_evidence() {
    let story = Story::new("A+ ? !");
    let files = crate::files::Files::with(Some(story.ledger.as_bytes()), None);
    assert_eq!(crate::story::verdict(&files), "no_transcript");
}

#[test]
fn a_ledger_that_cannot_be_read_stops_everything() {
    let files = crate::files::Files::with(None, None);
    files.make_ledger_a_folder();
    assert_eq!(crate::story::verdict(&files), "ledger_unreadable");
}
