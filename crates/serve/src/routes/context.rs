//! `GET /session/:id/context`: what the agent says of its modes and models, and how the conversation was left (wire rules,
//! section 13.8).

use serde_json::json;

use crate::agent_state::agent_state;
use crate::continuation::can_go_on;
use crate::dispatch::Call;
use crate::recovery::{how_it_was_left, word};
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};

pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (session, _) = call.session_and_client()?;
    let left = how_it_was_left(call.workspace, &session).await?;
    let can_continue = can_go_on(call.workspace, &session, left).await;
    let mut state = agent_state(&session);
    if let Some(state) = state.as_object_mut() {
        state.remove("_meta");
    }
    Ok(ok(&json!({
        "v": 1,
        "sessionId": session.id(),
        "workspaceCwd": session.workspace_cwd(),
        "recovery": { "kind": word(left), "canContinue": can_continue },
        "state": state,
    })))
}
