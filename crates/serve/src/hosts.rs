//! Starting the host of a session: the process that records it and guards its agent.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::Command;
use transcript::Owner;

use crate::options::{Durability, Mode};
use crate::tasks::spawn;

/// The environment variables that hold a daemon's token, ours and the peer's, which no agent may see.
const TOKEN_VARIABLES: [&str; 2] = ["TURND_TOKEN", "QWEN_SERVER_TOKEN"];

/// What a host is started with.
#[derive(Debug, Clone)]
pub struct HostOrder {
    /// The session it is for.
    pub session_id: String,
    /// Who writes the transcript.
    pub mode: Mode,
    /// The transcript.
    pub transcript: PathBuf,
    /// The agent's working folder.
    pub workspace: PathBuf,
    /// How long it goes on without us, in milliseconds.
    pub linger_ms: u64,
    /// How long its agent may leave a part of a prompt unread, in milliseconds.
    pub agent_input_ms: u64,
    /// How long it waits for the session's lock, in milliseconds.
    pub lock_wait_ms: u64,
    /// How far its appends must have come before they count.
    pub durability: Durability,
    /// The agent's program and arguments.
    pub agent: Vec<String>,
}

/// The two ends of a connection with a host.
pub struct HostStreams {
    /// What the host says.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What it hears.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl std::fmt::Debug for HostStreams {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HostStreams")
    }
}

/// A host could not be started.
#[derive(Debug, Clone, Error)]
#[error("cannot start the session's host: {cause}")]
pub struct StartError {
    /// What the system said.
    pub cause: String,
}

/// Where hosts come from. The daemon starts processes; tests hand in the other end themselves.
pub trait HostStarter: Send + Sync + 'static {
    /// Starts a host.
    ///
    /// # Errors
    /// When there is none to talk to.
    fn start(&self, order: &HostOrder) -> Result<HostStreams, StartError>;

    /// Ends the host that lingers over the session of a transcript, if the session's lock proves that its owner is one, and waits for its
    /// end within bounds. What came of it shows in the lock.
    fn dismiss(&self, _transcript: &Path, _owner: &Owner) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }

    /// Has the host that lingers over the session of a transcript cancel its turn, if the session's lock proves that its owner is one.
    fn interrupt(&self, _transcript: &Path, _owner: &Owner) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// Starts `<launcher> host …` as a process of its own group, which outlives us.
#[derive(Debug, Clone)]
pub struct ProcessStarter {
    /// The turnd binary.
    pub launcher: PathBuf,
}

impl HostStarter for ProcessStarter {
    fn start(&self, order: &HostOrder) -> Result<HostStreams, StartError> {
        let failed = |cause: std::io::Error| StartError { cause: format!("{}: {cause}", self.launcher.display()) };
        let mut child = self.command(order).spawn().map_err(failed)?;
        let (Some(writer), Some(reader)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StartError { cause: "the host has no pipes".to_owned() });
        };
        let (session, sweep) = (order.session_id.clone(), self.sweep(order));
        spawn(async move {
            match child.wait().await {
                Ok(status) if status.success() => tracing::debug!(session, %status, "host ended"),
                Ok(status) => {
                    tracing::warn!(session, %status, "host was ended from outside; what it left behind is ended too");
                    clear_away(&session, sweep).await;
                }
                Err(error) => tracing::warn!(session, %error, "host cannot be waited for"),
            }
        });
        Ok(HostStreams { reader: Box::new(reader), writer: Box::new(writer) })
    }

    fn dismiss(&self, transcript: &Path, owner: &Owner) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.tell("--dismiss", transcript, owner)
    }

    fn interrupt(&self, transcript: &Path, owner: &Owner) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.tell("--interrupt", transcript, owner)
    }
}

impl ProcessStarter {
    fn command(&self, order: &HostOrder) -> Command {
        let mut command = self.bare();
        command.args(arguments(order)).stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Has another host tell the one that lingers over a session something. Only hosts touch processes.
    fn tell(&self, what: &str, transcript: &Path, owner: &Owner) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        // This goes on when we do not, and by then another host may have the session: it is told whom we mean.
        let owner = serde_json::to_string(owner).unwrap_or_default();
        let mut command = self.bare();
        command.args(["host", what, &owner, "--transcript"]).arg(transcript);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Box::pin(async move {
            match command.status().await {
                Ok(status) if status.success() => {}
                Ok(status) => {
                    tracing::warn!(%status, "a session's lock is held by what is no host of ours, or does not end")
                }
                Err(error) => tracing::warn!(%error, "a lingering host cannot be told anything"),
            }
        })
    }

