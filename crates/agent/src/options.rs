//! What the program around the agent decides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Takes one line of a journal.
pub type Journal = Arc<dyn Fn(&str) + Send + Sync>;

/// Settings of one agent.
#[derive(Clone)]
pub struct AgentOptions {
    /// What the `die` script does to the process. It is expected not to return; where it does, as
    /// in a test, [`run`](crate::run) returns at once and says no more.
    pub die: Arc<dyn Fn() + Send + Sync>,
    /// Is handed every message that is heard, before anything comes of it, and every answer to a prompt, before it is said; each as one
    /// JSON object without a line end. An oracle for tests: what was asked of an agent, whatever its daemon says.
    pub journal: Option<Journal>,
    /// How long an answer to a prompt comes after the last word. A real agent's is never instant; a client that learns a prompt's
    /// id and its end over two connections may depend on that.
    pub answer_after: Duration,
    /// What it says unasked behind every answer that gives a session, as an agent does that introduces itself.
    pub greeting: Option<String>,
    /// Session ids are this and a number. Ids of two processes differ only if this does.
    pub session_prefix: String,
}

impl Default for AgentOptions {
    /// Death that only ends [`run`](crate::run), no journal, instant answers, no greeting, and ids `scripted-1`, `scripted-2`, and so on.
    fn default() -> Self {
        Self {
            die: Arc::new(|| ()),
            journal: None,
            answer_after: Duration::ZERO,
            greeting: None,
            session_prefix: "scripted-".to_owned(),
        }
    }
}

impl fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentOptions").field("session_prefix", &self.session_prefix).finish_non_exhaustive()
    }
}
