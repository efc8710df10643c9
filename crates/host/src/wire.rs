//! The wire between daemon, host and agent: the names, and the messages the host reads into or writes itself.
//!
//! Everything else passes through as it came.

mod ours;
mod witnessed;

use acp::{Message, RequestId, RpcError, compose};
use bytes::Bytes;
use serde_json::{Value, json};
use transcript::Rewind;

use crate::command::Ended;
use crate::exit::Exit;
use crate::recording::Recording;
use crate::turn::Prompt;

pub(crate) use ours::without_our_words;
pub(crate) use witnessed::{
    message_id, opened_by, prompt_written, strayed, unreadable, with_process, with_reach, witnessed,
};

pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const SESSION_NEW: &str = "session/new";
pub(crate) const SESSION_LOAD: &str = "session/load";
pub(crate) const SESSION_RESUME: &str = "session/resume";
pub(crate) const SESSION_PROMPT: &str = "session/prompt";
pub(crate) const SET_MODE: &str = "session/set_mode";
/// The same of an agent that keeps its own transcript.
pub(crate) const NATIVE_MODE: &str = "qwen/control/session/approval_mode";
pub(crate) const SET_MODEL: &str = "session/set_model";
pub(crate) const SET_OPTION: &str = "session/set_config_option";
pub(crate) const SESSION_CANCEL: &str = "session/cancel";
pub(crate) const SESSION_UPDATE: &str = "session/update";
pub(crate) const REQUEST_PERMISSION: &str = "session/request_permission";
/// What every method begins with that daemon and host have between them.
pub(crate) const OURS: &str = "turnd/";
/// From the daemon: end the agent now.
pub(crate) const CLOSE: &str = "turnd/close";
/// From the daemon: the agent does not stop; put another process in its place.
pub(crate) const REPLACE_AGENT: &str = "turnd/replace_agent";
/// From the daemon: take the end of the conversation back, on disk and in the agent.
pub(crate) const REWIND: &str = "turnd/rewind";
/// To an agent that says it can: make another session out of this one, without a prompt and all behind it.
pub(crate) const FORK_BEFORE: &str = "turnd/session/fork_before";
pub(crate) const SESSION_CLOSE: &str = "session/close";
/// From the daemon: put this on record about the session.
pub(crate) const RECORD: &str = "turnd/record";
/// To the daemon: the agent has ended by itself.
pub(crate) const AGENT_EXITED: &str = "turnd/agent_exited";
/// To the daemon: the disk refuses records of the transcript, or takes them again.
pub(crate) const RECORDING_DEGRADED: &str = "turnd/recording_degraded";
/// From the agent: what was said into its turn?
pub(crate) const DRAIN: &str = "craft/drainMidTurnQueue";
/// From the daemon: run a command of a user in the workspace.
pub(crate) const RUN_COMMAND: &str = "turnd/shell";

/// Where the prompt's identity travels.
const INVOCATION_META: &str = "qwen-code/invocation";
const AFTER_META: &str = "turnd/afterMs";
const CAPABILITY_META: &str = "qwen-code/private-parent-capability";
/// Where the host says how a turn ended.
const TURN_META: &str = "turnd/turn";
/// Where the host says what the agent remembers.
const MEMORY_META: &str = "turnd/memory";
/// Whether the agent was given the prompt that an error is about; `yes` where it does not say.
const INPUT_WRITTEN: &str = "turnd/inputWritten";
/// JSON-RPC code of every error that the host is the author of; the stable code is in its data.
const HOST_ERROR: i64 = -32000;

