//! `turnd serve`: from flags to a bound socket, a wired daemon, and the signal that ends it.

mod access;

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serve::{Idleness, Limits, Mediation, Policy, Rates, ServeOptions, Server, Tls, Token};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::agents::{Agent, AgentError};
use crate::cli::{Durability, LimitArgs, PermissionArgs, PermissionPolicy, RateArgs, ServeArgs, TranscriptMode};
use crate::output::line;
use crate::store;
use access::AccessError;

/// Why the daemon did not start, or did not end well.
#[derive(Debug)]
pub(crate) enum ServeCommandError {
    /// The flags contradict each other; the text says how.
    Usage(String),
    /// Others can reach the address, and no token keeps them out.
    Unguarded(IpAddr),
    /// The socket, a folder or a signal failed.
    Io(String, io::Error),
    /// The certificate or its key cannot be used.
    Tls(serve::TlsError),
    /// The daemon itself failed.
    Serve(serve::ServeError),
}

impl std::fmt::Display for ServeCommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Unguarded(address) => write!(
                f,
                "{address} can be reached from other machines, so it needs a token: set TURND_TOKEN, name a --token-file, or let \
                 --generate-token make one"
            ),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Tls(error) => write!(f, "no TLS: {error}"),
            Self::Serve(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ServeCommandError {}

impl ServeCommandError {
    /// The exit status, as the help text lists them.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Serve(serve::ServeError::Folders(_)) => 2,
            Self::Io(..) | Self::Tls(_) | Self::Serve(_) => 1,
            // `EX_CONFIG` of the BSD convention: not what a restart mends.
            Self::Unguarded(_) => 78,
        }
    }
}

impl From<AccessError> for ServeCommandError {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Unguarded(address) => Self::Unguarded(address),
            AccessError::Usage(text) => Self::Usage(text),
            AccessError::Io(what, error) => Self::Io(what, error),
        }
    }
}

impl From<AgentError> for ServeCommandError {
    fn from(error: AgentError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(args: ServeArgs) -> Result<(), ServeCommandError> {
    let address = (args.hostname, args.port);
    let access = access::decide(&args.access, args.hostname)?;
    let tls = match (&args.access.tls_cert, &args.access.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key).map_err(ServeCommandError::Tls)?),
        _ => None,
    };
    let scheme = if tls.is_some() { "https" } else { "http" };
    let renewing =
        renewed(tls.clone()).map_err(|error| ServeCommandError::Io("cannot watch for signals".into(), error))?;
    let options = options(args, access.token, tls)?;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| ServeCommandError::Io(format!("cannot listen on {}:{}", address.0, address.1), error))?;
    let bound =
        listener.local_addr().map_err(|error| ServeCommandError::Io("cannot read the address".into(), error))?;
    let unwatched = |error| ServeCommandError::Io("cannot watch for signals".into(), error);
    host::survive_file_limits().map_err(unwatched)?;
    let (ended, hurried) = (signalled(1).map_err(unwatched)?, signalled(2).map_err(unwatched)?);
    let server = Server::open(listener, options).await.map_err(ServeCommandError::Serve)?;
    let unsaid = |error| ServeCommandError::Io("the daemon does not begin".into(), error);
    if let Some(made) = access.made {
        line(format_args!("turnd token {made}")).map_err(unsaid)?;
    }
    // Said only now: whoever waits for this line may call at once.
    line(format_args!("turnd listens on {scheme}://{bound}")).map_err(unsaid)?;
    tokio::select! {
        () = server.run(ended, hurried) => {}
        () = renewing => {}
    }
    Ok(())
}

