//! The script that asks, runs a command, and tells.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use acp::schema::{SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind};
use acp::with_member;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::{Arguments, Script};
use crate::ending::{Cancelled, Ending, Outcome};
use crate::limits::TOOL_OUTPUT_BYTES_MAX;
use crate::permission::Decision;
use crate::turn::Turn;

pub(super) const TOOL: Script = Script {
    name: "tool",
    arguments: Arguments::Text,
    example: "tool echo hi",
    what: "asks permission to run a shell command, and runs it if allowed",
    act: |turn, command| Box::pin(tool(turn, command)),
};

async fn tool(turn: &mut Turn, command: &str) -> Outcome {
    let id = turn.call_id();
    announce(turn, &id, command).await;
    let result = ask_and_run(turn, &id, command).await;
    if result.is_err() {
        report(turn, &id, ToolCallStatus::Failed, "cancelled").await;
    }
    turn.say(&result?).await;
    Ok(Ending::END_TURN)
}

/// Shows the call before anything is asked. The protocol's own type leaves out the status "pending",
/// as that is the default; most agents write it.
async fn announce(turn: &Turn, id: &str, command: &str) {
    let call = ToolCall::new(id.to_owned(), command).kind(ToolKind::Execute).raw_input(json!({"command": command}));
    let update = json!(SessionUpdate::ToolCall(call)).to_string();
    turn.raw_update(&with_member(&update, "status", "\"pending\"")).await;
}

/// What to say about the call once it is over.
async fn ask_and_run(turn: &mut Turn, id: &str, command: &str) -> Result<String, Cancelled> {
    let fields = ToolCallUpdateFields::new()
        .title(command)
        .kind(ToolKind::Execute)
        .status(ToolCallStatus::Pending)
        .raw_input(json!({"command": command}));
    if turn.permit(ToolCallUpdate::new(id.to_owned(), fields)).await? == Decision::Reject {
        report(turn, id, ToolCallStatus::Failed, "permission denied").await;
        return Ok("I was not allowed to run it.".to_owned());
    }
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
    turn.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))).await;
    let cwd = turn.cwd();
    let (verdict, output) = match turn.unless_cancelled(execute(command, &cwd)).await? {
        Ok(Execution { status, output }) if status.success() => (Ok(status), output),
        Ok(Execution { status, output }) => (Err(status.to_string()), output),
        Err(error) => (Err(error.to_string()), String::new()),
    };
    Ok(match verdict {
        Ok(_) => {
            report(turn, id, ToolCallStatus::Completed, &output).await;
            "It ran.".to_owned()
        }
        Err(reason) => {
            report(turn, id, ToolCallStatus::Failed, &format!("{output}{reason}")).await;
            format!("It failed: {reason}.")
        }
    })
}

async fn report(turn: &Turn, id: &str, status: ToolCallStatus, output: &str) {
    let fields =
        ToolCallUpdateFields::new().status(status).content(vec![output.into()]).raw_output(json!({"output": output}));
    turn.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))).await;
}

struct Execution {
    status: ExitStatus,
    /// Both streams, standard error last, within a limit each.
    output: String,
}

/// Runs a command to its end. Dropped before that, it takes the shell with it. The command gets no
/// input: ours belongs to the protocol.
async fn execute(command: &str, cwd: &Path) -> std::io::Result<Execution> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr, status) = tokio::join!(beginning_of(stdout), beginning_of(stderr), child.wait());
    Ok(Execution { status: status?, output: stdout + &stderr })
}

/// The beginning of a stream, which is read to its end all the same so that its writer can go on.
async fn beginning_of(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else { return String::new() };
    let mut kept = Vec::new();
    // A stream that breaks has ended; what came before counts.
    let _ = (&mut stream).take(TOOL_OUTPUT_BYTES_MAX).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
