//! What the agent says, as far as a rule needs to know it. The raw text goes on as it is.

use acp::{Message, RequestId, RpcError, raw_at, string_at};

use crate::InputWritten;
use crate::event::Exit;
use crate::outcome::{Answer, HostWord};

/// An update of the session by the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Update {
    /// The update: raw JSON object text.
    pub(crate) raw: String,
    /// What it means to a turn.
    pub(crate) speech: Speech,
    /// What it means to clients that join later.
    pub(crate) state: Option<StateKind>,
}

/// An update as part of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    /// Text meant for the user, of the top level.
    Text(String),
    /// A tool call begins.
    ToolCall { call_id: String },
    /// A tool call goes on or (`over`) ends.
    ToolCallUpdate { call_id: String, over: bool },
    /// Anything else: thoughts, plans, what a tool's own agent says.
    Other,
}

/// Updates that are state: sent once, and needed by those who come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateKind {
    AvailableCommands,
    CurrentMode,
    ConfigOptions,
    Info,
    Usage,
}

/// A request for permission by the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The agent's id for it, which the answer repeats byte for byte.
    pub(crate) agent_request: RequestId,
    /// Raw JSON object text.
    pub(crate) tool_call: String,
    /// Raw JSON array text.
    pub(crate) options: String,
    /// The ids offered: as text, and as the raw JSON that the answer repeats.
    pub(crate) option_ids: Vec<(String, String)>,
}

/// The parameters of `session/update`. `None` when there is no update in them.
pub(crate) fn update(params: &str) -> Option<Update> {
    let raw = raw_at(params, &["update"]).filter(|raw| raw.starts_with('{'))?;
    let kind = string_at(raw, &["sessionUpdate"]).unwrap_or_default();
    let state = match kind.as_str() {
        "available_commands_update" => Some(StateKind::AvailableCommands),
        "current_mode_update" => Some(StateKind::CurrentMode),
        "config_option_update" => Some(StateKind::ConfigOptions),
        "session_info_update" => Some(StateKind::Info),
        "usage_update" => Some(StateKind::Usage),
        _ => None,
    };
    let raw = if state == Some(StateKind::AvailableCommands) { without_skill_texts(raw) } else { raw.to_owned() };
    Some(Update { speech: speech(&kind, &raw), raw, state })
}

fn speech(kind: &str, update: &str) -> Speech {
    // What an agent started by a tool says belongs to that tool's output. Two agents say so, each in its own way.
    let parents = [&["_meta", "parentToolCallId"][..], &["_meta", "claudeCode", "parentToolUseId"]];
    if parents.iter().any(|path| raw_at(update, path).is_some_and(|raw| raw != "null")) {
        return Speech::Other;
    }
    let call_id = || string_at(update, &["toolCallId"]).unwrap_or_default();
    match kind {
        "agent_message_chunk" => match string_at(update, &["content", "text"]) {
            Some(text) if string_at(update, &["content", "type"]).as_deref() == Some("text") => Speech::Text(text),
            _ => Speech::Other,
        },
        "tool_call" => Speech::ToolCall { call_id: call_id() },
        "tool_call_update" => {
            let status = string_at(update, &["status"]);
            let over = matches!(status.as_deref(), Some("completed" | "failed"));
            Speech::ToolCallUpdate { call_id: call_id(), over }
        }
        _ => Speech::Other,
    }
}

/// One agent sends the full texts of its skills with its commands, half a megabyte for each session; no client reads them.
fn without_skill_texts(update: &str) -> String {
    const TEXTS: &str = "availableSkillDetails";
    match raw_at(update, &["_meta"]).filter(|meta| raw_at(meta, &[TEXTS]).is_some()) {
        Some(meta) => acp::with_member(update, "_meta", &crate::json::without(meta, TEXTS)),
        None => update.to_owned(),
    }
}

/// The parameters of `session/request_permission`. `None` when nothing is offered.
pub(crate) fn ask(agent_request: &RequestId, params: &str) -> Option<Ask> {
    let options = raw_at(params, &["options"])?;
    let offered: Vec<&serde_json::value::RawValue> = serde_json::from_str(options).ok()?;
    let option_ids = offered.iter().filter_map(|option| {
        let raw = raw_at(option.get(), &["optionId"])?;
        Some((acp::decode_string(raw)?, raw.to_owned()))
    });
    Some(Ask {
        agent_request: agent_request.clone(),
        tool_call: raw_at(params, &["toolCall"]).unwrap_or("{}").to_owned(),
        options: options.to_owned(),
        option_ids: option_ids.collect(),
    })
}

/// The answer to a prompt. Whatever the agent answers ends the turn, however odd it is.
pub(crate) fn answer(message: &Message) -> Answer {
    if let Some(error) = message.rpc_error() {
        return failure(&error);
    }
    let result = message.result().unwrap_or("null");
    let stamp = |key| string_at(result, &["_meta", "turnd/turn", key]);
    let host = match stamp("state").as_deref() {
        Some("completed") => Some(HostWord::Completed),
        Some("cancelled") => Some(HostWord::Cancelled),
        _ => None,
    };
    Answer::Settled {
        stop_reason: string_at(result, &["stopReason"]),
        host,
        agent_stop_reason: stamp("agentStopReason"),
        branch_point: raw_at(result, &["_meta", "qwen.branchPoint"])
            .filter(|point| point.starts_with('{'))
            .map(str::to_owned),
    }
}

fn failure(error: &RpcError) -> Answer {
    let data = |key| error.data.as_deref().and_then(|data| string_at(data, &[key]));
    let host_code = data("turnd/code");
    let input_written = match data("turnd/inputWritten").as_deref() {
        Some("no") => Some(InputWritten::No),
        Some("yes") => Some(InputWritten::Yes),
        Some("maybe") => Some(InputWritten::Maybe),
        _ => None,
    };
    Answer::Failed {
        message: error.details().unwrap_or_else(|| error.message.clone()),
        from_host: host_code.is_some(),
        code: host_code.unwrap_or_else(|| error.code.to_string()),
        input_written,
    }
}

/// The parameters of the host's `turnd/agent_exited`.
pub(crate) fn exit(params: &str) -> Exit {
    let number = |key| raw_at(params, &[key]).and_then(|raw| raw.parse().ok());
    Exit { code: number("exitCode"), signal: number("signal") }
}
