//! Starting an agent in a process session of its own.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, setsid};
use tokio::net::unix::pipe;

use crate::options::{HostOptions, Mode};

/// The variable that marks every process of a session's tree with the session's transcript, so that what a dead host
/// left behind can be found, and nothing else is taken for it.
pub const SESSION_FILE_MARK: &str = "TURND_SESSION_FILE";

/// The variable that marks every process of one command of a user.
pub(crate) const COMMAND_MARK: &str = "TURND_COMMAND";
/// What runs the commands of users.
const USER_SHELL: &str = "/bin/sh";

/// What opens the daemon is no business of the agent.
const SECRETS: [&str; 2] = ["TURND_TOKEN", "QWEN_SERVER_TOKEN"];
/// What the peer's daemon tells its child (wire, section 14.1).
const NATIVE_ENV: [(&str, &str); 2] = [("QWEN_CODE_NO_RELAUNCH", "true"), ("QWEN_CODE_SERVE", "1")];

/// A started agent.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Also the id of its process group.
    pub(crate) pid: Pid,
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// The variable by which a native agent learns whom it may trust; see [`crate::wire::introduction_trusted`].
const CAPABILITY: &str = "QWEN_CODE_PRIVATE_ACP_CAPABILITY";

/// How the agent of a session is started, the first time and again when it has to be replaced.
#[derive(Debug)]
pub(crate) struct Order {
    options: HostOptions,
    transcript: PathBuf,
    /// What a native agent shares with this host alone, so that it trusts it.
    pub(crate) capability: Option<String>,
}

impl Order {
    pub(crate) fn new(options: &HostOptions, transcript: &Path) -> Self {
        let capability = (options.mode == Mode::Native).then(|| uuid::Uuid::new_v4().to_string());
        Self { options: options.clone(), transcript: transcript.to_owned(), capability }
    }
}

/// Starts the agent. Must run inside a tokio runtime, and on a thread that lives as long as the host: the agent may be tied to the
/// death of its parent *thread*.
pub(crate) fn start(order: &Order) -> io::Result<Agent> {
    let Order { options, transcript, capability } = order;
    let mut command = command(options);
    command.current_dir(&options.workspace).envs(options.agent.env.iter().map(|(key, value)| (key, value)));
    if options.mode == Mode::Native {
        command.envs(NATIVE_ENV);
    }
    if let Some(capability) = capability {
        command.env(CAPABILITY, capability);
    }
    for secret in SECRETS {
        command.env_remove(secret);
    }
    command.env(SESSION_FILE_MARK, transcript);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let missing = || io::Error::other("a pipe to the agent is missing");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(missing)?;
    let stdin: OwnedFd = child.stdin.take().ok_or_else(missing)?.into();
    let stdout: OwnedFd = child.stdout.take().ok_or_else(missing)?.into();
    let stderr: OwnedFd = child.stderr.take().ok_or_else(missing)?.into();
    // The child is reaped with everything else that ends below this process, so its handle is not needed.
    Ok(Agent {
        pid,
        stdin: pipe::Sender::from_owned_fd(stdin)?,
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
    })
}

/// A started command of a user.
#[derive(Debug)]
pub(crate) struct Started {
    /// Also the id of its process group.
    pub(crate) pid: Pid,
    /// Its two streams, as one.
    pub(crate) output: pipe::Receiver,
}

/// Starts a command of a user in the workspace, under a `mark` of its own. As with [`start`], the thread must live on.
pub(crate) fn start_command(order: &Order, text: &str, mark: &str) -> io::Result<Started> {
    let Order { options, transcript, .. } = order;
    let mut command = grouped(options, USER_SHELL.as_ref(), &["-c".into(), text.into()]);
    command.current_dir(&options.workspace);
    for secret in SECRETS {
        command.env_remove(secret);
    }
    command.env(SESSION_FILE_MARK, transcript).env(COMMAND_MARK, mark);
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn()?;
    let missing = || io::Error::other("the command has no process id");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(missing)?;
    // The ends of the pipe that are ours to write to go with `command`, so that its end is seen.
    Ok(Started { pid, output: pipe::Receiver::from_owned_fd(OwnedFd::from(reader))? })
}

fn command(options: &HostOptions) -> Command {
    grouped(options, &options.agent.program, &options.agent.args)
}

/// A program that will have a process group of its own, and a session where there is a launcher.
fn grouped(options: &HostOptions, program: &OsStr, args: &[OsString]) -> Command {
    match &options.launcher {
        Some(launcher) => {
            let mut command = Command::new(launcher);
            command.args(["host", "--exec", "--"]).arg(program).args(args);
            command
        }
        None => {
            let mut command = Command::new(program);
            command.args(args).process_group(0);
            command
        }
    }
}

/// Turns this process into `argv`: what `LAUNCHER host --exec -- PROGRAM ARGS…` has to do.
///
/// The process leaves the host's session and group, and dies with the host's thread that started it, where the system
/// offers that. Returns only when the program cannot be started; the caller then says why on standard error and exits
/// with status 127, as a shell would.
#[must_use]
pub fn exec(argv: &[OsString]) -> io::Error {
    let Some((program, args)) = argv.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no program is named");
    };
    // Both make the guard stronger. Without them the agent is still found through its parents and its environment.
    let _ = setsid();
    die_with_parent();
    Command::new(program).args(args).exec()
}

#[cfg(target_os = "linux")]
fn die_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() {}
