//! Any interleaving: each prompt that was handed on gets one result, and no prefix of what was written shows a clean
//! answer to a prompt that got none.

use std::collections::HashMap;

use proptest::prelude::*;
use transcript::{TurnResult, TurnState};

use super::*;

/// One thing that happens, with the request id of the prompt under way filled in when it does.
#[derive(Debug, Clone)]
enum Step {
    Prompt { writable: bool },
    Says(&'static str),
    Update(String),
    Ask,
    Answer(&'static str),
    Cancel,
    Command,
    CommandEnded,
    Replace,
    Replaced(bool),
    Greeted(bool),
    Rewind,
    Made { writable: bool },
    AgentGone,
    DaemonGone,
    LingerExpired,
    Close,
    Terminated,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (prop::sample::select(&["tool_call", "tool_call_update"][..]), 0..3, call_rest());
    let update = call.prop_map(|(kind, id, rest)| {
        Step::Update(update_line(&format!(r#"{{"sessionUpdate":"{kind}","toolCallId":"{id}"{rest}}}"#)))
    });
    let answers = [
        r#""result":{"stopReason":"end_turn"}"#,
        r#""result":{"stopReason":"cancelled"}"#,
        r#""result":null"#,
        r#""error":{"code":-32603,"message":"no"}"#,
    ];
    let step = prop_oneof![
        6 => prop::bool::weighted(0.9).prop_map(|writable| Step::Prompt { writable }),
        8 => prop::sample::select(&["a", "b", ""][..]).prop_map(Step::Says),
        8 => update,
        2 => Just(Step::Ask),
        5 => prop::sample::select(answers.to_vec()).prop_map(Step::Answer),
        2 => Just(Step::Cancel),
        3 => Just(Step::Command),
        3 => Just(Step::CommandEnded),
        3 => Just(Step::Replace),
        3 => prop::bool::weighted(0.9).prop_map(Step::Replaced),
        4 => prop::bool::weighted(0.9).prop_map(Step::Greeted),
        3 => Just(Step::Rewind),
        4 => prop::bool::weighted(0.7).prop_map(|writable| Step::Made { writable }),
        1 => Just(Step::AgentGone),
        1 => Just(Step::DaemonGone),
        1 => Just(Step::LingerExpired),
        1 => Just(Step::Close),
        1 => Just(Step::Terminated),
    ];
    prop::collection::vec(step, 0..40)
}

fn call_rest() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        r#","rawInput":{"a":1}"#,
        r#","status":"in_progress""#,
        r#","status":"completed""#,
        r#","status":"failed","content":[{"content":{"text":"no"}}]"#,
    ])
}

/// What a run has left.
#[derive(Debug, Default)]
struct Outcome {
    records: Vec<Body>,
    dispatched: Vec<String>,
    /// Lines to the daemon with the number of records that were written before them.
    told: Vec<(usize, Bytes)>,
    /// Commands that were asked for.
    commands: u64,
    /// Commands that were begun.
    begun: usize,
}

/// The request ids of commands come behind this one.
const COMMAND_ID_FIRST: u64 = 10_000;

fn command_line(number: u64) -> String {
    format!(r#"{{"id":{},"method":"turnd/shell","params":{{"command":"x"}}}}"#, COMMAND_ID_FIRST + number)
}

fn run(steps: &[Step]) -> (World, Outcome) {
    let mut world = World::replaceable();
    let mut outcome = Outcome::default();
    let (mut next, mut ending, mut own, mut commands) = (2, false, OWN_ID_FIRST, 0);
    for step in steps {
        let current = next - 1;
        let session = format!("{:?}", world.machine.agent_session.as_deref().unwrap_or("ses"));
        let message = |line: &str| message(&line.replace("\"ses\"", &session));
        let was_rewinding = world.machine.rewinding.is_some();
        let input = match step {
            Step::Prompt { writable } => {
                world.writable = *writable;
                next += 1;
                Input::Daemon(message(&prompt_line(next - 1)))
            }
            Step::Says(text) => Input::Agent(message(&says_line(text))),
            Step::Update(line) => Input::Agent(message(line)),
            Step::Ask => Input::Agent(message(
                r#"{"id":0,"method":"session/request_permission","params":{"sessionId":"ses","toolCall":{"toolCallId":"1"}}}"#,
            )),
            Step::Answer(answer) => Input::Agent(message(&format!(r#"{{"id":{current},{answer}}}"#))),
            Step::Cancel => Input::Daemon(message(r#"{"method":"session/cancel","params":{}}"#)),
            Step::Command => {
                commands += 1;
                Input::Daemon(message(&command_line(commands)))
            }
            Step::CommandEnded => Input::CommandEnded(Ok(Ended::default())),
            Step::Replace => {
                Input::Daemon(message(r#"{"id":1,"method":"turnd/replace_agent","params":{"sessionId":"t"}}"#))
            }
            // The shell says so once for each time that it was told to.
            Step::Replaced(_) if !ending => continue,
            Step::Replaced(true) => Input::Replaced(Ok(())),
            Step::Replaced(false) => Input::Replaced(Err("no".to_owned())),
            Step::Greeted(well) => {
                let answer = if *well {
                    r#""result":{"agentCapabilities":{"loadSession":true}}"#
                } else {
                    r#""error":{"code":1,"message":"no"}"#
                };
                Input::Agent(message(&format!(r#"{{"id":{own},{answer}}}"#)))
            }
            Step::Rewind => Input::Daemon(message(
                r#"{"id":1,"method":"turnd/rewind","params":{"sessionId":"ses","cwd":"/ws","promptId":"p2","kept":0,
                "leaf":"l","before":"b","truncatedCount":2,"atMs":7}}"#,
            )),
            Step::Made { writable } => {
                world.rewound = if *writable { Ok(()) } else { Err(NotRewound::Grown) };
                Input::Agent(message(&format!(r#"{{"id":{own},"result":{{"sessionId":"made{own}"}}}}"#)))
            }
            // On its way to its end an agent is not waited for in this way.
            Step::AgentGone if ending => continue,
            Step::AgentGone => Input::AgentGone(Exit::default()),
            Step::DaemonGone => Input::DaemonGone,
            Step::LingerExpired => Input::LingerExpired,
            Step::Close => Input::Daemon(message(r#"{"method":"turnd/close","params":{}}"#)),
            Step::Terminated => Input::Terminated,
        };
        ending &= !matches!(step, Step::Replaced(_));
        let effects = world.input(input);
        ending |= effects.contains(&Effect::Replace);
        let dispatches = effects.iter().any(|effect| matches!(effect, Effect::Admit { .. }));
        assert!(!(was_rewinding && dispatches), "a prompt is dispatched to a session that is being rewound");
        // The shell ends a command at once when it is told to.
        let stopped = effects.contains(&Effect::StopCommand);
        own = effects.iter().filter_map(own_request).next_back().unwrap_or(own);
        collect(&mut outcome, effects);
        if stopped {
            let ended = Input::CommandEnded(Ok(Ended::default()));
            collect(&mut outcome, world.input(ended));
        }
    }
    outcome.commands = commands;
    (world, outcome)
}

/// The number of a request of the host itself.
fn own_request(effect: &Effect) -> Option<u64> {
    let Effect::ToAgent(line) = effect else { return None };
    let message = Message::parse(line.clone()).ok()?;
    let Kind::Request { id, .. } = message.kind() else { return None };
    id.as_u64().filter(|id| *id >= OWN_ID_FIRST)
}

fn collect(outcome: &mut Outcome, effects: Vec<Effect>) {
    let mut admitted = None;
    for effect in effects {
        match effect {
            Effect::Append(records) => outcome.records.extend(records),
            Effect::Admit { record, .. } => admitted = Some(record),
            Effect::ToAgent(line) | Effect::Feed(line) if shown_line(&line).starts_with("session/prompt#") => {
                let Some(record) = admitted.take() else { panic!("a prompt was handed on without a record") };
                let Body::User { prompt_id, .. } = &record else { panic!("{record:?}") };
                outcome.dispatched.push(prompt_id.clone().unwrap());
                outcome.records.push(record);
            }
            Effect::ToDaemon(line) => outcome.told.push((outcome.records.len(), line)),
            Effect::Record { record, .. } => outcome.records.push(record),
            Effect::ToAgent(_) | Effect::Remember { .. } | Effect::Linger | Effect::Pause => {}
            Effect::Replace | Effect::End => {}
            Effect::Rewind { .. } | Effect::Keep(_) | Effect::Feed(_) => {}
            Effect::RunCommand(_) => outcome.begun += 1,
            Effect::StopCommand => {}
        }
    }
}

fn result_of(record: &Body) -> Option<TurnResult> {
    let Body::System { payload, .. } = record else { return None };
    TurnResult::from_payload(payload)
}

/// How a reader without results would take a beginning of the transcript: the evidence rules' classifier, in short.
fn looks_clean(records: &[Body]) -> bool {
    let visible = records.iter().rev().find(|record| !matches!(record, Body::System { .. }));
    match visible {
        Some(Body::Assistant { parts, .. }) => parts.iter().all(|part| part.get("functionCall").is_none()),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_command_that_is_begun_is_noted_twice_and_answered_at_most_once(steps in steps()) {
        let (mut world, mut outcome) = run(&steps);
        collect(&mut outcome, world.input(Input::Terminated));
        collect(&mut outcome, world.input(Input::CommandEnded(Ok(Ended::default()))));
        let notes = |wanted: &str| {
            let is_note = |record: &&Body| matches!(record, Body::System { subtype, .. } if subtype == wanted);
            outcome.records.iter().filter(is_note).count()
        };
        prop_assert_eq!(notes(transcript::USER_SHELL_COMMAND), outcome.begun);
        prop_assert_eq!(notes(transcript::USER_SHELL_RESULT), outcome.begun);
        let mut answers = HashMap::new();
        for (_, line) in &outcome.told {
            let answered = Message::parse(line.clone()).ok().and_then(|message| match message.kind() {
                Kind::Response { id: Some(id) } => id.as_u64().filter(|id| (COMMAND_ID_FIRST..OWN_ID_FIRST).contains(id)),
                _ => None,
            });
            answered.into_iter().for_each(|id| *answers.entry(id).or_insert(0) += 1);
        }
        prop_assert!(answers.values().all(|count| *count == 1) && answers.len() as u64 <= outcome.commands);
    }

    #[test]
    fn each_dispatched_prompt_has_at_most_one_result_and_after_the_end_exactly_one(steps in steps()) {
        let (mut world, mut outcome) = run(&steps);
        let results = |outcome: &Outcome| {
            let mut counts = HashMap::new();
            for result in outcome.records.iter().filter_map(result_of) {
                *counts.entry(result.prompt_id).or_insert(0) += 1;
            }
            counts
        };
        prop_assert!(results(&outcome).values().all(|count| *count == 1));
        collect(&mut outcome, world.input(Input::Terminated));
        let counts = results(&outcome);
        prop_assert_eq!(counts.len(), outcome.dispatched.len());
        prop_assert!(outcome.dispatched.iter().all(|id| counts.get(id) == Some(&1)));
    }

    #[test]
    fn no_beginning_of_the_record_shows_a_clean_answer_to_a_prompt_that_got_none(steps in steps()) {
        let (mut world, mut outcome) = run(&steps);
        collect(&mut outcome, world.input(Input::Terminated));
        let completed: HashMap<_, _> = outcome.records.iter().filter_map(result_of)
            .map(|result| (result.prompt_id, result.state == TurnState::Completed))
            .collect();
        let mut open = None;
        for (at, record) in outcome.records.iter().enumerate() {
            if let Body::User { prompt_id, .. } = record {
                open.clone_from(prompt_id);
            } else if result_of(record).is_some() {
                open = None;
            }
            // Only while its result is not there can a prompt be judged by its looks.
            if let Some(id) = &open {
                prop_assert!(completed[id] || !looks_clean(&outcome.records[..=at]), "{} at {}", id, at);
            }
        }
    }

    #[test]
    fn an_answer_is_told_behind_its_result_and_says_the_same(steps in steps()) {
        let (_, outcome) = run(&steps);
        for (written, line) in &outcome.told {
            let Some((id, said)) = turn_of(line) else { continue };
            let results: Vec<_> = outcome.records[..*written].iter().filter_map(result_of).collect();
            let result = results.iter().find(|result| result.prompt_id == format!("p{id}"));
            prop_assert_eq!(result.map(|result| result.state.as_str().to_owned()), Some(said));
        }
    }

    #[test]
    fn every_result_of_a_call_follows_the_call(steps in steps()) {
        let (mut world, mut outcome) = run(&steps);
        collect(&mut outcome, world.input(Input::Terminated));
        let mut open: Vec<String> = Vec::new();
        for record in &outcome.records {
            match record {
                Body::Assistant { parts, .. } => {
                    let ids = parts.iter().filter_map(|part| part.pointer("/functionCall/id"));
                    open.extend(ids.map(|id| id.as_str().unwrap().to_owned()));
                }
                Body::ToolResult { call_id, .. } => {
                    let at = open.iter().position(|id| id == call_id);
                    prop_assert!(at.is_some(), "{}", call_id);
                    open.remove(at.unwrap());
                }
                Body::User { .. } => prop_assert!(open.is_empty(), "a turn left {:?} open", open),
                Body::MidTurn { .. } | Body::System { .. } => {}
            }
        }
        prop_assert!(open.is_empty(), "{:?}", open);
    }
}

/// The request id and the state of a stamped answer.
fn turn_of(line: &Bytes) -> Option<(String, String)> {
    let message = Message::parse(line.clone()).ok()?;
    let Kind::Response { id: Some(id) } = message.kind() else { return None };
    let state = acp::string_at(message.result()?, &["_meta", "turnd/turn", "state"])?;
    Some((id.to_string(), state))
}
