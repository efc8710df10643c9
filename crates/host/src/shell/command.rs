//! The command of a user, as the shell runs it beside the agent.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::Shell;
use crate::command::{Command, Ended};
use crate::limits::{COMMAND_FADE_WAIT, COMMAND_TIME_MAX};
use crate::machine::{Effect, Input};
use crate::timers::Timer;
use crate::tree;

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Shell<R, W> {
    /// Starts a command; why not, where it cannot.
    fn start_command(&mut self, text: &str) -> Result<(), String> {
        let command = Command::start(&self.order, text).map_err(|error| error.to_string())?;
        self.command = Some(command);
        self.timers.arm(Timer::Command, COMMAND_TIME_MAX);
        Ok(())
    }

    /// Does what the machine wants with the command, and gives what there is to say of that at once.
    pub(super) fn command_effect(&mut self, effect: &Effect) -> Option<Input> {
        match effect {
            Effect::RunCommand(text) => self.start_command(text).err().map(|cause| Input::CommandEnded(Err(cause))),
            Effect::StopCommand => self.stop_command().map(|ended| Input::CommandEnded(Ok(ended))),
            _ => None,
        }
    }

    pub(super) fn take_from_command(&mut self, read: &io::Result<usize>) {
        if let Some(command) = &mut self.command {
            command.take(read);
        }
        self.look_at_command();
    }

    /// Takes note of every child that has ended. True when the agent was among them.
    pub(super) fn reap(&mut self) -> bool {
        let reaped = tree::reap();
        if self.command.as_mut().is_some_and(|command| command.was_reaped(&reaped)) {
            // What it left behind may hold its output open for as long as it likes.
            self.timers.arm(Timer::CommandFade, COMMAND_FADE_WAIT);
        }
        self.agent.was_reaped(&reaped)
    }

    pub(super) fn look_at_command(&mut self) {
        if self.command.as_ref().is_some_and(Command::is_over) {
            self.command_is_over();
        }
    }

    /// The command took too long.
    pub(super) fn abort_command(&mut self) {
        if let Some(command) = &mut self.command {
            tracing::warn!("a command takes too long; it is ended with everything that it started");
            command.abort(&self.tree);
            self.timers.arm(Timer::CommandFade, COMMAND_FADE_WAIT);
        }
    }

    /// Nothing more is waited for from the command.
    pub(super) fn command_is_over(&mut self) {
        if let Some(ended) = self.take_command() {
            self.tell(Input::CommandEnded(Ok(ended)));
        }
    }

    /// Ends the command now, if one runs, and says how.
    fn stop_command(&mut self) -> Option<Ended> {
        if let Some(command) = &mut self.command {
            command.abort(&self.tree);
        }
        self.take_command()
    }

    fn take_command(&mut self) -> Option<Ended> {
        self.timers.disarm(Timer::Command);
        self.timers.disarm(Timer::CommandFade);
        self.command.take().map(Command::end)
    }
}