/// The stable codes of the errors that a host is the author of.
pub mod code {
    /// The agent cannot be started, or ended before it answered.
    pub const AGENT_UNAVAILABLE: &str = "agent_unavailable";
    /// Another process has the session.
    pub const SESSION_WRITER_CONFLICT: &str = "session_writer_conflict";
    /// The transcript cannot be written, so the prompt was not handed to the agent.
    pub const TRANSCRIPT_UNWRITABLE: &str = "transcript_unwritable";
    /// The agent ended with the request open.
    pub const CHANNEL_CLOSED: &str = "channel_closed";
    /// The daemon was gone, and the turn did not settle in time.
    pub const LINGER_EXPIRED: &str = "linger_expired";
    /// Somebody ended the host itself.
    pub const HOST_TERMINATED: &str = "host_terminated";
    /// The agent's answer is longer than a line may be.
    pub const FRAME_TOO_LONG: &str = "frame_too_long";
    /// The agent wrote something that may have been its answer and cannot be read.
    pub const UNREADABLE_ANSWER: &str = "unreadable_answer";
    /// The agent answered a prompt with something that is no answer.
    pub const INVALID_ANSWER: &str = "invalid_answer";
    /// The agent still works on another prompt of the session.
    pub const TURN_IN_PROGRESS: &str = "turn_in_progress";
    /// The prompt names no id or another session, so that its turn could not be recorded.
    pub const INVALID_PROMPT: &str = "invalid_prompt";
    /// The agent was ended under the request, because it did not stop when it was told to; another is in its place.
    pub const AGENT_REPLACED: &str = "agent_replaced";
    /// The agent is not replaced, since another process of it could not bring the session back. It goes on.
    pub const AGENT_CANNOT_RESTORE: &str = "agent_cannot_restore";
    /// The session is not rewound, since its agent cannot be made to forget just what is taken back. Nothing has changed.
    pub const REWIND_NOT_SUPPORTED: &str = "rewind_not_supported";
    /// The session is not rewound, since its transcript is not the one that the daemon had looked at. Nothing has changed.
    pub const TRANSCRIPT_CHANGED: &str = "session_transcript_changed";
    /// A command of a user runs already.
    pub const COMMAND_IN_PROGRESS: &str = "shell_in_progress";
    /// A command of a user cannot be started.
    pub const COMMAND_UNSTARTABLE: &str = "shell_unstartable";
    /// The agent's session could not be set again to the approval mode of before, and no prompt is handed on until one is set.
    pub const APPROVAL_MODE_NOT_RESTORED: &str = "approval_mode_not_restored";
    /// What the daemon wants on record is not for this host to write.
    pub const NOT_RECORDED: &str = "not_recorded";
    /// The agent is not replaced, since it has stopped meanwhile.
    pub const TURN_SETTLED: &str = "turn_settled";
}

/// What an agent remembers of a session that was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    Resumed,
    Loaded,
    /// What it remembered before, without what was taken back.
    Cut,
    Fresh,
}

/// What the host decided about a turn, for the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stamp {
    Completed,
    Cancelled { agent_stop_reason: Option<String> },
}

/// What an agent can do to get its memory back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) resume: bool,
    pub(crate) load: bool,
    pub(crate) close: bool,
    /// It can make a session out of another one up to a prompt.
    pub(crate) fork_before: bool,
    /// Whether a prompt may bring context with it.
    pub(crate) embedded_context: bool,
}

impl Capabilities {
    /// Reads the result of `initialize`. An empty object advertises; null and false do not.
    pub(crate) fn read(result: &str) -> Self {
        let advertised = |path: &[&str]| acp::raw_at(result, path).is_some_and(|raw| !matches!(raw, "null" | "false"));
        Self {
            resume: advertised(&["agentCapabilities", "sessionCapabilities", "resume"]),
            load: advertised(&["agentCapabilities", "loadSession"]),
            close: advertised(&["agentCapabilities", "sessionCapabilities", "close"]),
            fork_before: advertised(&["agentCapabilities", "_meta", "turnd/forkBefore"]),
            embedded_context: advertised(&["agentCapabilities", "promptCapabilities", "embeddedContext"]),
        }
    }
}

/// An error of the host's own.
pub(crate) fn refusal(stable_code: &str, message: &str, details: &str) -> RpcError {
    let data = json!({ "turnd/code": stable_code, "details": details });
    RpcError::new(HOST_ERROR, message).with_data(&data)
}

/// An error of the host's own where the agent was certainly given no prompt, so that one can be sent again without harm.
pub(crate) fn refusal_unwritten(stable_code: &str, message: &str, details: &str) -> RpcError {
    let data = json!({ "turnd/code": stable_code, "details": details, INPUT_WRITTEN: "no" });
    RpcError::new(HOST_ERROR, message).with_data(&data)
}

