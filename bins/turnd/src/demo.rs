//! `turnd demo`: three prompts, one kill -9 of the daemon, and what is known of each afterwards.

mod daemon;
mod story;

use std::path::Path;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::cli::DemoArgs;
use crate::client::{Client, ClientError, Events};
use crate::commands;
use crate::exit::{Exit, Failure};
use crate::output::line;
use daemon::Daemon;
use story::Outcome;

/// What the three prompts say: one that ends, one that streams slowly, one that has to wait.
const PROMPTS: [&str; 3] = ["hello", "slow 3000", "and me?"];
/// Chunks of the slow prompt that are shown before the daemon is killed.
const CHUNKS_BEFORE_KILL: usize = 6;
/// The longest the demo waits for the stream to come to its point; it is there so that a broken build ends.
const STREAM_LIMIT: Duration = Duration::from_secs(20);

/// Why the demo ended early.
#[derive(Debug)]
pub(crate) enum DemoError {
    /// A file, a process or stdout failed.
    Io(std::io::Error),
    /// The daemon did not answer as it should.
    Client(ClientError),
    /// The daemon ended without saying where it listens.
    NoAddress,
    /// The stream ended or fell silent before the demo's point.
    Stream,
}

impl std::fmt::Display for DemoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Client(error) => write!(f, "{error}"),
            Self::NoAddress => f.write_str("the daemon ended before it said where it listens"),
            Self::Stream => f.write_str("the event stream ended before the slow prompt was under way"),
        }
    }
}

impl std::error::Error for DemoError {}

impl From<std::io::Error> for DemoError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ClientError> for DemoError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

/// Whoever has closed the pipe has seen enough.
impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Io(error) => error.into(),
            error => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

/// Plays the demo in a temporary folder and removes it, unless it is to be kept.
pub(crate) async fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    staged(args).await?;
    Ok(Exit::Done)
}

async fn staged(args: &DemoArgs) -> Result<(), DemoError> {
    let base = std::env::temp_dir().join(format!("turnd-demo-{}", std::process::id()));
    let (store, workspace) = (base.join("store"), base.join("workspace"));
    std::fs::create_dir_all(&store)?;
    std::fs::create_dir_all(&workspace)?;
    let played = play(&store, &workspace).await;
    if args.keep {
        line(format_args!("\nkept: {}", base.display()))?;
    } else {
        std::fs::remove_dir_all(&base)?;
    }
    played
}

async fn play(store: &Path, workspace: &Path) -> Result<(), DemoError> {
    line("turnd demo: three prompts, one kill -9, and no outcome made up\n")?;
    let daemon = Daemon::start(store, workspace).await?;
    line(format_args!("the daemon runs: pid {} on http://{}", daemon.pid(), daemon.address))?;
    let mut client = Client::new(daemon.address.into(), None)?;
    let session = client.require(200, Method::POST, "/session", Some(&json!({}))).await?;
    let session_id = text(&session, "sessionId");
    line(format_args!("a session is open: {session_id}\n"))?;
    let mut events = client.events(&session_id, 0).await?;
    let admitted = admit(&mut client, &session_id).await?;
    line("\nthe session's stream:")?;
    tokio::time::timeout(STREAM_LIMIT, watch(&mut events, &admitted)).await.map_err(|_| DemoError::Stream)??;

    let pid = daemon.pid();
    daemon.kill().await?;
    line(format_args!("\nkill -9 {pid}    prompt 2 is half done, prompt 3 waits; nobody was told"))?;

    let daemon = Daemon::start(store, workspace).await?;
    line(format_args!("the daemon is started again: pid {} on http://{}", daemon.pid(), daemon.address))?;
    line("the session is loaded; its host let the running turn end and wrote it down\n")?;
    let mut client = Client::new(daemon.address.into(), None)?;
    let loaded = client.require(200, Method::POST, &format!("/session/{session_id}/load"), Some(&json!({}))).await?;
    let withheld = commands::explain::withheld(store, workspace, &session_id);
    for (number, (prompt_id, prompt)) in admitted.iter().zip(PROMPTS).enumerate() {
        let path = format!("/session/{session_id}/turns/{prompt_id}");
        let answer = client.call(Method::GET, &path, None).await?;
        let turn = (answer.status == 200).then(|| answer.json());
        Outcome { number: number + 1, prompt, prompt_id, turn: turn.as_ref(), loaded: &loaded, withheld }.tell()?;
    }
    client.require(204, Method::DELETE, &format!("/session/{session_id}"), None).await?;
    daemon.kill().await
}

/// Posts the three prompts and returns their ids.
async fn admit(client: &mut Client, session_id: &str) -> Result<Vec<String>, DemoError> {
    let mut admitted = Vec::new();
    for (number, prompt) in PROMPTS.into_iter().enumerate() {
        let body = json!({"prompt": [{"type": "text", "text": prompt}]});
        let receipt = client.require(202, Method::POST, &format!("/session/{session_id}/prompt"), Some(&body)).await?;
        let prompt_id = text(&receipt, "promptId");
        line(format_args!("202  prompt {}  {prompt_id}  {prompt:?}", number + 1))?;
        admitted.push(prompt_id);
    }
    Ok(admitted)
}

/// Shows events until the slow prompt is well under way.
async fn watch(events: &mut Events, admitted: &[String]) -> Result<(), DemoError> {
    let mut chunks = 0;
    while chunks < CHUNKS_BEFORE_KILL {
        let event = events.next().await.ok_or(DemoError::Stream)?;
        let number = admitted.iter().position(|id| event["promptId"] == id.as_str()).map(|index| index + 1);
        story::event(number, &event)?;
        if number == Some(2) && event["data"]["update"]["sessionUpdate"] == "agent_message_chunk" {
            chunks += 1;
        }
    }
    Ok(())
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
