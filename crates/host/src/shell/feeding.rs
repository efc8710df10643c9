//! Prompts on their way into the agent's input.

use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Shell, Stage};
use crate::fail_points::Place;
use crate::incarnation::Incarnation;
use crate::limits::{FADE_WAIT, TO_AGENT_BYTES_MAX};
use crate::machine::Input;
use crate::outgoing::Reach;
use crate::timers::Timer;

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Shell<R, W> {
    /// Says which process the agent is.
    pub(super) fn note_process(&mut self) {
        let process = self.agent.pid.and_then(Incarnation::of);
        self.tell(Input::Started(process));
    }

    /// Hands a watched prompt to the agent.
    pub(super) fn feed(&mut self, line: Bytes) {
        self.fail_points.reach(Place::Taken);
        match self.fail_points.first_half(&line) {
            Some(half) => self.agent.input.push(half),
            None => self.agent.input.push_watched(line),
        }
        self.timers.arm(Timer::Input, self.input_wait);
        self.look_at_input();
    }

    /// Something was written to the agent: where a test parted a prompt, its rest follows its first half.
    pub(super) fn go_on_with_prompt(&mut self) {
        if self.agent.input.is_empty()
            && let Some(rest) = self.fail_points.rest()
        {
            self.agent.input.push_watched(rest);
        }
    }

    /// Something was written to the daemon.
    pub(super) fn daemon_told(&mut self) {
        if self.to_daemon.is_empty() && self.agent.input.is_whole() {
            self.fail_points.reach(Place::Told);
        }
    }

    /// Says how much of a watched prompt is written, when that is news.
    pub(super) fn notice_reach(&mut self) {
        let Some(reach) = self.agent.input.take_reach() else { return };
        if reach == Reach::Whole {
            self.timers.disarm(Timer::Input);
            self.fail_points.reach(Place::Whole);
        }
        self.tell(Input::Reached(reach));
    }

    /// Too much waits for an agent that reads.
    pub(super) fn look_at_input(&mut self) {
        if self.agent.input.bytes() > TO_AGENT_BYTES_MAX {
            tracing::error!("the agent has stopped reading; it is taken as gone");
            self.agent.input.close();
            self.fade(Duration::ZERO);
        }
    }

    /// A part of a prompt is in the agent's input and the rest does not fit. Nothing can be written behind that, so the agent is
    /// ended; before its input is closed, as some readers take the beginning of a line for a line when nothing follows.
    pub(super) fn give_up_on_input(&mut self) {
        if self.stage != Stage::Serving {
            return;
        }
        tracing::error!("the agent does not read its input; it is ended");
        if let Some(pid) = self.agent.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        self.tree.kill(&self.tree.members());
        self.agent.input.close();
        self.fade(FADE_WAIT);
    }
}