/// The error for a session that another process has.
pub(crate) fn writer_conflict(details: &str, owner: Option<&transcript::Owner>) -> RpcError {
    let mut data = json!({ "turnd/code": code::SESSION_WRITER_CONFLICT, "details": details, INPUT_WRITTEN: "no" });
    if let Some(owner) = owner {
        data["pid"] = owner.pid.into();
        data["startedAt"] = owner.started_at.into();
    }
    RpcError::new(HOST_ERROR, "another process has this session").with_data(&data)
}

/// The error for a request that was open when the agent ended.
pub(crate) fn agent_gone(stable_code: &str, message: &str, exit: &Exit) -> RpcError {
    let data = json!({
        "turnd/code": stable_code,
        "details": exit.details(),
        "exitCode": exit.code,
        "signal": exit.signal,
        "stderrTail": exit.stderr_tail,
        "stdoutTail": exit.stdout_tail,
    });
    RpcError::new(HOST_ERROR, message).with_data(&data)
}

/// The notification that the agent has ended by itself.
pub(crate) fn agent_exited(exit: &Exit) -> Bytes {
    let mut params = json!({});
    if let Some(code) = exit.code {
        params["exitCode"] = code.into();
    }
    if let Some(signal) = exit.signal {
        params["signal"] = signal.into();
    }
    if !exit.stderr_tail.is_empty() {
        params["stderrTail"] = exit.stderr_tail.as_str().into();
    }
    compose::notification(AGENT_EXITED, &params)
}

/// The notification of how the recording goes. Nothing is held when the disk takes records again.
pub(crate) fn recording(recording: Recording) -> Bytes {
    let Recording { held_records, held_bytes, given_up } = recording;
    let params = json!({ "heldRecords": held_records, "heldBytes": held_bytes, "givenUp": given_up });
    compose::notification(RECORDING_DEGRADED, &params)
}

/// What an error answer of the agent says: the code and the message that its turn ends with.
pub(crate) fn code_and_message(error: &RpcError) -> (String, String) {
    let stable = error.data.as_deref().and_then(|data| acp::string_at(data, &["turnd/code"]));
    let message = error.details().unwrap_or_else(|| error.message.clone());
    (stable.unwrap_or_else(|| error.code.to_string()), message)
}

/// The parameters of the daemon's `initialize` with the capability that the agent was started with. Without it qwen-code takes the
/// prompt ids of a parent for anybody's word, stamps nothing and records no turn's result.
pub(crate) fn introduction_trusted(params: &str, capability: &str) -> String {
    acp::with_meta(params, CAPABILITY_META, &capability.into())
}

/// The prompt that a `session/prompt` carries. None without an id or without content.
pub(crate) fn prompt(message: &Message) -> Option<Prompt> {
    let params = message.params()?;
    let invocation = acp::raw_at(params, &["_meta", INVOCATION_META])?;
    Some(Prompt {
        id: acp::string_at(invocation, &["promptId"]).filter(|id| !id.is_empty())?,
        raw_blocks: acp::raw_at(params, &["prompt"])?.to_owned(),
        originator: acp::string_at(invocation, &["originatorClientId"]),
        after_ms: acp::raw_at(params, &["_meta", AFTER_META]).and_then(|raw| raw.trim().parse().ok()).unwrap_or(0),
    })
}

/// The answer to a prompt: the agent's own result with the host's stamp.
pub(crate) fn stamped(id: &RequestId, result: &str, stamp: &Stamp) -> Bytes {
    compose::response_raw(id, &acp::with_meta(result, TURN_META, &stamp.to_value()))
}

