//! Taking the end of a conversation back.

use super::*;

/// The daemon's request, whose target is the prompt `p<to>` with so many prompts before it.
fn rewind_line(to: u64, kept: u64, more: &str) -> String {
    format!(
        r#"{{"id":9,"method":"turnd/rewind","params":{{"sessionId":"ses","cwd":"/ws","mcpServers":[],"promptId":"p{to}",
        "kept":{kept},"leaf":"leaf","before":"rec{kept}","truncatedCount":2,"atMs":77{more}}}}}"#
    )
}

/// A session `ses` that was new with this host, whose agent can what `capabilities` says and has answered the prompts p2 and p3.
fn talked(capabilities: &str) -> World {
    let mut world = World::new(Mode::Recorded, None);
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(&format!(r#"{{"id":0,"result":{{"agentCapabilities":{capabilities}}}}}"#));
    world.daemon(r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#);
    world.agent(r#"{"id":1,"result":{"sessionId":"ses"}}"#);
    for id in [2, 3] {
        world.prompt(id);
        world.agent(&format!(r#"{{"id":{id},"result":{{"stopReason":"end_turn"}}}}"#));
    }
    world
}

const CUTS: &str = r#"{"_meta":{"turnd/forkBefore":true},"sessionCapabilities":{"close":{}}}"#;

fn answered(session: &str, memory: &str) -> String {
    format!(r#"daemon< #9 {{"_meta":{{"turnd/memory":"{memory}"}},"sessionId":"{session}"}}"#)
}

fn made(world: &mut World, number: u64, session: &str) -> String {
    world.agent(&format!(r#"{{"id":{},"result":{{"sessionId":"{session}"}}}}"#, own(number)))
}

const WRITTEN: &str = "forget, rewind to rec1 at 77";

#[test]
fn an_agent_that_can_is_given_a_session_that_was_cut_and_the_record_comes_before_it_counts() {
    let mut world = talked(CUTS);
    assert_eq!(world.daemon(&rewind_line(3, 1, "")), format!("agent< turnd/session/fork_before#{}", own(0)));
    let done = made(&mut world, 0, "other");
    let closed = format!("agent< session/close#{}", own(1));
    assert_eq!(done, format!("{WRITTEN}; remember other in /ws; {}; {closed}", answered("other", "cut")));
    assert_eq!(world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(1))), "", "nobody asked for that");
}

#[test]
fn what_is_said_in_the_other_session_behind_its_making_is_told_of_and_what_it_is_made_of_is_not() {
    let said = says_line("late").replace(r#""sessionId":"ses""#, r#""sessionId":"other""#);
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    assert!(!world.agent(&said).contains("strayed"), "that is the history");
    made(&mut world, 0, "other");
    assert_eq!(world.agent(&said), "daemon< turnd/strayed");
    // The disk takes its time.
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    let answer = message(&format!(r#"{{"id":{},"result":{{"sessionId":"other"}}}}"#, own(0)));
    world.machine.handle(world.at_ms, Input::Agent(answer));
    assert!(world.agent(&said).starts_with("daemon< turnd/strayed; "));
}

#[test]
fn the_session_that_is_cut_is_named_with_the_prompt() {
    let mut world = talked(CUTS);
    let effects = world.input(Input::Daemon(message(&rewind_line(3, 1, ""))));
    let [Effect::ToAgent(line)] = &effects[..] else { panic!("{effects:?}") };
    let asked = Message::parse(line.clone()).unwrap();
    assert_eq!(asked.params().unwrap(), r#"{"promptId":"p3","sessionId":"ses","cwd":"/ws","mcpServers":[]}"#);
}

#[test]
fn an_empty_session_is_enough_where_the_agent_was_told_nothing_that_stays() {
    for capabilities in ["{}", CUTS] {
        // The first prompt of the conversation, and the first that this agent was given of a longer one.
        for kept in [0, 7] {
            let mut world = talked(capabilities);
            assert_eq!(world.daemon(&rewind_line(2, kept, "")), format!("agent< session/new#{}", own(0)));
            assert!(made(&mut world, 0, "other").contains(&answered("other", "fresh")));
        }
        // A prompt that it never had.
        let mut world = talked(capabilities);
        assert_eq!(world.daemon(&rewind_line(1, 7, "")), format!("agent< session/new#{}", own(0)));
    }
}

#[test]
fn an_agent_that_would_forget_what_stays_is_not_rewound_unless_that_is_taken() {
    let mut world = talked("{}");
    assert_eq!(world.daemon(&rewind_line(3, 1, "")), "daemon< #9 error rewind_not_supported");
    assert_eq!(world.prompt(4), "admit U(p4); agent< session/prompt#4", "nothing has changed");
    let mut world = talked("{}");
    let line = rewind_line(3, 1, r#","memory":"fresh""#);
    assert_eq!(world.daemon(&line), format!("agent< session/new#{}", own(0)));
    assert_eq!(
        made(&mut world, 0, "other"),
        format!("{WRITTEN}; remember other in /ws; {}", answered("other", "fresh"))
    );
}

#[test]
fn an_agent_that_was_brought_back_may_remember_anything() {
    let mut world = World::new(Mode::Recorded, Some("ses"));
    world.daemon(r#"{"id":0,"method":"initialize"}"#);
    world.agent(r#"{"id":0,"result":{"agentCapabilities":{"loadSession":true}}}"#);
    world.daemon(r#"{"id":1,"method":"session/load","params":{"sessionId":"turnd-1","cwd":"/ws","mcpServers":[]}}"#);
    world.agent(&format!(r#"{{"id":{},"result":{{}}}}"#, own(0)));
    assert_eq!(world.daemon(&rewind_line(2, 3, "")), "daemon< #9 error rewind_not_supported");
}

#[test]
fn a_rewind_that_the_agent_refuses_changes_nothing() {
    let refusal = |number| format!(r#"{{"id":{},"error":{{"code":-32603,"message":"no"}}}}"#, own(number));
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    assert_eq!(world.agent(&refusal(0)), "daemon< #9 error rewind_not_supported");
    assert_eq!(world.prompt(4), "admit U(p4); agent< session/prompt#4");
    // Where the caller takes it so, an empty one is tried next.
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, r#","memory":"fresh""#));
    assert_eq!(world.agent(&refusal(0)), format!("agent< session/new#{}", own(1)));
    assert_eq!(world.agent(&refusal(1)), "daemon< #9 error rewind_not_supported");
}

#[test]
fn a_session_without_an_id_of_its_own_is_none() {
    for result in ["{}", r#"{"sessionId":"ses"}"#] {
        let mut world = talked(CUTS);
        world.daemon(&rewind_line(3, 1, ""));
        let answer = world.agent(&format!(r#"{{"id":{},"result":{result}}}"#, own(0)));
        assert_eq!(answer, "daemon< #9 error rewind_not_supported", "{result}");
    }
}

#[test]
fn a_record_that_is_not_written_leaves_the_old_session_which_is_noted_again_behind_the_next_record() {
    for (why, code) in [
        (NotRewound::Grown, "session_transcript_changed"),
        (NotRewound::Unwritable("full".into()), "transcript_unwritable"),
    ] {
        let mut world = talked(CUTS);
        world.rewound = Err(why);
        world.daemon(&rewind_line(3, 1, ""));
        let closed = format!("agent< session/close#{}", own(1));
        assert_eq!(made(&mut world, 0, "other"), format!("{WRITTEN}; {closed}; daemon< #9 error {code}"));
        assert_eq!(world.prompt(4), "admit U(p4); remember ses in /ws; agent< session/prompt#4");
        assert_eq!(world.agent(r#"{"id":4,"result":{"stopReason":"end_turn"}}"#).matches("remember").count(), 0);
    }
}

#[test]
fn nothing_else_is_done_to_a_session_that_is_rewound() {
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    assert_eq!(world.prompt(4), "daemon< #4 error turn_in_progress");
    for method in ["session/new", "session/load", "turnd/rewind", "turnd/replace_agent"] {
        let answer = world.daemon(&format!(r#"{{"id":5,"method":"{method}","params":{{}}}}"#));
        assert_eq!(answer, "daemon< #5 error turn_in_progress", "{method}");
    }
    assert!(made(&mut world, 0, "other").starts_with(WRITTEN));
}

#[test]
fn a_running_turn_is_not_rewound() {
    let mut world = talked(CUTS);
    world.prompt(4);
    assert_eq!(world.daemon(&rewind_line(3, 1, "")), "daemon< #9 error turn_in_progress");
}

#[test]
fn a_rewind_that_says_not_where_to_and_one_of_a_native_agent_are_none() {
    let mut world = talked(CUTS);
    let nowhere = r#"{"id":9,"method":"turnd/rewind","params":{"promptId":"p3"}}"#;
    assert_eq!(world.daemon(nowhere), "daemon< #9 error rewind_not_supported");
    let mut world = World::new(Mode::Native, None);
    assert_eq!(world.daemon(&rewind_line(3, 1, "")), "daemon< #9 error rewind_not_supported");
}

#[test]
fn an_agent_that_ends_meanwhile_answers_for_its_rewind() {
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    let effects = world.shown(Input::AgentGone(Exit::default()));
    assert!(effects.starts_with("daemon< #9 error channel_closed; "), "{effects}");
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    assert_eq!(world.shown(Input::AnswerLost { limit_bytes: 1 }), "daemon< #9 error frame_too_long");
    assert_eq!(world.prompt(4), "admit U(p4); agent< session/prompt#4");
}

#[test]
fn a_daemon_that_dies_meanwhile_leaves_the_session_as_it_was() {
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    assert_eq!(world.shown(Input::DaemonGone), "end");
}

#[test]
fn what_was_said_behind_the_last_turn_goes_with_it() {
    let mut world = talked(CUTS);
    world.says("late");
    world.daemon(&rewind_line(3, 1, ""));
    made(&mut world, 0, "ses2");
    let prompt = prompt_line(4).replace("\"ses\"", "\"ses2\"");
    assert_eq!(world.daemon(&prompt), "admit U(p4); agent< session/prompt#4");
}

#[test]
fn a_second_rewind_knows_what_the_first_has_left() {
    let mut world = talked(CUTS);
    world.daemon(&rewind_line(3, 1, ""));
    made(&mut world, 0, "ses2");
    // p2 is left, so nothing stays of what the agent was told when that goes too.
    assert_eq!(world.daemon(&rewind_line(2, 5, "")), format!("agent< session/new#{}", own(2)));
}

/// What of a session is on disk, as far as the next host depends on it: which session of the agent it asks for, and how long the
/// branch is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OnDisk {
    noted: Option<String>,
    is_rewound: bool,
}

#[test]
fn a_host_that_is_killed_between_any_two_steps_leaves_no_agent_that_remembers_what_was_taken_back() {
    let mut world = talked(CUTS);
    let mut disk = OnDisk { noted: Some("ses".to_owned()), is_rewound: false };
    let mut seen = vec![disk.clone()];
    let mut effects = world.input(Input::Daemon(message(&rewind_line(3, 1, ""))));
    let answer = format!(r#"{{"id":{},"result":{{"sessionId":"other"}}}}"#, own(0));
    effects.extend(world.input(Input::Agent(message(&answer))));
    for effect in effects {
        match effect {
            // The shell's own two steps.
            Effect::Rewind { .. } => {
                disk.noted = None;
                seen.push(disk.clone());
                disk.is_rewound = true;
            }
            Effect::Remember { agent_session, .. } => disk.noted = Some(agent_session),
            Effect::ToAgent(_) | Effect::ToDaemon(_) => {}
            other => panic!("{other:?}"),
        }
        seen.push(disk.clone());
    }
    for state in &seen {
        let remembers = state.noted.as_deref();
        let is_sound = if state.is_rewound { remembers != Some("ses") } else { remembers != Some("other") };
        assert!(is_sound, "{state:?}");
    }
    assert_eq!(seen.last(), Some(&OnDisk { noted: Some("other".to_owned()), is_rewound: true }));
}
