//! A command that a user runs in the workspace while the session lives.
//!
//! It is recorded as two notes, its beginning and its end, which are no part of the conversation: nobody was asked anything, so that
//! nothing is left open by it and it proves nothing of any prompt. An agent that takes context hears of it in front of the next
//! prompt, marked as what it is; the prompt's own record stays what the user wrote.

use std::collections::VecDeque;

use acp::{Message, RequestId, RpcError, compose, rpc_error};
use bytes::Bytes;
use serde_json::{Value, json};
use transcript::Body;

use super::{Effect, Machine};
use crate::command::Ended;
use crate::limits::HEARD_BYTES_MAX;
use crate::options::Mode;
use crate::wire::{self, code};

/// The command that runs.
#[derive(Debug)]
pub(super) struct Command {
    /// The daemon's request.
    request: RequestId,
    text: String,
}

/// What was run since the agent was last told.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Oldest first.
    texts: VecDeque<String>,
    bytes: usize,
    /// How many commands there have been.
    commands: u64,
}

impl Machine {
    /// Runs a command, if none runs.
    pub(super) fn run_command(&mut self, id: &RequestId, message: &Message) {
        let params = message.params().unwrap_or("{}");
        let Some(text) = acp::string_at(params, &["command"]).filter(|text| !text.is_empty()) else {
            return self.refuse(id, &RpcError::new(rpc_error::INVALID_PARAMS, "there is no command"));
        };
        if self.command.is_some() {
            let details = "one command of a session runs at a time";
            return self.refuse(id, &wire::refusal(code::COMMAND_IN_PROGRESS, "a command is in progress", details));
        }
        let mut payload = json!({ "command": text });
        if let Some(client) = acp::string_at(params, &["originatorClientId"]) {
            payload["originatorClientId"] = client.into();
        }
        self.note_command(transcript::USER_SHELL_COMMAND, payload);
        self.command = Some(Command { request: id.clone(), text: text.clone() });
        self.effects.push(Effect::RunCommand(text));
    }

    /// It has ended, or never began.
    pub(super) fn command_ended(&mut self, result: Result<Ended, String>) {
        let Some(Command { request, text }) = self.command.take() else { return };
        let ended = match result {
            Ok(ended) => ended,
            Err(cause) => {
                self.note_command(transcript::USER_SHELL_RESULT, json!({ "command": text, "error": cause }));
                let message = "the command cannot be started";
                return self.refuse(&request, &wire::refusal(code::COMMAND_UNSTARTABLE, message, &cause));
            }
        };
        let result = wire::command_result(&ended);
        let mut payload = result.clone();
        payload["command"] = text.as_str().into();
        self.note_command(transcript::USER_SHELL_RESULT, payload);
        self.heard.add(&text, &ended);
        self.tell_daemon(compose::response(&request, &result));
    }

    /// Whatever runs is ended before the tree is, so that its end is told and noted.
    pub(super) fn stop_command(&mut self) {
        if self.command.is_some() {
            self.effects.push(Effect::StopCommand);
        }
    }

    fn note_command(&mut self, subtype: &str, payload: Value) {
        if self.mode == Mode::Recorded {
            self.append(vec![Body::System { subtype: subtype.to_owned(), payload }]);
        }
    }

    /// The line that hands a prompt on, behind what was run since the last one. To an agent that takes no context it is the
    /// daemon's own.
    pub(super) fn with_context(&self, id: &RequestId, message: &Message) -> Bytes {
        let context = self.heard.block().filter(|_| self.capabilities.embedded_context);
        let prompt = message.params().and_then(|params| Some((params, acp::raw_at(params, &["prompt"])?)));
        let (Some(context), Some((params, blocks))) = (context, prompt) else { return super::line_of(message) };
        let Some(rest) = blocks.trim_start().strip_prefix('[') else { return super::line_of(message) };
        let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
        let params = acp::with_member(params, "prompt", &format!("[{context}{comma}{rest}"));
        compose::request_raw(id, wire::SESSION_PROMPT, &params)
    }

    /// The agent has been told.
    pub(super) fn forget_heard(&mut self) {
        self.heard = Heard { commands: self.heard.commands, ..Heard::default() };
    }
}

impl Heard {
    /// Keeps what was run, the newest within the bound.
    fn add(&mut self, command: &str, ended: &Ended) {
        self.commands += 1;
        let how = match (ended.is_aborted, ended.exit_code, ended.signal) {
            (true, ..) => "It was ended before it was done.".to_owned(),
            (false, Some(code), _) => format!("It ended with exit code {code}."),
            (false, None, Some(signal)) => format!("It was ended by signal {signal}."),
            (false, None, None) => "How it ended is not known.".to_owned(),
        };
        let cut = if ended.is_cut { "\n(The rest of its output is left out.)" } else { "" };
        let text = format!("$ {command}\n{}{cut}\n{how}\n", ended.output);
        self.bytes += text.len();
        self.texts.push_back(text);
        while self.bytes > HEARD_BYTES_MAX {
            let Some(oldest) = self.texts.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// It as a content block: the raw text of a JSON object.
    fn block(&self) -> Option<String> {
        if self.texts.is_empty() {
            return None;
        }
        let texts: String = self.texts.iter().map(String::as_str).collect();
        let text = format!(
            "The user ran this in the workspace since the last prompt. It is for your information; nothing is asked here.\n\n{texts}"
        );
        let uri = format!("turnd://user-shell/{}", self.commands);
        Some(json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": text}}).to_string())
    }
}
