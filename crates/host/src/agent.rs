//! The agent as the shell holds it: three pipes, and what is known of its end.

use rustix::process::{Pid, WaitStatus};
use tokio::net::unix::pipe;

use crate::exit::Exit;
use crate::incoming::Incoming;
use crate::launch;
use crate::outgoing::Outgoing;
use crate::tail::{LogLines, Tail};

/// The agent's process and its pipes. A host that could not start one holds an empty one.
#[derive(Debug)]
pub(crate) struct Agent {
    /// None once it was reaped: then the number belongs to nobody, or to somebody else.
    pub(crate) pid: Option<Pid>,
    pub(crate) input: Outgoing<pipe::Sender>,
    pub(crate) output: Incoming<pipe::Receiver>,
    pub(crate) errors: Incoming<pipe::Receiver>,
    errors_tail: Tail,
    errors_log: LogLines,
    /// The end of its output while it has not answered yet, when it may be anything.
    output_tail: Tail,
    status: Option<WaitStatus>,
}

impl Agent {
    pub(crate) fn new(started: Option<launch::Agent>) -> Self {
        let (pid, stdin, stdout, stderr) = match started {
            Some(agent) => (Some(agent.pid), Some(agent.stdin), Some(agent.stdout), Some(agent.stderr)),
            None => (None, None, None, None),
        };
        Self {
            pid,
            input: Outgoing::new(stdin),
            output: Incoming::new("agent", stdout),
            errors: Incoming::new("agent, standard error", stderr),
            errors_tail: Tail::default(),
            errors_log: LogLines::default(),
            output_tail: Tail::default(),
            status: None,
        }
    }

    /// Looks through what was reaped for the agent. True when it was among it.
    pub(crate) fn was_reaped(&mut self, reaped: &[(Pid, WaitStatus)]) -> bool {
        let Some((_, status)) = reaped.iter().find(|(pid, _)| Some(*pid) == self.pid) else { return false };
        self.status = Some(*status);
        self.pid = None;
        true
    }

    /// Whether it has ended and nothing it said is still on its way.
    pub(crate) fn is_gone(&self) -> bool {
        self.pid.is_none() && !self.output.is_open() && !self.errors.is_open()
    }

    /// Takes in what was read from its standard error last.
    pub(crate) fn take_errors(&mut self, read: &std::io::Result<usize>) {
        let log = |line: &str| tracing::debug!(target: "turnd_host::agent", "{line}");
        match read {
            Ok(length) if *length > 0 => {
                let chunk = self.errors.chunk(*length);
                self.errors_tail.push(chunk);
                self.errors_log.push(chunk, log);
            }
            _ => {
                self.errors_log.end(log);
                self.errors.close();
            }
        }
    }

    /// Keeps the end of what was read from its output last, for the case that it never answers.
    pub(crate) fn keep_output(&mut self, read: &std::io::Result<usize>) {
        if let Ok(length) = read {
            self.output_tail.push(self.output.chunk(*length));
        }
    }

    /// What is known of its end.
    pub(crate) fn exit(&self, initialized: bool) -> Exit {
        Exit {
            code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            stderr_tail: self.errors_tail.text(),
            stdout_tail: if initialized { String::new() } else { self.output_tail.text() },
        }
    }
}
