//! What the agent is told, as messages of the protocol. With `wire.rs` the only place that writes names on the wire.

use acp::rpc_error::METHOD_NOT_FOUND;
use acp::{RpcError, compose};
use bytes::Bytes;
use serde_json::json;

use crate::FlushOrigin;
use crate::background::{CATEGORIES, HEARTBEAT_MS};
use crate::json::{Object, array, quoted};
use crate::permission::Ruling;
use crate::session::steering::Said;

/// `initialize`, saying that this client lends the agent no files and no terminal, and wants to be told of work in the background.
pub(crate) fn initialize(id: u64) -> Bytes {
    let heartbeat = json!({"v": 1, "intervalMs": HEARTBEAT_MS, "categories": CATEGORIES});
    let params = json!({
        "protocolVersion": 1,
        "_meta": {"qwen.daemon.activeWorkHeartbeat": heartbeat},
        "clientInfo": {"name": "turnd", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
    });
    compose::request(id, "initialize", &params)
}

/// `session/new`, with our id for the host and for agents that take it.
pub(crate) fn new_session(id: u64, session_id: &str, cwd: &str) -> Bytes {
    let params = json!({"cwd": cwd, "mcpServers": [], "_meta": {"qwen-code/sessionId": session_id}});
    compose::request(id, "session/new", &params)
}

/// `session/load`, on which the host gives the agent its memory back.
pub(crate) fn load_session(id: u64, session_id: &str, cwd: &str) -> Bytes {
    compose::request(id, "session/load", &json!({"sessionId": session_id, "cwd": cwd, "mcpServers": []}))
}

/// The host's `turnd/replace_agent`: end the agent, which does not stop, and give the session to another process of it. What the
/// session needs for that is said as a load says it.
pub(crate) fn replace_agent(id: u64, session_id: &str, cwd: &str, prompt_id: &str) -> Bytes {
    let params = json!({"sessionId": session_id, "cwd": cwd, "mcpServers": [], "promptId": prompt_id});
    compose::request(id, "turnd/replace_agent", &params)
}

/// A prompt for the agent.
pub(crate) struct Dispatch<'a> {
    /// Our id of the session.
    pub(crate) session_id: &'a str,
    /// The agent's id of it.
    pub(crate) agent_session_id: &'a str,
    pub(crate) prompt_id: &'a str,
    /// Raw JSON array text.
    pub(crate) content: &'a str,
    /// Further members: raw JSON object text. Those that are ours are replaced.
    pub(crate) extra: Option<&'a str>,
    pub(crate) originator: Option<&'a str>,
    /// The time on record of this dispatch, epoch milliseconds: the host dates what it writes for the turn later than that.
    pub(crate) after_ms: u64,
    /// The host is to say when the agent has all of it.
    pub(crate) witnessed: bool,
}

/// Whether the host is to say when the agent has the whole prompt.
const WITNESSED: &str = "turnd/witnessed";

/// `session/prompt`, naming the prompt so that the host can stamp what it records.
pub(crate) fn prompt(id: u64, dispatch: &Dispatch<'_>) -> Bytes {
    let mut invocation = json!({"version": 1, "sessionId": dispatch.session_id, "promptId": dispatch.prompt_id});
    // One agent refuses a prompt over a blank name.
    if let Some(originator) = dispatch.originator.filter(|originator| !originator.trim().is_empty()) {
        invocation["originatorClientId"] = originator.into();
    }
    let params = acp::with_meta(dispatch.extra.unwrap_or("{}"), "qwen-code/invocation", &invocation);
    let params = acp::with_meta(&params, "turnd/afterMs", &dispatch.after_ms.into());
    let params = match (dispatch.witnessed, acp::raw_at(&params, &["_meta", WITNESSED])) {
        (false, None) => params,
        (witnessed, _) => acp::with_meta(&params, WITNESSED, &witnessed.into()),
    };
    let params = acp::with_member(&params, "prompt", dispatch.content);
    let params = acp::with_member(&params, "sessionId", &quoted(dispatch.agent_session_id));
    compose::request_raw(id, "session/prompt", &params)
}

/// `session/cancel`.
pub(crate) fn cancel(agent_session_id: &str) -> Bytes {
    compose::notification("session/cancel", &json!({"sessionId": agent_session_id}))
}