fn options(args: ServeArgs, token: Option<Token>, tls: Option<Tls>) -> Result<ServeOptions, ServeCommandError> {
    let own = own_program()?;
    let agent = Agent::parse(&args.agent, &own)?;
    let mode = args.transcript.unwrap_or(agent.mode);
    let workspaces = workspaces(&args.workspace)?;
    Ok(ServeOptions {
        workspaces,
        store: args.store.unwrap_or_else(|| store::default_for(mode)),
        mode: match mode {
            TranscriptMode::Recorded => serve::Mode::Recorded,
            TranscriptMode::Native => serve::Mode::Native,
        },
        agent: agent.argv,
        token,
        tls,
        rates: rates(&args.rates),
        require_auth: args.access.require_auth,
        allow_origins: args.access.allow_origin,
        limits: limits(&args.limits),
        durability: match args.durability {
            Durability::Process => serve::Durability::Process,
            Durability::Fsync => serve::Durability::Fsync,
        },
        linger_ms: args.linger_ms,
        agent_input_ms: args.agent_input_timeout_ms,
        initialize_timeout_ms: args.initialize_timeout_ms,
        prompt_deadline_ms: args.prompt_deadline_ms,
        session_shell: args.access.enable_session_shell,
        writer_idle_timeout_ms: args.limits.writer_idle_timeout_ms,
        prompt_run_deadline_ms: args.prompt_run_deadline_ms,
        settle_grace_ms: args.settle_grace_ms,
        close_settle_ms: args.close_settle_ms,
        idleness: idleness(&args.limits),
        mediation: mediation(&args.permissions)?,
        restore_timeout_ms: args.session_restore_timeout_ms,
        host_launcher: own,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Who decides what agents ask.
fn mediation(args: &PermissionArgs) -> Result<Mediation, ServeCommandError> {
    let consensus = args.permission_policy == PermissionPolicy::Consensus;
    if args.consensus_quorum.is_some() && !consensus {
        return Err(ServeCommandError::Usage("--consensus-quorum needs --permission-policy consensus".into()));
    }
    let policy = match args.permission_policy {
        PermissionPolicy::FirstResponder => Policy::FirstResponder,
        PermissionPolicy::Designated => Policy::Designated,
        PermissionPolicy::Consensus => Policy::Consensus { quorum: args.consensus_quorum },
        PermissionPolicy::LocalOnly => Policy::LocalOnly,
    };
    let timeout_ms = args.permission_response_timeout_ms;
    Ok(Mediation { policy, response_timeout_ms: (timeout_ms > 0).then_some(timeout_ms) })
}

/// What one daemon allows.
fn limits(args: &LimitArgs) -> Limits {
    Limits {
        max_sessions: args.max_sessions,
        max_total_sessions: args.max_total_sessions,
        max_pending_prompts: args.max_pending_prompts_per_session,
        max_connections: args.max_connections,
        event_ring_size: args.event_ring_size,
        compacted_replay_max_bytes: args.compacted_replay_max_bytes,
        journal_max_events: args.max_journal_events,
        journal_max_bytes: args.max_journal_bytes,
        ..Limits::default()
    }
}

/// When a session counts as one that nobody uses.
fn idleness(args: &LimitArgs) -> Idleness {
    Idleness {
        reap_interval_ms: args.session_reap_interval_ms,
        idle_timeout_ms: args.session_idle_timeout_ms,
        settled_close_grace_ms: args.session_prompt_settled_close_grace_ms,
    }
}

/// What each caller may send, where that is counted at all.
fn rates(args: &RateArgs) -> Option<Rates> {
    args.rate_limit.then(|| Rates {
        prompt: args.rate_limit_prompt.get(),
        mutation: args.rate_limit_mutation.get(),
        read: args.rate_limit_read.get(),
        window_ms: args.rate_limit_window_ms,
    })
}

fn own_program() -> Result<PathBuf, ServeCommandError> {
    std::env::current_exe().map_err(|error| ServeCommandError::Io("cannot find my own program".into(), error))
}

/// The workspaces as absolute paths without links, so that every spelling of one names the same sessions.
fn workspaces(given: &[PathBuf]) -> Result<Vec<PathBuf>, ServeCommandError> {
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| ServeCommandError::Io(format!("cannot use the workspace {}", path.display()), error))
    };
    if given.is_empty() { Ok(vec![real(Path::new("."))?]) } else { given.iter().map(|path| real(path)).collect() }
}

/// Reads certificate and key again whenever SIGHUP asks for it. Without TLS the signal is left alone. It never ends.
fn renewed(tls: Option<Tls>) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut hangup = tls.is_some().then(|| signal(SignalKind::hangup())).transpose()?;
    Ok(async move {
        while let (Some(tls), Some(hangup)) = (&tls, &mut hangup) {
            if hangup.recv().await.is_none() {
                break;
            }
            match tls.reload() {
                Ok(()) => tracing::info!("certificate and key are read again"),
                Err(error) => tracing::error!(%error, "the old certificate goes on"),
            }
        }
        std::future::pending().await
    })
}

/// Resolves when the process was asked to end so many times.
fn signalled(times: usize) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        for _ in 0..times {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    #[test]
    fn a_daemon_without_flags_has_the_limits_that_it_has_by_itself() {
        let Command::Serve(args) = Cli::try_parse_from(["turnd", "serve"]).unwrap().command else { panic!() };
        assert_eq!((limits(&args.limits), idleness(&args.limits)), (Limits::default(), Idleness::default()));
    }
}