    /// A host that ends what another one of the same session left behind, and then itself. Only hosts touch processes.
    fn sweep(&self, order: &HostOrder) -> Command {
        let mut command = self.bare();
        command.args(["host", "--sweep", "--transcript"]).arg(&order.transcript);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn bare(&self) -> Command {
        let mut command = Command::new(&self.launcher);
        command.kill_on_drop(false).process_group(0).stderr(Stdio::inherit());
        for variable in TOKEN_VARIABLES {
            command.env_remove(variable);
        }
        command
    }
}

async fn clear_away(session: &str, mut sweep: Command) {
    match sweep.status().await {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!(session, %status, "what a host left behind could not be ended"),
        Err(error) => tracing::warn!(session, %error, "what a host left behind cannot be ended"),
    }
}

/// The host's command line, the program itself left out.
fn arguments(order: &HostOrder) -> Vec<std::ffi::OsString> {
    let (linger, wait) = (order.linger_ms.to_string(), order.lock_wait_ms.to_string());
    let input = order.agent_input_ms.to_string();
    let mut line: Vec<std::ffi::OsString> =
        ["host", "--session", &order.session_id, "--mode", order.mode.as_str()].into_iter().map(Into::into).collect();
    line.extend(["--transcript".into(), order.transcript.clone().into()]);
    line.extend(["--workspace".into(), order.workspace.clone().into()]);
    line.extend(["--linger-ms", &linger, "--lock-wait-ms", &wait, "--agent-input-timeout-ms", &input].map(Into::into));
    line.extend(["--durability", order.durability.as_str(), "--"].map(Into::into));
    line.extend(order.agent.iter().map(Into::into));
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn order() -> HostOrder {
        HostOrder {
            session_id: "s".into(),
            mode: Mode::Recorded,
            transcript: "/t/s.jsonl".into(),
            workspace: "/ws".into(),
            linger_ms: 5,
            agent_input_ms: 7,
            lock_wait_ms: 6,
            durability: Durability::Fsync,
            agent: vec!["agent".into(), "--flag".into()],
        }
    }

    #[test]
    fn the_agents_arguments_stand_behind_the_double_dash() {
        let line: Vec<_> = arguments(&order()).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let expected = "host --session s --mode recorded --transcript /t/s.jsonl --workspace /ws --linger-ms 5 --lock-wait-ms 6 \
                        --agent-input-timeout-ms 7 --durability fsync -- agent --flag";
        assert_eq!(line.join(" "), expected);
    }

    #[test]
    fn no_agent_sees_a_token() {
        let command = ProcessStarter { launcher: "turnd".into() }.command(&order());
        let removed: Vec<_> =
            command.as_std().get_envs().filter(|(_, value)| value.is_none()).map(|(key, _)| key).collect();
        assert_eq!(removed, ["QWEN_SERVER_TOKEN", "TURND_TOKEN"]);
    }

    #[tokio::test]
    async fn a_host_talks_through_its_pipes() {
        let starter = ProcessStarter { launcher: "/bin/echo".into() };
        let mut streams = starter.start(&order()).unwrap();
        let mut said = String::new();
        streams.reader.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("host --session s"), "{said}");
    }

    /// Starts a host that says its command line and ends with this status, and gives all command lines that were said.
    async fn lines_of_a_host_that_ends_with(status: u8, count: usize) -> Vec<String> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (launcher, log) = (folder.path().join("turnd"), folder.path().join("log"));
        assert!(std::process::Command::new("mkfifo").arg(&log).status().unwrap().success());
        let script = format!("#!/bin/sh\necho \"$*\" > '{}'\nexit {status}\n", log.display());
        std::fs::write(&launcher, script).unwrap();
        std::fs::set_permissions(&launcher, std::fs::Permissions::from_mode(0o700)).unwrap();
        // Kept open for both, so that a reader does not see an end between two writers.
        let pipe = tokio::net::unix::pipe::OpenOptions::new().read_write(true).open_receiver(&log).unwrap();
        let mut said = tokio::io::BufReader::new(pipe);
        let _streams = ProcessStarter { launcher }.start(&order()).unwrap();
        let mut lines = Vec::new();
        for _ in 0..count {
            let mut line = String::new();
            tokio::io::AsyncBufReadExt::read_line(&mut said, &mut line).await.unwrap();
            lines.push(line.trim_end().to_owned());
        }
        lines
    }

    #[tokio::test]
    async fn behind_a_host_that_did_not_end_in_order_another_clears_away() {
        let lines = lines_of_a_host_that_ends_with(3, 2).await;
        assert!(lines[0].starts_with("host --session s"), "{lines:?}");
        assert_eq!(lines[1], "host --sweep --transcript /t/s.jsonl");
    }

    #[tokio::test]
    async fn a_missing_launcher_is_named() {
        let starter = ProcessStarter { launcher: "/nonexistent/turnd".into() };
        assert!(starter.start(&order()).unwrap_err().cause.contains("/nonexistent/turnd"));
    }
}
