//! `POST /session/:id/shell` (wire rules, section 13.4): a command of a user, run by the session's host in the workspace. It is no
//! prompt: it has no id, waits for nothing, and leaves nothing open.

use bridge::{Announcement, AskError, Session};
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::aside::Aside;
use crate::body;
use crate::dispatch::Call;
use crate::limits::{ASIDE_MS, SHELL_HISTORY_CHARS_MAX, SHELL_MS};
use crate::options::Mode;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};
use crate::shells::Running;
use crate::tasks::spawn;

const SHELL: Aside = Aside::new("shell_not_supported", "turnd/shell");
/// How a native agent hears of it.
const HISTORY: &str = "qwen/control/session/shell_history";

/// How a command ended, as the host says it.
struct Ended {
    exit_code: Option<i64>,
    signal: Option<i64>,
    output: String,
    is_cut: bool,
    aborted: bool,
}

pub(crate) async fn run(call: &Call<'_>) -> Result<Reply, Refusal> {
    if !call.workspace.options.session_shell {
        return Err(forbidden("session_shell_disabled", "Direct session shell needs --enable-session-shell"));
    }
    let (session, client) = call.open_session_and_client()?;
    let missing = || Err(forbidden("client_id_required", "Direct session shell requires a session-bound client id"));
    let Some(client) = client else { return missing() };
    let command = body::text(&call.fields, "command").ok().flatten().filter(|command| !command.trim().is_empty());
    let empty = || Refusal::bad_request("invalid_command", "`command` is required and must be a non-empty string");
    let command = command.ok_or_else(empty)?;
    let running = call.workspace.shells.begin(session.id()).ok_or_else(|| busy(session.id()))?;
    let native = call.workspace.options.mode == Mode::Native;
    // A caller that leaves does not end it: its output is for all readers, and for the next one.
    let done = spawn(execute(session, client.to_owned(), command, native, running)).await;
    let ended = done.map_err(|_| Refusal::internal())??;
    let mut answer = json!({ "exitCode": ended.exit_code, "output": ended.output, "aborted": ended.aborted });
    if ended.is_cut {
        answer["outputTruncated"] = true.into();
    }
    Ok(ok(&answer))
}

fn forbidden(code: &'static str, message: &'static str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, code, message).with("errorKind", code)
}

fn busy(session: &str) -> Refusal {
    Refusal::conflict("shell_in_progress", "The session runs another command").with("sessionId", session).retry_later()
}

/// Runs the command and tells the readers of its beginning, its output and its end.
async fn execute(
    session: Session,
    client: String,
    command: String,
    native: bool,
    _running: Running,
) -> Result<Ended, Refusal> {
    let cwd = session.workspace_cwd().to_owned();
    session.announce(Announcement::ShellCommand { command: command.clone(), cwd }, Some(&client));
    let params = json!({ "command": command, "originatorClientId": client }).to_string();
    let ended = match session.ask("turnd/shell", &params, SHELL_MS).await {
        Ok(result) => ended(&serde_json::from_str(&result).unwrap_or_default()),
        Err(error) => {
            let aborted = Announcement::ShellResult { exit_code: None, signal: None, aborted: true };
            session.announce(aborted, Some(&client));
            return Err(refused(&session, error));
        }
    };
    let output = Announcement::ShellOutput { output: ended.output.clone(), is_cut: ended.is_cut };
    session.announce(output, Some(&client));
    let Ended { exit_code, signal, aborted, .. } = ended;
    session.announce(Announcement::ShellResult { exit_code, signal, aborted }, Some(&client));
    // Words put into the history of an agent at work would stand between its call and what that gave.
    if native && !session.status().has_active_prompt {
        tell_agent(&session, &command, &ended).await;
    }
    Ok(ended)
}

fn ended(result: &Value) -> Ended {
    Ended {
        exit_code: result["exitCode"].as_i64(),
        signal: result["signal"].as_i64(),
        output: result["output"].as_str().unwrap_or_default().to_owned(),
        is_cut: result["outputTruncated"].as_bool().unwrap_or(false),
        aborted: result["aborted"].as_bool().unwrap_or(false),
    }
}

fn refused(session: &Session, error: AskError) -> Refusal {
    let code = match &error {
        AskError::Refused(error) => error.data.as_deref().and_then(|data| serde_json::from_str::<Value>(data).ok()),
        AskError::Gone | AskError::Timeout { .. } => None,
    };
    match code.as_ref().and_then(|data| data["turnd/code"].as_str()) {
        Some("shell_in_progress") => busy(session.id()),
        Some("shell_unstartable") => {
            let message = "The command cannot be started";
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "shell_unstartable", message)
                .with("sessionId", session.id())
        }
        _ => SHELL.refusal(session.id(), error),
    }
}

/// A native agent takes it into its memory of the conversation, if it can; it keeps no record of it.
async fn tell_agent(session: &Session, command: &str, ended: &Ended) {
    let output: String = ended.output.chars().take(SHELL_HISTORY_CHARS_MAX).collect();
    let params = json!({ "command": command, "output": output, "exitCode": ended.exit_code });
    if let Err(error) = session.ask(HISTORY, &params.to_string(), ASIDE_MS).await {
        tracing::debug!(session = session.id(), %error, "the agent does not hear of a command");
    }
}