/// The host's `turnd/close`: end the agent, record what did not settle, exit.
pub(crate) fn close(origin: FlushOrigin) -> Bytes {
    // With our words for it, so that the transcript describes the failure as the event does.
    compose::notification("turnd/close", &json!({"reason": origin.code(), "message": origin.message()}))
}

/// The answer to a permission request.
pub(crate) fn ruling(ruling: &Ruling) -> Bytes {
    let outcome = match &ruling.option {
        Some(option) => Object::new().text("outcome", "selected").raw("optionId", option),
        None => Object::new().text("outcome", "cancelled"),
    };
    let result = Object::new().raw("outcome", &outcome.finish()).maybe_raw("answers", ruling.answers.as_deref());
    compose::response_raw(&ruling.agent_request, &result.finish())
}

/// The answer to the request for what was said into the turn.
pub(crate) fn drained(agent_request: &acp::RequestId, said: &[Said], queued: bool) -> Bytes {
    let item = |said: &Said| {
        Object::new().text("messageId", &said.id).text("displayText", &said.text).raw("content", &said.content).finish()
    };
    let result = Object::new()
        .raw("messages", &array(said.iter().map(|said| quoted(&said.text))))
        .raw("items", &array(said.iter().map(item)))
        .flag("hasQueuedPrompt", queued);
    compose::response_raw(agent_request, &result.finish())
}

/// The answer to a request that nobody here serves.
pub(crate) fn unsupported(agent_request: &acp::RequestId, method: &str) -> Bytes {
    compose::error_response(agent_request, &RpcError::new(METHOD_NOT_FOUND, format!("method not found: {method}")))
}

#[cfg(test)]
mod tests {
    use acp::RequestId;

    use super::*;

    fn text(line: &Bytes) -> &str {
        std::str::from_utf8(line).unwrap()
    }

    fn dispatch<'a>(content: &'a str, extra: Option<&'a str>) -> Dispatch<'a> {
        Dispatch {
            session_id: "s",
            agent_session_id: "a",
            prompt_id: "p",
            content,
            extra,
            originator: Some("c"),
            after_ms: 7,
            witnessed: false,
        }
    }

