//! The host's decisions: one input goes in, an ordered list of effects comes out.
//!
//! No clock, no file, no process. The shell performs the effects in the order given and adds no order of its own, so
//! that what must not be reordered can be read off the lists: the user record before the prompt goes to the agent, the
//! turn's result before the answer goes to the daemon, one result for each prompt that was handed on.

mod about;
mod agent;
mod command;
mod daemon;
mod ending;
mod late;
mod mid_turn;
mod passed;
mod replace;
mod restore;
mod rewind;
mod setting;
mod straying;
mod title;
mod unreadable;
mod written;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use acp::{Message, RequestId, RpcError, Unreadable};
use bytes::Bytes;
use transcript::{Body, Rewind};

use crate::choice::Choice;
use crate::command::Ended;
use crate::exit::Exit;
use crate::incarnation::Incarnation;
use crate::options::Mode;
use crate::outgoing::Reach;
use crate::recording::Recording;
use crate::turn::Turn;
use crate::wire::{self, Capabilities};
use command::{Command, Heard};
use late::LateOutput;
use passed::Passed;
use replace::Replacement;
use restore::Restore;
pub(crate) use rewind::NotRewound;
use rewind::{Rewinding, Told};
use setting::Setting;
use straying::Straying;
use title::Title;
use written::Witnessed;

/// The first id of the host's own requests to the agent. Those of the daemon pass through as they are and never come
/// near it, and it fits into every agent's idea of a number.
const OWN_ID_FIRST: u64 = 1_000_000_000;

/// Everything that can happen to a host.
#[derive(Debug)]
pub(crate) enum Input {
    /// The daemon sent a message.
    Daemon(Message),
    /// The agent sent a message.
    Agent(Message),
    /// The agent's process runs; none where the system does not tell which it is.
    Started(Option<Incarnation>),
    /// More of the prompt that was fed to the agent is in its input than before.
    Reached(Reach),
    /// The agent sent an answer that is longer than a line may be. Nobody knows to what.
    AnswerLost {
        /// The longest a line may be.
        limit_bytes: usize,
    },
    /// The agent wrote a line that cannot be read and may have been a message.
    Unreadable(Unreadable),
    /// The user record of the prompt that is to be dispatched was written, or why not.
    Admitted(Result<(), String>),
    /// The agent's session is forgotten on disk and the branch taken back, or why not.
    Rewound(Result<(), NotRewound>),
    /// A record about the session was written for this request of the daemon, or why not.
    Recorded {
        /// The request.
        request: RequestId,
        /// Whether it was written.
        result: Result<(), String>,
    },
    /// The agent's tree is gone and another process of it runs, or why not: then there is no agent.
    Replaced(Result<(), String>),
    /// The disk began to refuse records, or takes them again.
    Recording(Recording),
    /// The command of a user has ended, or why it never began.
    CommandEnded(Result<Ended, String>),
    /// The daemon has died, or no longer listens.
    DaemonGone,
    /// The agent has ended, and everything it said has been taken in.
    AgentGone(Exit),
    /// The time for a turn without a daemon is over.
    LingerExpired,
    /// Somebody told the host to end.
    Terminated,
    /// Somebody wants the turn to stop that the host stays for.
    Interrupted,
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Write a line to the agent.
    ToAgent(Bytes),
    /// The same with a prompt, of which it is to be reported how much the agent has.
    Feed(Bytes),
    /// Write a line to the daemon.
    ToDaemon(Bytes),
    /// Append records in one write. What cannot be written now is held and comes first at the next try.
    Append(Vec<Body>),
    /// Append the user record of a prompt and report it as [`Input::Admitted`] before anything else happens. From here on
    /// every record is dated later than `after_ms`.
    Admit { record: Body, after_ms: u64 },
    /// Append a record about the session and report it as [`Input::Recorded`] before anything else happens. One that cannot be
    /// written is not held: whoever asked for it hears so.
    Record {
        /// The daemon's request.
        request: RequestId,
        /// The record.
        record: Body,
    },
    /// Note which session of the agent belongs to this one.
    Remember {
        /// The agent's name for the session.
        agent_session: String,
        /// Where the session works.
        cwd: String,
    },
    /// Note what the agent is set to, for the next host.
    Keep(Vec<Choice>),
    /// Forget on disk which session of the agent belongs to this one, then append the record that takes the branch back, with this
    /// time, and report both as [`Input::Rewound`] before anything else happens. Where the first fails the second is left.
    Rewind { rewind: Rewind, at_ms: u64 },
    /// Start a command of a user. Its end, or why it cannot begin, is reported as [`Input::CommandEnded`].
    RunCommand(String),
    /// End the command that runs and report that as [`Input::CommandEnded`] before anything else happens.
    StopCommand,
    /// Start the time that a turn has without a daemon.
    Linger,
    /// The same with the moment that late words have behind an answer.
    Pause,
    /// End the agent with its whole tree, start its command again, and report that as [`Input::Replaced`]. What the old one says
    /// until its end is still taken in, and nothing of it after that.
    Replace,
    /// End the agent with its whole tree, and then the host. Nothing comes after it.
    End,
}

