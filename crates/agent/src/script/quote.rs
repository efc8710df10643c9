//! Scripts that say what they take for the user's words, as some agents do in front of their answers.

use serde_json::json;

use super::{Arguments, Script, number};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

pub(super) const QUOTE: Script = Script {
    name: "quote",
    arguments: Arguments::MaybeNumber,
    example: "quote 1",
    what: "repeats the prompt as so many messages of the user's, then answers",
    act: |turn, count| Box::pin(quote(turn, number(count, 1))),
};

pub(super) const MISQUOTE: Script = Script {
    name: "misquote",
    arguments: Arguments::None,
    example: "misquote",
    what: "repeats something else than the prompt as the user's message, then answers",
    act: |turn, _| Box::pin(misquote(turn)),
};

async fn quote(turn: &mut Turn, count: u64) -> Outcome {
    let prompt = turn.asked().pop().unwrap_or_default();
    for message in 1..=count {
        heard(turn, &format!("user-{message}"), &prompt).await;
        turn.check()?;
    }
    answer(turn).await
}

async fn misquote(turn: &mut Turn) -> Outcome {
    heard(turn, "user-1", "something that nobody asked").await;
    answer(turn).await
}

/// A message of the user's, as the agent has understood it.
async fn heard(turn: &Turn, id: &str, text: &str) {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": content });
    turn.raw_update(&update.to_string()).await;
}

async fn answer(turn: &Turn) -> Outcome {
    turn.say("This is what it comes to.").await;
    Ok(Ending::END_TURN)
}
