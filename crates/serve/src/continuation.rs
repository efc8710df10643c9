//! Going on with a turn that was left open (wire rules, section 13.5).
//!
//! Two are asked, and both must say the same: our own reader of the transcript, which knows what a direct command of a user is, and the
//! agent, which goes on from its memory and not from the file. The session is held meanwhile, so that what they spoke of is what is gone on
//! with. What is handed to the agent is a prompt like any other, but for its content: there is none, and nobody is said to have asked.

use std::sync::Arc;

use bridge::{Meanwhile, Prompt, Receipt, Session};
use serde_json::json;
use transcript::Left;

use crate::admission::{admit_new, prompt};
use crate::aside::Aside;
use crate::content::Content;
use crate::limits::ASIDE_MS;
use crate::options::Mode;
use crate::recovery::{how_it_was_left, word};
use crate::refusal::Refusal;
use crate::workspace::Workspace;

/// Whether the agent would go on, and with what. It changes nothing.
const CONTINUE: Aside = Aside::new("continue_not_supported", "qwen/control/session/continue");
/// What makes an agent write down what it still has to write: it answers behind that.
const FLUSH: &str = "qwen/control/session/turn_status";
/// What tells the agent to go on, in a prompt without content.
const GO_ON: &str = r#"{"_meta":{"qwen.daemon.continueLastTurn":true}}"#;

/// How long the caller of a continuation waits, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Patience {
    /// From admission.
    pub(crate) deadline_ms: Option<u64>,
    /// From dispatch.
    pub(crate) run_deadline_ms: Option<u64>,
}

/// What became of the wish to go on.
#[derive(Debug)]
pub(crate) struct Continued {
    /// How the session was left.
    pub(crate) left: Left,
    /// The prompt that goes on; none when nothing was left open, or the agent sees it otherwise.
    pub(crate) receipt: Option<Receipt>,
}

/// Goes on with what was left open.
///
/// # Errors
/// 409 while a prompt runs or waits, 501 where the agent cannot go on, and those of an admission; nothing was sent then.
pub(crate) async fn go_on(
    workspace: &Arc<Workspace>,
    session: &Session,
    client: Option<&str>,
    patience: Patience,
) -> Result<Continued, Refusal> {
    let not_held = |error| Refusal::not_held(session.id(), error, || busy(session));
    let held = session.hold(Meanwhile::Wait).map_err(not_held)?;
    let (left, goes_on) = asked(workspace, session).await?;
    if session.status().has_active_prompt {
        // It came while the session was held, and is what its caller wants now.
        return Err(busy(session));
    }
    let receipt = match goes_on {
        false => None,
        true => Some(admit_new(workspace, session, continuation(workspace, session, client, patience))?),
    };
    drop(held);
    Ok(Continued { left, receipt })
}

/// Whether what was left open can be gone on with now. An agent that does not say so is one that does not.
pub(crate) async fn can_go_on(workspace: &Arc<Workspace>, session: &Session, left: Left) -> bool {
    left != Left::Nothing
        && is_able(workspace)
        && agent_goes_on(session, left).await.unwrap_or(false)
        && !session.status().has_active_prompt
}

async fn asked(workspace: &Arc<Workspace>, session: &Session) -> Result<(Left, bool), Refusal> {
    if !is_able(workspace) {
        return Err(CONTINUE.unsupported(session.id()));
    }
    // An agent that does not know this inquiry answers so, and has nothing to write.
    let _ = session.ask(FLUSH, "{}", ASIDE_MS).await;
    let left = how_it_was_left(workspace, session).await?;
    if left == Left::Nothing {
        return Ok((left, false));
    }
    Ok((left, agent_goes_on(session, left).await?))
}

/// A recorded agent knows nothing of a turn that was cut but what it is asked, and to ask something of our own would be a prompt that nobody
/// wrote.
fn is_able(workspace: &Workspace) -> bool {
    workspace.options.mode == Mode::Native
}

/// Whether the agent would go on with the same as we say that was left.
async fn agent_goes_on(session: &Session, left: Left) -> Result<bool, Refusal> {
    let answer = CONTINUE.ask(session, &json!({})).await?;
    Ok(answer["accepted"] == true && answer["interruption"] == word(left))
}

fn continuation(workspace: &Workspace, session: &Session, client: Option<&str>, patience: Patience) -> Prompt {
    let content = Content {
        blocks: "[]".to_owned(),
        text: String::new(),
        prompt_id: None,
        deadline_ms: patience.deadline_ms,
        run_deadline_ms: patience.run_deadline_ms,
        retry: false,
        extra: Some(GO_ON.to_owned()),
    };
    Prompt { alone: true, ..prompt(workspace, session, client, content) }
}

fn busy(session: &Session) -> Refusal {
    Refusal::busy(session.id(), "Cannot continue while a prompt runs or waits")
}
