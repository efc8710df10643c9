//! The end: the agent is asked to go, then told, then killed with everything below it. Only then does the host go.

use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};

use super::Shell;
use crate::agent::Agent;
use crate::launch;
use crate::limits::{EOF_WAIT, FLUSH_WAIT, KILL_WAIT, TERM_WAIT, TREE_POLL};
use crate::machine::Input;
use crate::timers::Timer;

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

    /// The host is on its way to its own end: nothing is decided or passed on any more.
    pub(super) fn is_ending(&self) -> bool {
        self.stage != Stage::Serving && !self.replacing
    }

    pub(super) fn begin_end(&mut self) {
        self.daemon.close();
        self.timers.disarm(Timer::Linger);
        // An agent that was to be replaced is on its way already, and then nobody comes after it.
        self.replacing = false;
        if self.stage == Stage::Serving {
            self.begin_teardown();
        }
    }

    pub(super) fn begin_replacement(&mut self) {
        tracing::warn!("the agent does not stop; it is ended with its tree, and started again");
        self.replacing = true;
        self.begin_teardown();
    }

    fn begin_teardown(&mut self) {
        self.agent.input.close();
        self.timers.disarm(Timer::Fade);
        self.timers.disarm(Timer::Input);
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
        self.reap();
        let rest = self.tree.members();
        if rest.is_empty() && self.agent.pid.is_none() {
            // What a dead agent has said is in the pipe and belongs to its turn.
            if !self.replacing || !self.agent.output.is_open() {
                return self.tree_is_gone();
            }
        }
        self.tree.kill(&rest);
        self.timers.arm(Timer::Step, TREE_POLL);
    }

    pub(super) fn give_up_on_tree(&mut self) {
        if self.stage != Stage::Gone {
            let pids: Vec<_> = self.tree.members().iter().map(|process| process.pid).collect();
            if !pids.is_empty() {
                tracing::error!(?pids, "processes do not die; killed as they are, they never run again");
            }
            self.tree_is_gone();
        }
    }

    fn tree_is_gone(&mut self) {
        self.timers.disarm(Timer::Step);
        self.timers.disarm(Timer::Kill);
        if self.replacing {
            return self.start_again();
        }
        self.stage = Stage::Gone;
        self.timers.arm(Timer::Flush, FLUSH_WAIT);
        if let Some(journal) = &mut self.journal {
            journal.retry();
        }
    }

    /// Another agent in the place of one that is gone. Beside one that may still live there is none: two agents on one session
    /// silently lose a branch of it.
    fn start_again(&mut self) {
        self.replacing = false;
        self.stage = Stage::Serving;
        let is_gone = self.agent.pid.is_none() && self.tree.members().is_empty();
        let started = if is_gone {
            launch::start(&self.order).map_err(|error| format!("the agent cannot be started: {error}"))
        } else {
            Err("a process of the agent does not end".to_owned())
        };
        let (agent, result) = match started {
            Ok(agent) => (Some(agent), Ok(())),
            Err(cause) => (None, Err(cause)),
        };
        self.agent = Agent::new(agent);
        self.note_process();
        self.tell(Input::Replaced(result));
    }
}
