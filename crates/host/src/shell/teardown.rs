//! The end: the agent is asked to go, then told, then killed with everything below it. Only then does the host go.

use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Shell;
use crate::limits::{EOF_WAIT, FLUSH_WAIT, KILL_WAIT, TERM_WAIT, TREE_POLL};
use crate::timers::Timer;
use crate::tree;

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not begun.
    Serving,
    /// The agent's input is closed.
    Closed,
    /// It was sent SIGTERM.
    Told,
    /// What is left of the tree is killed.
    Killing,
    /// The tree is gone.
    Gone,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Shell<R, W> {
    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Gone && self.to_daemon.is_empty()
    }

    pub(super) fn begin_end(&mut self) {
        self.daemon.close();
        self.agent.input.close();
        self.timers.disarm(Timer::Fade);
        self.timers.disarm(Timer::Linger);
        if self.agent.pid.is_none() {
            return self.kill_tree();
        }
        self.stage = Stage::Closed;
        self.timers.arm(Timer::Step, EOF_WAIT);
    }

    pub(super) fn step(&mut self) {
        match self.stage {
            Stage::Closed => self.terminate(),
            Stage::Told => self.kill_tree(),
            Stage::Killing => self.kill_rest(),
            Stage::Serving | Stage::Gone => {}
        }
    }

    /// The agent's group is signalled only while the agent is not reaped, since then its id cannot mean another group.
    fn terminate(&mut self) {
        if let Some(pid) = self.agent.pid
            && let Err(error) = kill_process_group(pid, Signal::TERM)
        {
            tracing::debug!(%error, "the agent's group cannot be signalled");
        }
        self.stage = Stage::Told;
        self.timers.arm(Timer::Step, TERM_WAIT);
    }

    pub(super) fn kill_tree(&mut self) {
        if matches!(self.stage, Stage::Killing | Stage::Gone) {
            return;
        }
        self.stage = Stage::Killing;
        self.timers.arm(Timer::Kill, KILL_WAIT);
        if let Some(pid) = self.agent.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.kill_rest();
    }

    /// Kills until nothing is left: what is killed may just have started something.
    fn kill_rest(&mut self) {
        self.agent.was_reaped(&tree::reap());
        let rest = self.tree.members();
        if rest.is_empty() && self.agent.pid.is_none() {
            return self.tree_is_gone();
        }
        self.tree.kill(&rest);
        self.timers.arm(Timer::Step, TREE_POLL);
    }

    pub(super) fn give_up_on_tree(&mut self) {
        if self.stage != Stage::Gone {
            let pids: Vec<_> = self.tree.members().iter().map(|process| process.pid).collect();
            tracing::error!(?pids, "processes do not die; killed as they are, they never run again");
            self.tree_is_gone();
        }
    }

    fn tree_is_gone(&mut self) {
        self.stage = Stage::Gone;
        self.timers.disarm(Timer::Step);
        self.timers.disarm(Timer::Kill);
        self.timers.arm(Timer::Flush, FLUSH_WAIT);
        if let Some(journal) = &mut self.journal {
            journal.retry();
        }
    }
}