/// One session between its daemon and its agent.
#[derive(Debug)]
pub(crate) struct Machine {
    mode: Mode,
    /// The daemon's name for the session.
    session: String,
    /// The agent's name for the session before this host started, if one is known.
    remembered: Option<String>,
    /// The agent's process.
    process: Option<Incarnation>,
    /// The agent's name for the session now.
    agent_session: Option<String>,
    /// What a native agent was started with, and must be told again to take the daemon's prompt ids for its own.
    capability: Option<String>,
    model: Option<String>,
    capabilities: Capabilities,
    /// Whether the agent has answered `initialize`.
    initialized: bool,
    /// Why there is no agent. The daemon's first request is answered with it.
    unavailable: Option<RpcError>,
    /// Requests of the daemon that are open at the agent and whose answers the host reads.
    awaited: HashMap<RequestId, Awaited>,
    /// Those whose answers it only hands on.
    passed: Passed,
    /// Requests of the agent that are open at the daemon.
    asked: HashMap<RequestId, Asked>,
    /// Requests of an agent that is no more, whose answers are still on their way. The agent in its place may use the same ids.
    orphaned: HashSet<RequestId>,
    /// The parameters with which the agent was greeted.
    introduction: Option<String>,
    replacement: Option<Replacement>,
    restore: Option<Restore>,
    rewinding: Option<Rewinding>,
    setting: Option<Setting>,
    /// What clients have set, in the order in which they did.
    choices: Vec<Choice>,
    /// What was set and may keep the agent from something, and its session could not be set to again. No prompt is handed on.
    missing_guards: Vec<Choice>,
    /// What the agent's session was told.
    told: Told,
    /// Where the agent's session works.
    cwd: String,
    /// The note of the agent's session is gone although the agent has it still.
    is_forgotten: bool,
    /// A request of the host's own whose answer is nothing to anybody.
    unheard: Option<RequestId>,
    next_own_id: u64,
    title: Title,
    /// Between a restore and the next prompt: what belongs to the conversation is a replay.
    replaying: bool,
    running: Option<Running>,
    late: LateOutput,
    straying: Straying,
    /// Until when words are listened for that the agent says late, behind an answer that is promised to somebody.
    pause_until_ms: u64,
    command: Option<Command>,
    heard: Heard,
    phase: Phase,
    effects: Vec<Effect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// The daemon is gone; the turn may settle.
    Lingering,
    Over,
}

/// What an open request of the daemon is about.
#[derive(Debug)]
enum Awaited {
    Initialize,
    NewSession {
        cwd: String,
    },
    /// What a client sets.
    Choice(Choice),
}

/// What an open request of the agent is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Permission,
    /// What was said into the running turn.
    MidTurn,
    Other,
}

/// The prompt that the agent has, or is about to get.
#[derive(Debug)]
struct Running {
    request: RequestId,
    /// The line for the agent, until the user record is on disk.
    undispatched: Option<Bytes>,
    /// Somebody keeps a record of it.
    witnessed: Option<Witnessed>,
    /// When a cancel was handed to the agent.
    cancelled_at: Option<u64>,
    /// The record of the turn; none when the agent keeps its own.
    turn: Option<Turn>,
}

