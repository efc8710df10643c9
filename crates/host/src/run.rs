//! A host from its start to its end.

use std::io;

use acp::RpcError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::Agent;
use crate::choice::Choice;
use crate::fail_points::FailPoints;
use crate::file_limit::survive_file_limits;
use crate::incoming::Incoming;
use crate::launch;
use crate::machine::Machine;
use crate::options::HostOptions;
use crate::outgoing::Outgoing;
use crate::recording::Recording;
use crate::shell::{Shell, Signals, Stage};
use crate::sidecar::{self, Note};
use crate::start::{Started, start};
use crate::timers::Timers;
use crate::tree::{Tree, become_guardian};

/// Hosts one session until it is closed, its agent ends, or its daemon dies and the running turn has settled.
///
/// The host takes over the whole process: it moves it to a session of its own, makes it adopt the orphans below it,
/// reaps every child, and kills everything that descends from it before it returns. Call it in a process that does
/// nothing else, from a current-thread runtime with IO and time enabled, and end the process when it returns. A failure
/// to start is not an error of this function but the answer to the daemon's first request.
///
/// # Errors
///
/// When the system refuses to deliver signals. Nothing has been started then.
pub async fn run<R, W>(options: HostOptions, stdin: R, stdout: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    become_guardian();
    survive_file_limits()?;
    // Before anything can end whose end would have to be noticed.
    let signals = Signals {
        child: signal(SignalKind::child())?,
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        _hangup: signal(SignalKind::hangup())?,
        stop_turn: signal(SignalKind::user_defined1())?,
    };
    let mut daemon = Incoming::new("daemon", Some(stdin));
    let begun = match start(&options, &mut daemon).await {
        Ok(Some(started)) => Begun::with(&options, started),
        Ok(None) => return Ok(()),
        Err(why) => Begun::without(&options, why),
    };
    let shell = Shell {
        machine: begun.machine,
        daemon,
        to_daemon: Outgoing::new(Some(stdout)),
        agent: begun.agent,
        journal: begun.journal,
        told: Recording::default(),
        note: Note::new(&options.session_id, argv(&options)).choosing(begun.choices),
        note_path: sidecar::path_beside(&options.transcript_path),
        linger: options.linger,
        input_wait: options.input_wait,
        tree: begun.tree,
        signals,
        timers: Timers::default(),
        stage: Stage::Serving,
        order: begun.order,
        replacing: false,
        command: None,
        fail_points: FailPoints::from_env(),
    };
    shell.run().await;
    // The session is free only now that nothing of it runs any more.
    drop(begun.lock);
    Ok(())
}

/// What a start has come to.
struct Begun {
    machine: Machine,
    choices: Vec<Choice>,
    agent: Agent,
    order: launch::Order,
    journal: Option<crate::journal::Journal>,
    tree: Tree,
    lock: Option<transcript::SessionLock>,
}

impl Begun {
    fn with(options: &HostOptions, started: Started) -> Self {
        Self {
            machine: Machine::new(options.mode, started.remembered)
                .of_session(&options.session_id)
                .trusted(started.order.capability.clone())
                .choosing(started.choices.clone())
                .named(started.journal.as_ref().and_then(crate::journal::Journal::title)),
            choices: started.choices,
            agent: Agent::new(Some(started.agent)),
            order: started.order,
            journal: started.journal,
            tree: started.tree,
            lock: Some(started.lock),
        }
    }

    /// The session may be another host's, so nothing but what descends from this process is ever touched.
    fn without(options: &HostOptions, why: RpcError) -> Self {
        tracing::error!(error = %why, data = why.data, "the session cannot be hosted");
        Self {
            machine: Machine::without_agent(options.mode, why),
            choices: Vec::new(),
            agent: Agent::new(None),
            order: launch::Order::new(options, &options.transcript_path),
            journal: None,
            tree: Tree::below_me(),
            lock: None,
        }
    }
}

fn argv(options: &HostOptions) -> Vec<String> {
    let agent = &options.agent;
    std::iter::once(&agent.program).chain(&agent.args).map(|word| word.to_string_lossy().into_owned()).collect()
}
