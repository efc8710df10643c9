//! What daemon and host say of prompts whose sender keeps a record of them, and of the process that gets them.

use acp::{Message, RequestId, RpcError, compose};
use bytes::Bytes;
use serde_json::json;

use super::{INPUT_WRITTEN, INVOCATION_META};
use crate::incarnation::Incarnation;
use crate::outgoing::Reach;

/// To the daemon: the whole line of a witnessed prompt is in the agent's input.
const PROMPT_WRITTEN: &str = "turnd/prompt_written";
const STRAYED: &str = "turnd/strayed";
const UNREADABLE: &str = "turnd/unreadable";
/// In a prompt: say when it is written, and in an error how much of it was.
const WITNESSED_META: &str = "turnd/witnessed";
/// Where the host says which process the agent is.
const PROCESS_META: &str = "turnd/process";

/// The id of a prompt that is witnessed.
pub(crate) fn witnessed(message: &Message) -> Option<String> {
    let params = message.params()?;
    acp::raw_at(params, &["_meta", WITNESSED_META]).filter(|raw| *raw == "true")?;
    acp::string_at(params, &["_meta", INVOCATION_META, "promptId"]).filter(|id| !id.is_empty())
}

/// The message that an update is a piece of, if the agent gives it an id.
pub(crate) fn message_id(params: &str) -> Option<String> {
    acp::string_at(params, &["update", "messageId"])
}

/// The notification that all of it is in the agent's input.
pub(crate) fn prompt_written(prompt_id: &str) -> Bytes {
    compose::notification(PROMPT_WRITTEN, &json!({ "promptId": prompt_id }))
}

/// The agent has said words outside of its turns that the daemon is not shown.
pub(crate) fn strayed() -> Bytes {
    compose::notification_raw(STRAYED, "{}")
}

/// The agent has written something that cannot be read, or not exactly, and may have been words of an answer.
pub(crate) fn unreadable() -> Bytes {
    compose::notification_raw(UNREADABLE, "{}")
}

/// The same error with how much of the prompt the agent has.
pub(crate) fn with_reach(mut error: RpcError, reach: Reach) -> RpcError {
    let word = match reach {
        Reach::Nothing => "no",
        Reach::Text => "maybe",
        Reach::Whole => "yes",
    };
    let data = error.data.as_deref().unwrap_or("{}");
    error.data = Some(acp::with_member(data, INPUT_WRITTEN, &json!(word).to_string()));
    error
}

/// The answer that opens a session, with the process that has it.
pub(crate) fn opened_by(id: &RequestId, result: &str, process: &Incarnation) -> Bytes {
    compose::response_raw(id, &with_process(result, process))
}

/// The same result with the process.
pub(crate) fn with_process(result: &str, process: &Incarnation) -> String {
    let Incarnation { pid, start_ticks, boot_id } = process;
    let process = json!({ "pid": pid, "startTicks": start_ticks, "bootId": boot_id });
    acp::with_meta(result, PROCESS_META, &process)
}