/// The answer to a prompt that was cancelled, whatever the agent made of it.
pub(crate) fn cancelled(id: &RequestId, stamp: &Stamp) -> Bytes {
    stamped(id, r#"{"stopReason":"cancelled"}"#, stamp)
}

impl Stamp {
    fn to_value(&self) -> Value {
        match self {
            Self::Completed => json!({ "state": "completed" }),
            Self::Cancelled { agent_stop_reason: None } => json!({ "state": "cancelled" }),
            Self::Cancelled { agent_stop_reason: Some(reason) } => {
                json!({ "state": "cancelled", "agentStopReason": reason })
            }
        }
    }
}

/// The stop reason of a prompt's result.
pub(crate) fn stop_reason(result: &str) -> Option<String> {
    acp::string_at(result, &["stopReason"]).filter(|reason| !reason.is_empty())
}

/// The session id of a result or of parameters.
pub(crate) fn session_id(raw: &str) -> Option<String> {
    acp::string_at(raw, &["sessionId"]).filter(|id| !id.is_empty())
}

/// The model a session starts with, when the agent tells it.
pub(crate) fn model(result: &str) -> Option<String> {
    acp::string_at(result, &["models", "currentModelId"]).or_else(|| model_among_options(result))
}

/// The model that is set, where a list of options says it.
pub(crate) fn model_among_options(raw: &str) -> Option<String> {
    let options = acp::lenient_value(acp::raw_at(raw, &["configOptions"])?)?;
    let option = options.as_array()?.iter().find(|option| option["category"] == "model")?;
    option["currentValue"].as_str().map(str::to_owned)
}

/// The update in which an agent lists its options anew.
pub(crate) fn options_update(params: &str) -> Option<&str> {
    let update = acp::raw_at(params, &["update"])?;
    (acp::string_at(update, &["sessionUpdate"])? == "config_option_update").then_some(update)
}

/// What an agent calls its session.
pub(crate) fn title_update(params: &str) -> Option<String> {
    let update = acp::raw_at(params, &["update"])?;
    let is_title = acp::string_at(update, &["sessionUpdate"])? == "session_info_update";
    acp::string_at(update, &["title"]).filter(|title| is_title && !title.trim().is_empty())
}

/// The subtype and the payload of a record about the session.
pub(crate) fn about(params: &str) -> Option<(String, Value)> {
    let payload = acp::lenient_value(acp::raw_at(params, &["payload"])?)?;
    Some((acp::string_at(params, &["subtype"])?, payload)).filter(|(_, payload)| payload.is_object())
}

/// The working directory that the parameters of a session name.
pub(crate) fn cwd(params: &str) -> String {
    acp::string_at(params, &["cwd"]).unwrap_or_default()
}

/// The parameters that resume or load the agent's own session: the daemon's, with the session id exchanged.
pub(crate) fn restore_params(params: &str, agent_session: &str) -> String {
    acp::with_member(params, "sessionId", &json!(agent_session).to_string())
}

/// The parameters that start a new session in the place of one that cannot be restored: nothing but where and what with,
/// so that no agent takes it for the old one.
pub(crate) fn fresh_params(params: &str) -> String {
    let cwd = acp::raw_at(params, &["cwd"]).unwrap_or("\"\"");
    let servers = acp::raw_at(params, &["mcpServers"]).unwrap_or("[]");
    format!(r#"{{"cwd":{cwd},"mcpServers":{servers}}}"#)
}

/// The parameters that make another session out of the agent's, up to the prompt.
pub(crate) fn fork_before_params(params: &str, agent_session: &str, prompt_id: &str) -> String {
    let params = acp::with_member(&fresh_params(params), "sessionId", &json!(agent_session).to_string());
    acp::with_member(&params, "promptId", &json!(prompt_id).to_string())
}

/// The parameters of a session's end.
pub(crate) fn close_params(agent_session: &str) -> String {
    json!({ "sessionId": agent_session }).to_string()
}

/// What the daemon found out about the place that a session is taken back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewindTarget {
    /// The prompt that is the first to go, if it has an id.
    pub(crate) prompt_id: Option<String>,
    /// How many prompts stay.
    pub(crate) kept: u64,
    /// What is to be written, and at which time, in epoch milliseconds.
    pub(crate) rewind: Rewind,
    pub(crate) at_ms: u64,
    /// Whether the caller takes an agent that remembers nothing at all.
    pub(crate) fresh_will_do: bool,
}

/// Reads the parameters of a rewind. None when they do not say where to.
pub(crate) fn rewind_target(params: &str) -> Option<RewindTarget> {
    let params: Value = serde_json::from_str(params).ok()?;
    let text = |key: &str| params[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(RewindTarget {
        prompt_id: text("promptId"),
        kept: params["kept"].as_u64()?,
        rewind: Rewind {
            leaf: text("leaf"),
            before: text("before"),
            truncated_count: params["truncatedCount"].as_u64()?,
        },
        at_ms: params["atMs"].as_u64()?,
        fresh_will_do: params["memory"] == "fresh",
    })
}

/// The answer to `session/load`: the agent's result with the agent's session id and what it remembers.
pub(crate) fn restored(id: &RequestId, result: &str, agent_session: &str, memory: Memory) -> Bytes {
    let memory = match memory {
        Memory::Resumed => "resumed",
        Memory::Loaded => "loaded",
        Memory::Cut => "cut",
        Memory::Fresh => "fresh",
    };
    let named = acp::with_member(result, "sessionId", &json!(agent_session).to_string());
    compose::response_raw(id, &acp::with_meta(&named, MEMORY_META, &json!(memory)))
}

/// How a command ended, as the daemon is told.
pub(crate) fn command_result(ended: &Ended) -> Value {
    let mut result = json!({
        "exitCode": ended.exit_code,
        "signal": ended.signal,
        "output": ended.output,
        "aborted": ended.is_aborted,
    });
    if ended.is_cut {
        result["outputTruncated"] = true.into();
    }
    result
}

/// The answer to a permission request that nobody can answer any more.
pub(crate) fn permission_cancelled(id: &RequestId) -> Bytes {
    compose::response_raw(id, r#"{"outcome":{"outcome":"cancelled"}}"#)
}

/// The cancel of what runs in a session of the agent.
pub(crate) fn cancel(agent_session: &str) -> Bytes {
    compose::notification(SESSION_CANCEL, &serde_json::json!({ "sessionId": agent_session }))
}

/// The answer to any other request that nobody can answer.
pub(crate) fn not_served(id: &RequestId, message: &str) -> Bytes {
    compose::error_response(id, &RpcError::new(acp::rpc_error::METHOD_NOT_FOUND, message))
}

/// Why the daemon closes a session: the code and the message that a turn under way ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// What the daemon says as it closes a session. Its words are taken, so that one failure has one description.
pub(crate) fn closing(message: &Message) -> Closing {
    let said = |key| message.params().and_then(|params| acp::string_at(params, &[key])).filter(|text| !text.is_empty());
    Closing {
        reason: said("reason").unwrap_or_else(|| "session_closed".to_owned()),
        message: said("message").unwrap_or_else(|| "the session was ended before the turn settled".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_advertised_by_anything_but_null_and_false() {
        let check = |capabilities: &str, resume, load| {
            let result = format!(r#"{{"agentCapabilities":{capabilities}}}"#);
            assert_eq!(
                Capabilities::read(&result),
                Capabilities { resume, load, ..Capabilities::default() },
                "{capabilities}"
            );
        };
        check("{}", false, false);
        check(r#"{"loadSession":true}"#, false, true);
        check(r#"{"loadSession":false,"sessionCapabilities":{"resume":{}}}"#, true, false);
        check(r#"{"loadSession":null,"sessionCapabilities":{"resume":null}}"#, false, false);
    }

    #[test]
    fn a_stamp_leaves_the_agents_result_alone() {
        let line = stamped(&1.into(), r#"{"usage":{"n":1},"stopReason":"end_turn"}"#, &Stamp::Completed);
        let message = Message::parse(line).unwrap();
        let result = message.result().unwrap();
        assert_eq!(acp::raw_at(result, &["usage"]), Some(r#"{"n":1}"#));
        assert_eq!(stop_reason(result).as_deref(), Some("end_turn"));
        assert_eq!(acp::string_at(result, &["_meta", TURN_META, "state"]).as_deref(), Some("completed"));
    }

    #[test]
    fn a_restored_session_is_named_even_by_an_agent_that_answers_null() {
        let message = Message::parse(restored(&1.into(), "null", "ses_1", Memory::Loaded)).unwrap();
        assert_eq!(message.session_id().as_deref(), Some("ses_1"));
        assert_eq!(acp::string_at(message.result().unwrap(), &["_meta", MEMORY_META]).as_deref(), Some("loaded"));
    }

    #[test]
    fn an_errors_own_stable_code_goes_before_its_number() {
        let error = RpcError::new(-32603, "Internal error").with_data(&json!({ "details": "bad request" }));
        assert_eq!(code_and_message(&error), ("-32603".to_owned(), "bad request".to_owned()));
        let error = refusal(code::CHANNEL_CLOSED, "gone", "the agent exited");
        assert_eq!(code_and_message(&error), ("channel_closed".to_owned(), "the agent exited".to_owned()));
    }
}
