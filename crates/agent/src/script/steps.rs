//! The script that does one thing after the other.

use acp::schema::{SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields};

use super::{Arguments, Script};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

pub(super) const STEPS: Script = Script {
    name: "steps",
    arguments: Arguments::Text,
    example: "steps a tool b",
    what: "thinks, calls a tool that needs no permission, or says the word, in turn",
    act: |turn, words| Box::pin(steps(turn, words)),
};

async fn steps(turn: &mut Turn, words: &str) -> Outcome {
    for word in words.split_whitespace() {
        match word {
            "think" => turn.think("hm").await,
            "tool" => call(turn).await,
            word => turn.say(word).await,
        }
        turn.check()?;
    }
    Ok(Ending::END_TURN)
}

/// A tool call from its beginning to its end, of which nobody is asked.
async fn call(turn: &Turn) {
    let id = turn.call_id();
    turn.update(SessionUpdate::ToolCall(ToolCall::new(id.clone(), "look"))).await;
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed).content(vec!["what it saw".into()]);
    turn.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields))).await;
}