    /// The method and the parameters of a request or notification, and its id.
    fn check(line: &Bytes, method: &str, id: Option<u64>, params: &serde_json::Value) {
        let message: serde_json::Value = serde_json::from_slice(line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        assert_eq!(message["method"], method);
        assert_eq!(message.get("id").and_then(serde_json::Value::as_u64), id);
        assert_eq!(message["params"], *params);
    }

    #[test]
    fn the_agent_is_lent_neither_files_nor_a_terminal() {
        let categories = ["agent", "notification", "shell", "session", "workflow"];
        let params = json!({
            "protocolVersion": 1,
            "_meta": {"qwen.daemon.activeWorkHeartbeat": {"v": 1, "intervalMs": 15_000, "categories": categories}},
            "clientInfo": {"name": "turnd", "version": env!("CARGO_PKG_VERSION")},
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        });
        check(&initialize(0), "initialize", Some(0), &params);
    }

    #[test]
    fn a_session_is_asked_for_by_our_id() {
        let new = json!({"cwd": "/ws", "mcpServers": [], "_meta": {"qwen-code/sessionId": "s"}});
        check(&new_session(1, "s", "/ws"), "session/new", Some(1), &new);
        let load = json!({"sessionId": "s", "cwd": "/ws", "mcpServers": []});
        check(&load_session(1, "s", "/ws"), "session/load", Some(1), &load);
        let replace = json!({"sessionId": "s", "cwd": "/ws", "mcpServers": [], "promptId": "p"});
        check(&replace_agent(1, "s", "/ws", "p"), "turnd/replace_agent", Some(1), &replace);
    }

    #[test]
    fn a_cancel_and_a_close_want_no_answer() {
        check(&cancel("a"), "session/cancel", None, &json!({"sessionId": "a"}));
        check(
            &close(FlushOrigin::DaemonShutdown),
            "turnd/close",
            None,
            &json!({"reason": "daemon_shutdown", "message": "daemon shut down before the prompt completed"}),
        );
    }

    #[test]
    fn a_prompt_of_nobody_names_nobody() {
        for originator in [None, Some(""), Some(" ")] {
            let line = prompt(7, &Dispatch { originator, ..dispatch("[]", None) });
            let message: serde_json::Value = serde_json::from_slice(&line).unwrap();
            let invocation = &message["params"]["_meta"]["qwen-code/invocation"];
            assert_eq!(*invocation, json!({"version": 1, "sessionId": "s", "promptId": "p"}), "{originator:?}");
        }
    }

    #[test]
    fn a_prompt_names_itself_to_the_host() {
        let line = prompt(7, &dispatch(r#"[{"type":"text","text":"\ud83d"}]"#, None));
        let params = acp::Message::parse(line.clone()).unwrap().params().unwrap().to_owned();
        assert_eq!(acp::raw_at(&params, &["prompt"]), Some(r#"[{"type":"text","text":"\ud83d"}]"#));
        assert_eq!(acp::string_at(&params, &["sessionId"]).as_deref(), Some("a"));
        let invocation = acp::raw_at(&params, &["_meta", "qwen-code/invocation"]).unwrap();
        let expected = json!({"version":1,"sessionId":"s","promptId":"p","originatorClientId":"c"});
        assert_eq!(serde_json::from_str::<serde_json::Value>(invocation).unwrap(), expected);
    }

    #[test]
    fn only_a_witnessed_prompt_asks_the_host_to_say_that_it_is_written() {
        let told = |witnessed, extra| {
            let line = prompt(7, &Dispatch { witnessed, ..dispatch("[]", extra) });
            let params = acp::Message::parse(line).unwrap().params().unwrap().to_owned();
            acp::raw_at(&params, &["_meta", "turnd/witnessed"]).map(str::to_owned)
        };
        assert_eq!((told(true, None).as_deref(), told(false, None)), (Some("true"), None));
        let posing = Some(r#"{"_meta":{"turnd/witnessed":true}}"#);
        assert_eq!(told(false, posing).as_deref(), Some("false"));
    }

    #[test]
    fn further_members_go_along_but_cannot_pose_as_ours() {
        let extra =
            r#"{"sessionId":"x","prompt":[],"mode":"m","_meta":{"qwen-code/invocation":{"promptId":"x"},"k":1}}"#;
        let line = prompt(7, &dispatch("[1]", Some(extra)));
        let params = acp::Message::parse(line).unwrap().params().unwrap().to_owned();
        assert_eq!(acp::string_at(&params, &["sessionId"]).as_deref(), Some("a"));
        assert_eq!(acp::raw_at(&params, &["prompt"]), Some("[1]"));
        assert_eq!(acp::string_at(&params, &["mode"]).as_deref(), Some("m"));
        assert_eq!(acp::raw_at(&params, &["_meta", "k"]), Some("1"));
        assert_eq!(acp::string_at(&params, &["_meta", "qwen-code/invocation", "promptId"]).as_deref(), Some("p"));
    }

    #[test]
    fn a_prompt_spread_over_lines_is_one_message() {
        let line = prompt(7, &dispatch("[\n 1,\r\n 2]", None));
        assert_eq!(text(&line).matches('\n').count(), 1);
        assert!(text(&line).ends_with('\n'));
    }

    #[test]
    fn a_ruling_repeats_the_agents_id_and_option_byte_for_byte() {
        let agent_request = RequestId::parse(r#""a\u0062""#).unwrap();
        let option = Some(r#""y\u0065s""#.to_owned());
        let line = ruling(&Ruling { agent_request, option, answers: Some("[1]".into()) });
        let expected = r#""result":{"outcome":{"outcome":"selected","optionId":"y\u0065s"},"answers":[1]}"#;
        assert!(text(&line).contains(expected), "{}", text(&line));
        assert!(text(&line).contains(r#""id":"a\u0062""#));
    }

    #[test]
    fn a_refused_permission_is_cancelled_and_an_unknown_method_not_found() {
        let line = ruling(&Ruling::cancelled(RequestId::from(0)));
        assert!(text(&line).contains(r#""result":{"outcome":{"outcome":"cancelled"}}"#));
        assert!(text(&unsupported(&RequestId::from(0), "craft/drain")).contains("-32601"));
    }
}
