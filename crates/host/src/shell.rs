//! The shell around the machine: takes in what happens, lets the machine decide, does what it says, in its order.
//!
//! One loop, one event at a time, no task of its own. Writing to a slow reader is an event like any other, so that
//! nothing the agent or the daemon leaves undone keeps the host from noticing what the other one does.

mod command;
mod feeding;
mod teardown;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::Signal;
use transcript::Rewind;

use crate::agent::Agent;
use crate::clock::now_ms;
use crate::command::Command;
use crate::fail_points::FailPoints;
use crate::incoming::{Heard, Incoming};
use crate::journal::Journal;
use crate::launch;
use crate::limits::{FADE_WAIT, LATE_WORDS_MS, RETRY_RECORDS, TO_DAEMON_BYTES_MAX};
use crate::machine::{Effect, Input, Machine, NotRewound};
use crate::outgoing::Outgoing;
use crate::recording::Recording;
use crate::sidecar::{self, Note};
use crate::timers::{Timer, Timers};
use crate::tree::Tree;
pub(crate) use teardown::Stage;

/// One host at work.
pub(crate) struct Shell<R, W> {
    pub(crate) machine: Machine,
    pub(crate) daemon: Incoming<R>,
    pub(crate) to_daemon: Outgoing<W>,
    pub(crate) agent: Agent,
    pub(crate) journal: Option<Journal>,
    /// What the daemon was last told of the recording.
    pub(crate) told: Recording,
    pub(crate) note: Note,
    pub(crate) note_path: PathBuf,
    pub(crate) linger: Duration,
    pub(crate) input_wait: Duration,
    pub(crate) tree: Tree,
    pub(crate) signals: Signals,
    pub(crate) timers: Timers,
    pub(crate) stage: Stage,
    /// How the agent is started.
    pub(crate) order: launch::Order,
    /// The agent is on its way to its end, and another one takes its place.
    pub(crate) replacing: bool,
    /// The command of a user that runs.
    pub(crate) command: Option<Command>,
    /// Where a test stops it.
    pub(crate) fail_points: FailPoints,
}

/// The signals a host listens to.
pub(crate) struct Signals {
    pub(crate) child: Signal,
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
    /// Taken, and nothing comes of it. The kernel sends it to a host that is stopped when its daemon dies, and a host outlives its daemon.
    pub(crate) _hangup: Signal,
    /// The one that is sent by [`crate::interrupt`].
    pub(crate) stop_turn: Signal,
}

