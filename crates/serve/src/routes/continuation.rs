//! `POST /session/:id/continue` (wire rules, section 13.5).

use serde_json::json;
use transcript::Left;

use crate::content::deadlines;
use crate::continuation::{Patience, go_on};
use crate::dispatch::Call;
use crate::recovery::word;
use crate::refusal::Refusal;
use crate::reply::{Reply, ok};

/// Goes on with the turn that was left open, if one was.
pub(crate) async fn post(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (deadline_ms, run_deadline_ms) = deadlines(&call.fields)?;
    let (session, client) = call.open_session_and_client()?;
    let patience = Patience { deadline_ms, run_deadline_ms };
    let continued = go_on(call.workspace, &session, client, patience).await?;
    let interruption = if continued.left == Left::Nothing { "none" } else { word(continued.left) };
    Ok(ok(&match continued.receipt {
        None => json!({ "accepted": false, "interruption": interruption }),
        Some(receipt) => json!({
            "accepted": true,
            "interruption": interruption,
            "promptId": receipt.prompt_id,
            "lastEventId": receipt.last_event_id,
            "eventEpoch": receipt.event_epoch,
        }),
    }))
}
