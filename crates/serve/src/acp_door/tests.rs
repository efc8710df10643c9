//! What an editor says and what a session tells, and what follows: one line in, one line for each effect.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Says whatever is said as the JSON that it is, and the other effects by their names.
fn shown(effects: Vec<Effect>) -> Vec<String> {
    let line = |effect| match effect {
        Effect::Say(line) => {
            let mut message: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            message.as_object_mut().unwrap().remove("jsonrpc");
            sorted(message).to_string()
        }
        Effect::Open { opening: Opening { cwd, which }, .. } => format!("open {which:?} in {cwd}"),
        Effect::Follow { session } => format!("follow {session}"),
        Effect::Admit { session, body, .. } => format!("admit {session} {body}"),
        Effect::Cancel { session, prompts } => format!("cancel {session} {prompts:?}"),
        Effect::Vote { session, question, vote } => format!("vote {session} {question} {vote:?}"),
        Effect::Ask { session, method, params, .. } => format!("ask {session} {method} {params}"),
        Effect::HangUp(goodbye) => format!("hang up {goodbye:?}"),
    };
    effects.into_iter().map(line).collect()
}

/// The same with the members of each object in the order of their names.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
            Value::Object(members.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn say(door: &mut Door, text: &str) -> Vec<String> {
    shown(door.step(Input::Said(Bytes::copy_from_slice(text.as_bytes()))))
}

/// The error code for programs of the one answer, and its id.
fn refusal(said: &[String]) -> String {
    let [line] = said else { panic!("{said:?}") };
    let message: Value = serde_json::from_str(line).unwrap();
    format!("{} {} {}", message["id"], message["error"]["code"], message["error"]["data"]["code"].as_str().unwrap())
}

fn event(door: &mut Door, id: u64, kind: &'static str, data: Value, originator: Option<&str>) -> Vec<String> {
    let json = json!({ "id": id, "v": 1, "type": kind, "data": data, "originatorClientId": originator });
    let json = json.to_string().into();
    shown(door.step(Input::Event { session: "s".into(), id: Some(id), kind, json }))
}

fn chunk(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

fn greeted() -> Door {
    let mut door = Door::new("0", json!({ "image": false }));
    say(
        &mut door,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#,
    );
    door
}

/// A door whose editor is in the session `s`, which it has seen up to event 10.
fn seated() -> Door {
    let mut door = greeted();
    say(
        &mut door,
        r#"{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s","cwd":"/ws","mcpServers":[]}}"#,
    );
    let state = r#"{"modes":{"currentModeId":"default"},"models":null,"secret":1}"#.to_owned();
    let entrance = Entrance { session: "s".into(), client: "c".into(), state, shown: 10, ..Entrance::default() };
    let said = shown(door.step(Input::Opened { request: RequestId::from(1), outcome: Ok(entrance) }));
    let answer = r#"{"id":1,"result":{"_meta":{"turnd/clientId":"c"},"modes":{"currentModeId":"default"}}}"#;
    assert_eq!(said, [answer, "follow s"]);
    door
}

fn prompt(door: &mut Door, request: &str, prompt: &str) {
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{request},"method":"session/prompt","params":{{"sessionId":"s","prompt":[]}}}}"#
    );
    assert_eq!(say(door, &text), [r#"admit s {"prompt":[]}"#]);
    let outcome = Ok(Admitted::Open { prompt: prompt.into() });
    let request = RequestId::parse(request).unwrap();
    assert_eq!(door.step(Input::Admitted { request, session: "s".into(), outcome }), []);
}

#[test]
fn an_editor_is_greeted_as_by_an_agent() {
    let mut door = Door::new("1.2", json!({ "image": true }));
    let said = say(&mut door, r#"{"id":"a-1","method":"initialize","params":{"protocolVersion":99},"jsonrpc":"2.0"}"#);
    let welcome: Value = serde_json::from_str(&said[0]).unwrap();
    assert_eq!((&welcome["id"], &welcome["result"]["protocolVersion"]), (&json!("a-1"), &json!(1)));
    let capabilities = &welcome["result"]["agentCapabilities"];
    assert_eq!(
        (&capabilities["loadSession"], &capabilities["promptCapabilities"]),
        (&json!(true), &json!({ "image": true }))
    );
    assert_eq!(welcome["result"]["agentInfo"]["version"], "1.2");
    assert!(door.is_greeted());
}

#[test]
fn what_cannot_be_served_is_refused_under_its_own_id() {
    let mut fresh = Door::new("0", Value::Null);
    let early = say(&mut fresh, r#"{"jsonrpc":"2.0","id":4,"method":"session/new","params":{"cwd":"/ws"}}"#);
    assert_eq!(refusal(&early), "4 -32600 not_initialized");
    let cases = [
        ("{", "null -32700 invalid_json"),
        ("", "null -32700 invalid_json"),
        ("[]", "null -32600 invalid_request"),
        (r#"{"jsonrpc":"2.0"}"#, "null -32600 invalid_request"),
        (r#"{"id":[],"method":"x"}"#, "null -32600 invalid_request"),
        (r#"{"id":1.5,"method":"fs/nothing"}"#, "1.5 -32601 method_not_found"),
        (r#"{"id":"x","method":"session/new","params":{"cwd":"ws"}}"#, r#""x" -32602 invalid_cwd"#),
        (r#"{"id":2,"method":"session/new"}"#, "2 -32602 invalid_cwd"),
        (r#"{"id":2,"method":"session/load","params":{"cwd":"/ws"}}"#, "2 -32602 invalid_params"),
        (r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#, "2 -32002 session_not_found"),
        (r#"{"id":2,"method":"session/set_mode","params":{"sessionId":"s"}}"#, "2 -32002 session_not_found"),
        (r#"{"id":2,"method":"authenticate","params":{}}"#, "2 -32601 method_not_found"),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(&say(&mut greeted(), text)), expected, "{text}");
    }
    for text in
        [r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#, r#"{"method":"x/y"}"#, r#"{"id":9,"result":{}}"#]
    {
        assert_eq!(say(&mut greeted(), text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_session_is_opened_where_the_editor_says() {
    let ask = |text: &str| say(&mut greeted(), text);
    let new = r#"{"id":1,"method":"session/new","params":{"cwd":"/ws","mcpServers":[{"name":"m"}]}}"#;
    assert_eq!(ask(new), ["open New { id: None } in /ws"]);
    let chosen = r#"{"id":1,"method":"session/new","params":{"cwd":"/ws","_meta":{"qwen-code/sessionId":"x"}}}"#;
    assert_eq!(ask(chosen), [r#"open New { id: Some("x") } in /ws"#]);
    let upper =
        r#"{"id":1,"method":"session/load","params":{"sessionId":"AAAAAAAA-1111-4111-8111-111111111111","cwd":"/ws"}}"#;
    assert_eq!(ask(upper), [r#"open Load { id: "aaaaaaaa-1111-4111-8111-111111111111" } in /ws"#]);
    let resume = r#"{"id":1,"method":"session/resume","params":{"sessionId":"s","cwd":"/ws"}}"#;
    assert_eq!(ask(resume), [r#"open Resume { id: "s" } in /ws"#]);
}

#[test]
fn one_connection_opens_so_many_sessions_and_no_more() {
    let mut door = greeted();
    let new = r#"{"id":1,"method":"session/new","params":{"cwd":"/ws"}}"#;
    for _ in 0..DOOR_OPENINGS_MAX {
        assert_eq!(say(&mut door, new).len(), 1);
    }
    assert_eq!(refusal(&say(&mut door, new)), "1 -32603 connection_session_limit");
    let error = RpcError::new(-1, "no");
    door.step(Input::Opened { request: RequestId::from(1), outcome: Err(error) });
    assert_eq!(say(&mut door, new), ["open New { id: None } in /ws"]);
    let mut door = greeted();
    for number in 0..DOOR_SESSIONS_MAX {
        let entrance = Entrance { session: number.to_string(), ..Entrance::default() };
        door.step(Input::Opened { request: RequestId::from(1), outcome: Ok(entrance) });
    }
    assert_eq!(refusal(&say(&mut door, new)), "1 -32603 connection_session_limit");
}

#[test]
fn history_comes_before_the_answer_and_questions_behind_it() {
    let mut door = greeted();
    let question = Question { id: "q".into(), tool_call: r#"{"toolCallId":"t"}"#.into(), options: "[]".into() };
    let entrance = Entrance {
        session: "s".into(),
        fresh: true,
        client: "c".into(),
        state: "{}".into(),
        replay: vec![chunk("old").to_string()],
        cut: true,
        questions: vec![question],
        ..Entrance::default()
    };
    let said = shown(door.step(Input::Opened { request: RequestId::string("r"), outcome: Ok(entrance) }));
    assert!(said[0].contains("session/update") && said[0].contains("old"), "{said:?}");
    let answer =
        r#"{"id":"r","result":{"_meta":{"turnd/clientId":"c","turnd/historyTruncated":true},"sessionId":"s"}}"#;
    assert_eq!(said[1], answer);
    assert!(said[2].contains("session/request_permission") && said[2].contains(r#""toolCallId":"t""#), "{said:?}");
    assert_eq!(said[3], "follow s");
    // The event of the same question asks nobody twice.
    let data = json!({ "requestId": "q", "toolCall": {}, "options": [] });
    assert_eq!(event(&mut door, 11, "permission_request", data, None), Vec::<String>::new());
}

#[test]
fn an_update_is_passed_on_once_and_an_editors_own_prompt_not_at_all() {
    let mut door = seated();
    let update =
        |door: &mut Door, id, update: Value, by| event(door, id, "session_update", json!({ "update": update }), by);
    let expected = json!({ "method": "session/update", "params": { "sessionId": "s", "update": chunk("new") } });
    let expected = sorted(expected).to_string();
    assert_eq!(update(&mut door, 11, chunk("new"), Some("c")), [expected]);
    assert_eq!(update(&mut door, 10, chunk("old"), None), Vec::<String>::new());
    let echo = json!({ "sessionUpdate": "user_message_chunk", "content": {}, "_meta": { "source": "bridge-echo" } });
    assert_eq!(update(&mut door, 12, echo.clone(), Some("c")), Vec::<String>::new());
    assert_eq!(update(&mut door, 13, echo.clone(), Some("other")).len(), 1);
    assert_eq!(update(&mut door, 14, echo, None).len(), 1);
}

#[test]
fn a_prompt_is_answered_when_it_ends_and_only_then() {
    let mut door = seated();
    prompt(&mut door, "7", "p");
    prompt(&mut door, r#""again""#, "p");
    prompt(&mut door, "8", "q");
    let complete = |prompt: &str| json!({ "promptId": prompt, "stopReason": "max_tokens", "inputWritten": "yes", "branchPoint": { "b": 1 } });
    assert_eq!(event(&mut door, 11, "turn_complete", complete("other"), None), Vec::<String>::new());
    let meta = r#"{"qwen.branchPoint":{"b":1},"turnd/inputWritten":"yes","turnd/promptId":"p"}"#;
    let result = |id: &str| format!(r#"{{"id":{id},"result":{{"_meta":{meta},"stopReason":"max_tokens"}}}}"#);
    assert_eq!(event(&mut door, 12, "turn_complete", complete("p"), None), [result("7"), result(r#""again""#)]);
    assert_eq!(event(&mut door, 13, "turn_complete", complete("p"), None), Vec::<String>::new());
    let failed =
        json!({ "promptId": "q", "message": "bad", "code": "prompt_deadline_exceeded", "inputWritten": "yes" });
    let data = r#"{"code":"prompt_deadline_exceeded","inputWritten":"yes","promptId":"q"}"#;
    let error = format!(r#"{{"error":{{"code":-32603,"data":{data},"message":"bad"}},"id":8}}"#);
    assert_eq!(event(&mut door, 14, "turn_error", failed, None), [error]);
}

#[test]
fn a_prompt_that_was_sent_before_is_answered_with_what_became_of_it() {
    let over = |terminal| Admitted::Over { prompt: "p".into(), terminal };
    let meta = r#"{"turnd/promptId":"p"}"#;
    let cases = [
        (
            over(bridge::Terminal::Completed { stop_reason: "end_turn".into() }),
            format!(r#"{{"id":7,"result":{{"_meta":{meta},"stopReason":"end_turn"}}}}"#),
        ),
        (
            over(bridge::Terminal::Cancelled { agent_stop_reason: Some("end_turn".into()) }),
            format!(r#"{{"id":7,"result":{{"_meta":{meta},"stopReason":"cancelled"}}}}"#),
        ),
        (
            over(bridge::Terminal::Error { message: "m".into(), code: None }),
            r#"{"error":{"code":-32603,"data":{"promptId":"p"},"message":"m"},"id":7}"#.to_owned(),
        ),
        (
            Admitted::Lost { prompt: "p".into() },
            r#"{"error":{"code":-32603,"data":{"code":"outcome_unknown","promptId":"p"},"message":"the outcome of the prompt is not known"},"id":7}"#.to_owned(),
        ),
    ];
    for (admitted, expected) in cases {
        let input = Input::Admitted { request: RequestId::from(7), session: "s".into(), outcome: Ok(admitted) };
        assert_eq!(shown(seated().step(input)), [expected]);
    }
}

#[test]
fn a_session_that_ends_without_a_word_leaves_outcomes_unknown() {
    let mut door = seated();
    prompt(&mut door, "7", "p");
    let data = json!({ "requestId": "q", "toolCall": {}, "options": [] });
    event(&mut door, 11, "permission_request", data, None);
    let said = shown(door.step(Input::Ended { session: "s".into() }));
    assert_eq!(refusal(&said[..1]), "7 -32603 outcome_unknown");
    assert_eq!(said[1..], [r#"{"method":"$/cancel_request","params":{"requestId":1}}"#]);
    assert!(door.is_empty());
    assert_eq!(event(&mut door, 12, "session_update", json!({ "update": chunk("late") }), None), Vec::<String>::new());
    let admitted = Input::Admitted {
        request: RequestId::from(8),
        session: "s".into(),
        outcome: Ok(Admitted::Open { prompt: "late".into() }),
    };
    assert_eq!(refusal(&shown(door.step(admitted))), "8 -32603 outcome_unknown");
}

#[test]
fn an_answer_to_a_question_is_a_vote_and_an_error_is_none() {
    let cases = [
        (
            r#""result":{"outcome":{"outcome":"selected","optionId":"yes"}}"#,
            r#"vote s q Selected { option_id: "yes", answers: None }"#,
        ),
        (
            r#""result":{"outcome":{"outcome":"selected","optionId":"yes"},"answers":[1]}"#,
            r#"vote s q Selected { option_id: "yes", answers: Some("[1]") }"#,
        ),
        (r#""result":{"outcome":{"outcome":"cancelled"}}"#, "vote s q Cancelled"),
        (r#""result":{"outcome":{"outcome":"selected"}}"#, ""),
        (r#""result":null"#, ""),
        (r#""error":{"code":-32601,"message":"no"}"#, ""),
    ];
    for (answer, expected) in cases {
        let mut door = seated();
        let data = json!({ "requestId": "q", "toolCall": { "toolCallId": "t" }, "options": [{ "optionId": "yes" }] });
        let asked = event(&mut door, 11, "permission_request", data, None);
        assert_eq!(asked.len(), 1);
        let expected: Vec<_> = Some(expected).filter(|text| !text.is_empty()).into_iter().collect();
        // An editor that keeps numbers as floating-point ones answers so.
        assert_eq!(say(&mut door, &format!(r#"{{"jsonrpc":"2.0","id":1.0,{answer}}}"#)), expected, "{answer}");
        let again = r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}"#;
        assert_eq!(say(&mut door, again), Vec::<String>::new(), "a second answer is none");
    }
}

#[test]
fn a_question_that_is_decided_is_withdrawn_once() {
    let mut door = seated();
    let data = json!({ "requestId": "q", "toolCall": {}, "options": [] });
    event(&mut door, 11, "permission_request", data, None);
    let resolved = || json!({ "requestId": "q", "outcome": {} });
    let withdrawn = r#"{"method":"$/cancel_request","params":{"requestId":1}}"#;
    assert_eq!(event(&mut door, 12, "permission_resolved", resolved(), None), [withdrawn]);
    assert_eq!(event(&mut door, 13, "permission_resolved", resolved(), None), Vec::<String>::new());
}

#[test]
fn a_cancel_names_the_prompts_of_this_editor() {
    let mut door = seated();
    let cancel = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    assert_eq!(say(&mut door, cancel), ["cancel s []"]);
    prompt(&mut door, "7", "p");
    prompt(&mut door, r#""8""#, "q");
    assert_eq!(say(&mut door, cancel), [r#"cancel s ["p", "q"]"#]);
    let one = r#"{"method":"$/cancel_request","params":{"requestId":"8"}}"#;
    assert_eq!(say(&mut door, one), [r#"cancel s ["q"]"#]);
    let none = r#"{"method":"$/cancel_request","params":{"requestId":8}}"#;
    assert_eq!(say(&mut door, none), Vec::<String>::new());
}

#[test]
fn modes_and_models_are_passed_on_where_the_agent_offers_them() {
    let mut door = seated();
    let mode = r#"{"id":5,"method":"session/set_mode","params":{"sessionId":"s","modeId":"x"}}"#;
    assert_eq!(say(&mut door, mode), [r#"ask s session/set_mode {"sessionId":"s","modeId":"x"}"#]);
    for method in ["session/set_model", "session/set_config_option"] {
        let text = format!(r#"{{"id":5,"method":"{method}","params":{{"sessionId":"s"}}}}"#);
        assert_eq!(refusal(&say(&mut door, &text)), "5 -32601 method_not_found");
    }
    let outcome = Ok(r#"{"a":1}"#.to_owned());
    let said = shown(door.step(Input::Answered { request: RequestId::from(5), outcome }));
    assert_eq!(said, [r#"{"id":5,"result":{"a":1}}"#]);
}

#[test]
fn the_id_of_a_prompt_and_its_limits_stand_in_its_meta() {
    let body = |meta: &str| {
        let text =
            format!(r#"{{"id":5,"method":"session/prompt","params":{{"sessionId":"s","prompt":[1],"_meta":{meta}}}}}"#);
        let said = say(&mut seated(), &text);
        serde_json::from_str::<Value>(said[0].strip_prefix("admit s ").unwrap()).unwrap()
    };
    assert_eq!(body("null"), json!({ "prompt": [1] }));
    let invocation = r#"{"qwen-code/invocation":{"promptId":"theirs"}}"#;
    assert_eq!(body(invocation)["promptId"], "theirs");
    let both = r#"{"qwen-code/invocation":{"promptId":"theirs"},"turnd/promptId":"ours","turnd/deadlineMs":5,"turnd/runDeadlineMs":6}"#;
    let body = body(both);
    assert_eq!(
        (&body["promptId"], &body["deadlineMs"], &body["runDeadlineMs"]),
        (&json!("ours"), &json!(5), &json!(6))
    );
}

#[test]
fn an_editor_that_lost_events_is_hung_up_on() {
    for kind in ["client_evicted", "state_resync_required"] {
        assert_eq!(event(&mut seated(), 11, kind, json!({}), None), ["hang up TooSlow"]);
    }
    for kind in ["replay_complete", "slow_client_warning", "session_closed", "pending_prompt_added"] {
        assert_eq!(event(&mut seated(), 11, kind, json!({}), None), Vec::<String>::new(), "{kind}");
    }
}

/// Any of the things that an editor and its session may do, in any order.
fn happening() -> impl Strategy<Value = (u8, u8, u8)> {
    (0_u8..12, 0_u8..3, 0_u8..3)
}

fn input((what, prompt, request): (u8, u8, u8)) -> Input {
    let said = |text: String| Input::Said(text.into());
    let event = |kind, data: Value| {
        let json = json!({ "data": data, "originatorClientId": "c" }).to_string().into();
        Input::Event { session: "s".into(), id: Some(20), kind, json }
    };
    let prompt = format!("p{prompt}");
    match what {
        0 => said(format!(r#"{{"id":{request},"method":"session/cancel"}}"#)),
        1 => said(r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#.into()),
        2 => said(format!(r#"{{"id":{request},"result":{{"outcome":{{"outcome":"cancelled"}}}}}}"#)),
        3 => said(format!(r#"{{"method":"$/cancel_request","params":{{"requestId":{request}}}}}"#)),
        4 => event("turn_complete", json!({ "promptId": prompt, "stopReason": "end_turn" })),
        5 => event("turn_error", json!({ "promptId": prompt })),
        6 => event("permission_request", json!({ "requestId": prompt, "toolCall": {}, "options": [] })),
        7 => event("permission_resolved", json!({ "requestId": prompt })),
        8 => event("session_update", json!({ "update": {} })),
        9 => Input::Ended { session: "s".into() },
        10 => event("turn_complete", json!("nothing")),
        _ => said("{\"half".into()),
    }
}

proptest! {
    #[test]
    fn every_prompt_is_answered_once_at_most_and_once_when_its_session_is_over(
        happenings in proptest::collection::vec(happening(), 0..40),
    ) {
        let mut door = seated();
        let mut answers: HashMap<u64, usize> = HashMap::new();
        // One request for each prompt, so that each answer is told apart.
        let admitted = (0_u64..3).map(|number| Input::Admitted {
            request: RequestId::from(100 + number),
            session: "s".into(),
            outcome: Ok(Admitted::Open { prompt: format!("p{number}") }),
        });
        let over = std::iter::once(Input::Ended { session: "s".into() });
        for input in admitted.chain(happenings.into_iter().map(input)).chain(over) {
            for effect in door.step(input) {
                let Effect::Say(line) = effect else { continue };
                let message: Value = serde_json::from_slice(&line).unwrap();
                if let Some(id) = message["id"].as_u64().filter(|id| *id >= 100 && message.get("method").is_none()) {
                    *answers.entry(id).or_default() += 1;
                }
            }
        }
        prop_assert!((100..103).all(|id| answers.get(&id) == Some(&1)), "{answers:?}");
        prop_assert!(door.is_empty());
    }
}