/// Everything the loop waits for.
#[derive(Debug)]
enum Event {
    FromDaemon(io::Result<usize>),
    FromAgent(io::Result<usize>),
    Errors(io::Result<usize>),
    FromCommand(io::Result<usize>),
    ToAgent(io::Result<()>),
    ToDaemon(io::Result<()>),
    ChildEnded,
    Told,
    Interrupted,
    Time(Timer),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Shell<R, W> {
    /// Works until the agent's tree is gone and the daemon has been told everything.
    pub(crate) async fn run(mut self) {
        self.note_process();
        // What came while the session was waited for.
        self.take_from_daemon();
        while !self.is_done() {
            let event = self.next().await;
            self.handle(event);
        }
    }

    async fn next(&mut self) -> Event {
        // A reader is left alone while what it brings could not be passed on: so a slow end slows the other.
        // On the way to the end nothing is passed on any more, and an agent that cannot write would not notice the hint.
        let has_room = self.to_daemon.bytes() < TO_DAEMON_BYTES_MAX || self.is_ending();
        tokio::select! {
            read = self.daemon.read() => Event::FromDaemon(read),
            read = self.agent.output.read(), if has_room => Event::FromAgent(read),
            read = self.agent.errors.read() => Event::Errors(read),
            read = read_command(&mut self.command) => Event::FromCommand(read),
            wrote = self.agent.input.write_some() => Event::ToAgent(wrote),
            wrote = self.to_daemon.write_some() => Event::ToDaemon(wrote),
            _ = self.signals.child.recv() => Event::ChildEnded,
            _ = self.signals.terminate.recv() => Event::Told,
            _ = self.signals.interrupt.recv() => Event::Told,
            _ = self.signals.stop_turn.recv() => Event::Interrupted,
            timer = self.timers.next() => Event::Time(timer),
        }
    }

    fn handle(&mut self, event: Event) {
        // Before whatever the agent may have answered to it.
        self.notice_reach();
        match event {
            Event::FromDaemon(read) => {
                self.daemon.take(&read);
                self.take_from_daemon();
            }
            Event::FromAgent(read) => self.take_from_agent(&read),
            Event::Errors(read) => {
                self.agent.take_errors(&read);
                self.look_at_agent();
            }
            Event::FromCommand(read) => self.take_from_command(&read),
            Event::ToAgent(Ok(())) => self.go_on_with_prompt(),
            Event::ToDaemon(Ok(())) => self.daemon_told(),
            Event::ToAgent(Err(_)) => {
                self.agent.input.close();
                self.fade(FADE_WAIT);
            }
            Event::ToDaemon(Err(_)) => self.daemon_gone(),
            Event::ChildEnded => self.child_ended(),
            Event::Told => self.tell(Input::Terminated),
            Event::Interrupted => self.tell(Input::Interrupted),
            Event::Time(timer) => self.on_time(timer),
        }
    }

    fn on_time(&mut self, timer: Timer) {
        match timer {
            Timer::Linger => self.tell(Input::LingerExpired),
            Timer::Retry => self.retry_records(),
            Timer::Fade => self.agent_gone(),
            Timer::Input => self.give_up_on_input(),
            Timer::Step => self.step(),
            Timer::Kill => self.give_up_on_tree(),
            Timer::Command => self.abort_command(),
            Timer::CommandFade => self.command_is_over(),
            Timer::Flush => self.to_daemon.close(),
        }
    }

    fn take_from_daemon(&mut self) {
        while let Some(message) = self.daemon.next_message() {
            self.tell(Input::Daemon(message));
        }
        if !self.daemon.is_open() {
            self.daemon_gone();
        }
    }

    fn daemon_gone(&mut self) {
        // On its way to the end the host owes its last words to whoever still reads, and hears nobody.
        let ending = self.is_ending();
        self.daemon.close();
        if !ending {
            self.to_daemon.close();
            self.tell(Input::DaemonGone);
        }
    }

    fn take_from_agent(&mut self, read: &io::Result<usize>) {
        if !self.machine.is_initialized() {
            self.agent.keep_output(read);
        }
        self.agent.output.take(read);
        while let Some(heard) = self.agent.output.next_heard() {
            self.tell(match heard {
                Heard::Message(message) => Input::Agent(message),
                Heard::AnswerLost { limit_bytes } => Input::AnswerLost { limit_bytes },
                Heard::Unreadable(lost) => Input::Unreadable(lost),
            });
        }
        // It still says something, so the rest of it may take as long again.
        if self.timers.is_armed(Timer::Fade) {
            self.fade(FADE_WAIT);
        }
        self.look_at_agent();
    }

    /// Takes note of children that have ended. When the agent is among them its tree is ended too: nothing that it left
    /// may go on, and nothing may hold its output open.
    fn child_ended(&mut self) {
        let agent_ended = self.reap();
        self.look_at_command();
        if !agent_ended {
            return;
        }
        self.tree.kill(&self.tree.members());
        match self.stage {
            Stage::Serving => self.look_at_agent(),
            _ => self.kill_tree(),
        }
    }

    /// Sees whether the agent has ended, or is about to.
    fn look_at_agent(&mut self) {
        if self.stage != Stage::Serving {
            return;
        }
        if self.agent.is_gone() {
            self.agent_gone();
        } else if (self.agent.pid.is_none() || !self.agent.output.is_open()) && !self.timers.is_armed(Timer::Fade) {
            self.fade(FADE_WAIT);
        }
    }

    fn fade(&mut self, after: Duration) {
        if self.stage == Stage::Serving {
            self.timers.arm(Timer::Fade, after);
        }
    }

    fn agent_gone(&mut self) {
        self.timers.disarm(Timer::Fade);
        let exit = self.agent.exit(self.machine.is_initialized());
        self.tell(Input::AgentGone(exit));
    }

    fn tell(&mut self, input: Input) {
        let at_ms = now_ms();
        let mut effects = VecDeque::from(self.machine.handle(at_ms, input));
        while let Some(effect) = effects.pop_front() {
            match &effect {
                Effect::Admit { record, after_ms } => {
                    let journal = self.journal.as_mut();
                    let result = journal.map_or(Ok(()), |journal| journal.admit(at_ms, *after_ms, record));
                    effects.extend(self.machine.handle(at_ms, Input::Admitted(result)));
                }
                Effect::Rewind { rewind, at_ms: dated_ms } => {
                    let result = self.rewind(*dated_ms, rewind);
                    effects.extend(self.machine.handle(at_ms, Input::Rewound(result)));
                }
                Effect::RunCommand(_) | Effect::StopCommand => {
                    let more = self.command_effect(&effect).map(|input| self.machine.handle(at_ms, input));
                    more.into_iter().flatten().rev().for_each(|effect| effects.push_front(effect));
                }
                Effect::Record { request, record } => {
                    let journal = self.journal.as_mut();
                    let result = journal.map_or(Ok(()), |journal| journal.admit(at_ms, 0, record));
                    let recorded = Input::Recorded { request: request.clone(), result };
                    effects.extend(self.machine.handle(at_ms, recorded));
                }
                _ => self.perform(at_ms, effect),
            }
            // The daemon hears of it before it hears what the records were about.
            let noticed = self.notice_recording(at_ms);
            noticed.into_iter().rev().for_each(|effect| effects.push_front(effect));
        }
    }

    /// What is to be done when the disk has begun to refuse records, or takes them again.
    fn notice_recording(&mut self, at_ms: u64) -> Vec<Effect> {
        let recording = self.journal.as_ref().map(Journal::recording).unwrap_or_default();
        if !recording.differs_from(self.told) {
            return Vec::new();
        }
        self.told = recording;
        self.machine.handle(at_ms, Input::Recording(recording))
    }

    fn perform(&mut self, at_ms: u64, effect: Effect) {
        match effect {
            Effect::ToAgent(line) => {
                self.agent.input.push(line);
                self.look_at_input();
            }
            Effect::Feed(line) => self.feed(line),
            Effect::ToDaemon(line) => self.to_daemon.push(line),
            Effect::Append(records) => {
                // What the daemon has been told before does not wait for the disk.
                self.to_daemon.write_now();
                if let Some(journal) = &mut self.journal {
                    journal.append(at_ms, records);
                    if journal.is_holding() && !self.timers.is_armed(Timer::Retry) {
                        self.timers.arm(Timer::Retry, RETRY_RECORDS);
                    }
                }
            }
            // Told by `tell`, which has the machine's answer to them.
            Effect::Admit { .. }
            | Effect::Rewind { .. }
            | Effect::Record { .. }
            | Effect::RunCommand(_)
            | Effect::StopCommand => {}
            Effect::Remember { agent_session, cwd } => self.remember(at_ms, agent_session, cwd),
            Effect::Keep(choices) => {
                self.note.choices = choices;
                self.write_note(at_ms);
            }
            Effect::Linger => self.timers.arm(Timer::Linger, self.linger),
            Effect::Pause => self.timers.arm(Timer::Linger, Duration::from_millis(LATE_WORDS_MS)),
            Effect::Replace => self.begin_replacement(),
            Effect::End => {
                if let Some(journal) = &mut self.journal {
                    journal.close(at_ms);
                }
                self.begin_end();
            }
        }
    }

    fn retry_records(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        journal.retry();
        if journal.is_holding() {
            self.timers.arm(Timer::Retry, RETRY_RECORDS);
        }
        let at_ms = now_ms();
        for effect in self.notice_recording(at_ms) {
            self.perform(at_ms, effect);
        }
    }

    /// The note goes first: an agent's session that is noted beside a branch that was taken back would remember too much.
    fn rewind(&mut self, dated_ms: u64, rewind: &Rewind) -> Result<(), NotRewound> {
        let Some(journal) = &mut self.journal else { return Err(NotRewound::Unwritable("nothing is recorded".into())) };
        sidecar::forget(&self.note_path, &mut self.note).map_err(|error| NotRewound::Unwritable(error.to_string()))?;
        journal.rewind(dated_ms, rewind)
    }

    fn remember(&mut self, at_ms: u64, agent_session: String, cwd: String) {
        self.note.agent_session_id = agent_session;
        self.note.cwd = cwd;
        self.write_note(at_ms);
    }

    fn write_note(&mut self, at_ms: u64) {
        self.note.updated_at = at_ms;
        if let Err(error) = sidecar::write(&self.note_path, &self.note) {
            tracing::warn!(%error, "the agent's session and settings cannot be noted; after a restart it will begin with those of before");
        }
    }
}

/// Reads from the command of a user; waits for ever where there is none.
async fn read_command(command: &mut Option<Command>) -> io::Result<usize> {
    match command {
        Some(command) => command.read().await,
        None => std::future::pending().await,
    }
}
