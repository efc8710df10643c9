//! `turnd host`: the process between the daemon and one agent. Started by `turnd serve`, not by people.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use host::{AgentCommand, HostOptions};

use crate::cli::{Durability, HostArgs, TranscriptMode};
use crate::output::complain;

/// Runs the host until its session is over, or only clears away what an earlier one left.
pub(crate) async fn run(args: HostArgs) -> std::io::Result<()> {
    if args.sweep {
        let transcript = args.transcript.ok_or_else(|| std::io::Error::other("--transcript is needed"))?;
        return host::sweep(&transcript).await;
    }
    if let Some(owner) = args.dismiss {
        let transcript = args.transcript.ok_or_else(|| std::io::Error::other("--transcript is needed"))?;
        return host::dismiss(&transcript, &owner).await;
    }
    if let Some(owner) = args.interrupt {
        let transcript = args.transcript.ok_or_else(|| std::io::Error::other("--transcript is needed"))?;
        return host::interrupt(&transcript, &owner);
    }
    let (Some(session_id), Some(transcript_path), Some(workspace)) = (args.session, args.transcript, args.workspace)
    else {
        return Err(std::io::Error::other("--session, --transcript and --workspace are needed"));
    };
    let mut command = args.command.into_iter();
    let options = HostOptions {
        session_id,
        mode: match args.mode {
            TranscriptMode::Recorded => host::Mode::Recorded,
            TranscriptMode::Native => host::Mode::Native,
        },
        transcript_path,
        workspace,
        agent: AgentCommand { program: command.next().unwrap_or_default(), args: command.collect(), env: Vec::new() },
        launcher: Some(std::env::current_exe()?),
        linger: Duration::from_millis(args.linger_ms),
        lock_wait: Duration::from_millis(args.lock_wait_ms),
        input_wait: Duration::from_millis(args.agent_input_timeout_ms),
        durability: match args.durability {
            Durability::Process => transcript::Durability::Process,
            Durability::Fsync => transcript::Durability::Fsync,
        },
    };
    let (stdin, stdout) = host::stdio()?;
    host::run(options, stdin, stdout).await
}

/// Becomes the agent. Returns only when that failed: 127 is what a shell says of a program that is not there.
pub(crate) fn exec(command: &[OsString]) -> ExitCode {
    let error = host::exec(command);
    let program = command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
    // The host keeps the end of this stream and tells it to whoever asked for the session.
    complain(format_args!("cannot start `{program}`: {error}"));
    ExitCode::from(127)
}
