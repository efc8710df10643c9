//! The daemon as the demo's actor: a child process that is started, found by its first line, and killed.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::DemoError;

/// A running `turnd serve`.
pub(super) struct Daemon {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Daemon {
    /// Starts a daemon on a free port and waits for the line that names it.
    pub(super) async fn start(store: &Path, workspace: &Path) -> Result<Self, DemoError> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args(["serve", "--port", "0", "--log-level", "error", "--store"])
            .arg(store)
            .arg("--workspace")
            .arg(workspace)
            .env_remove("TURND_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = child.stdout.take().ok_or(DemoError::NoAddress)?;
        let mut lines = BufReader::new(stdout).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(address) = line.split("http://").nth(1).and_then(|rest| rest.trim().parse().ok()) {
                return Ok(Self { child, address });
            }
        }
        Err(DemoError::NoAddress)
    }

    /// The process id, while the process runs.
    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Signal 9: no handler runs, nothing is flushed, nobody is told.
    pub(super) async fn kill(mut self) -> Result<(), DemoError> {
        Ok(self.child.kill().await?)
    }
}
