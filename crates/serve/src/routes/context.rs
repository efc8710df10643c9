//! `GET /session/:id/context`: what the agent says of its modes and models, and how the conversation was left (wire rules,
//! section 13.8).

use serde_json::json;

use crate::agent_state::agent_state;
use crate::dispatch::Call;
use crate::recovery::{how_it_was_left, word};
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};

/// Whether a turn that was left open can be gone on with: no route here does that yet.
const CAN_CONTINUE: bool = false;

pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.session_and_client()?;
    let left = how_it_was_left(call.workspace, &session).await?;
    let mut state = agent_state(&session);
    if let Some(state) = state.as_object_mut() {
        state.remove("_meta");
    }
    Ok(ok(&json!({
        "v": 1,
        "sessionId": session.id(),
        "workspaceCwd": session.workspace_cwd(),
        "recovery": { "kind": word(left), "canContinue": CAN_CONTINUE && left != transcript::Left::Nothing },
        "state": state,
    })))
}