impl Machine {
    /// A host that has just started its agent. `remembered` is the agent's session id from an earlier host.
    pub(crate) fn new(mode: Mode, remembered: Option<String>) -> Self {
        Self {
            mode,
            session: String::new(),
            remembered,
            process: None,
            agent_session: None,
            capability: None,
            model: None,
            capabilities: Capabilities::default(),
            initialized: false,
            unavailable: None,
            awaited: HashMap::new(),
            passed: Passed::default(),
            asked: HashMap::new(),
            orphaned: HashSet::new(),
            introduction: None,
            replacement: None,
            restore: None,
            rewinding: None,
            setting: None,
            choices: Vec::new(),
            missing_guards: Vec::new(),
            told: Told::default(),
            cwd: String::new(),
            is_forgotten: false,
            unheard: None,
            next_own_id: OWN_ID_FIRST,
            title: Title::default(),
            replaying: false,
            running: None,
            late: LateOutput::default(),
            straying: Straying::default(),
            pause_until_ms: 0,
            command: None,
            heard: Heard::default(),
            phase: Phase::Serving,
            effects: Vec::new(),
        }
    }

    /// The same, of a session that the daemon calls so.
    pub(crate) fn of_session(self, session: &str) -> Self {
        Self { session: session.to_owned(), ..self }
    }

    /// The same, with an agent that was started with this capability.
    pub(crate) fn trusted(self, capability: Option<String>) -> Self {
        Self { capability, ..self }
    }

    /// A host that could not start its agent, or may not. It answers the daemon's first request and ends.
    pub(crate) fn without_agent(mode: Mode, why: RpcError) -> Self {
        Self { unavailable: Some(why), ..Self::new(mode, None) }
    }

    /// Whether the agent has answered `initialize`.
    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized
    }

    /// Takes in what happened at the given epoch milliseconds and says what is to be done, in order.
    pub(crate) fn handle(&mut self, at_ms: u64, input: Input) -> Vec<Effect> {
        if self.phase == Phase::Over && !matches!(input, Input::CommandEnded(_)) {
            return Vec::new();
        }
        match input {
            Input::Daemon(message) => self.daemon_says(at_ms, &message),
            Input::Agent(message) => self.agent_says(at_ms, &message),
            Input::Started(process) => self.process = process,
            Input::Reached(reach) => self.reached(reach),
            Input::AnswerLost { limit_bytes } => self.answer_lost(at_ms, limit_bytes),
            Input::Unreadable(lost) => self.hear_unreadable(at_ms, &lost),
            Input::Admitted(result) => self.admitted(result),
            Input::Rewound(result) => self.rewound(result),
            Input::Recorded { request, result } => self.recorded(&request, result),
            Input::Replaced(result) => self.replaced(at_ms, result),
            Input::Recording(recording) => self.tell_daemon(wire::recording(recording)),
            Input::CommandEnded(result) => self.command_ended(result),
            Input::DaemonGone => self.daemon_gone(at_ms),
            Input::AgentGone(exit) => self.agent_gone(at_ms, &exit),
            Input::LingerExpired => self.linger_expired(at_ms),
            Input::Terminated => self.terminated(at_ms),
            Input::Interrupted => self.interrupted(at_ms),
        }
        std::mem::take(&mut self.effects)
    }

    fn tell_agent(&mut self, line: Bytes) {
        self.effects.push(Effect::ToAgent(line));
    }

    /// Towards a daemon that is gone nothing is sent.
    fn tell_daemon(&mut self, line: Bytes) {
        if self.phase != Phase::Lingering {
            self.effects.push(Effect::ToDaemon(line));
        }
    }

    fn append(&mut self, records: Vec<Body>) {
        if !records.is_empty() {
            self.effects.push(Effect::Append(records));
        }
    }

    fn over(&mut self) {
        self.record_idea();
        let late = self.late.take();
        self.append(late.into_iter().collect());
        self.stop_command();
        self.effects.push(Effect::End);
        self.phase = Phase::Over;
    }
}

/// A message as it came, as a line.
fn line_of(message: &Message) -> Bytes {
    acp::compose::passed_on(message.raw())
}
