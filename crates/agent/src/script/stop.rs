//! Scripts that end otherwise than by a normal answer, or do not end.

use std::future::pending;

use acp::RpcError;
use acp::rpc_error::INTERNAL_ERROR;
use acp::schema::StopReason;
use serde_json::json;

use super::{Arguments, Script, code};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

pub(super) const FAIL: Script = Script {
    name: "fail",
    arguments: Arguments::MaybeText,
    example: "fail no disk",
    what: "ends in a JSON-RPC error with these details",
    act: |_, details| Box::pin(async { Ok(fail(details)) }),
};

pub(super) const REJECT: Script = Script {
    name: "reject",
    arguments: Arguments::Code,
    example: "reject -32602",
    what: "answers with an error of this number; what follows the number it says before",
    act: |turn, arguments| Box::pin(reject(turn, arguments)),
};

pub(super) const STOP: Script = Script {
    name: "stop",
    arguments: Arguments::Word,
    example: "stop pause_turn",
    what: "says a few words and stops for this reason, which may be any word",
    act: |turn, reason| Box::pin(stop(turn, reason)),
};

pub(super) const REFUSE: Script = Script {
    name: "refuse",
    arguments: Arguments::None,
    example: "refuse",
    what: "refuses to answer",
    act: |turn, _| Box::pin(say_and_stop(turn, "I would rather not.", StopReason::Refusal)),
};

pub(super) const MAX_TOKENS: Script = Script {
    name: "max_tokens",
    arguments: Arguments::None,
    example: "max_tokens",
    what: "runs out of tokens in mid-sentence",
    act: |turn, _| Box::pin(say_and_stop(turn, "The answer is quite long and", StopReason::MaxTokens)),
};

pub(super) const HANG: Script = Script {
    name: "hang",
    arguments: Arguments::None,
    example: "hang",
    what: "says nothing and waits to be cancelled",
    act: |turn, _| Box::pin(hang(turn)),
};

pub(super) const STUCK: Script = Script {
    name: "stuck",
    arguments: Arguments::None,
    example: "stuck",
    what: "says its whole text and waits to be cancelled",
    act: |turn, _| Box::pin(stuck(turn)),
};

fn fail(details: &str) -> Ending {
    let details = if details.is_empty() { "the script says so" } else { details };
    Ending::Fail(RpcError::new(INTERNAL_ERROR, "Internal error").with_data(&json!({"details": details})))
}

async fn reject(turn: &mut Turn, arguments: &str) -> Outcome {
    let (number, words) = code(arguments).unwrap_or((INTERNAL_ERROR, ""));
    if !words.is_empty() {
        turn.say(words).await;
    }
    Ok(Ending::Fail(RpcError::new(number, "the script says so")))
}

async fn stop(turn: &mut Turn, reason: &str) -> Outcome {
    turn.say("That is all for now.").await;
    Ok(Ending::StopFor(reason.to_owned()))
}

async fn say_and_stop(turn: &mut Turn, text: &str, reason: StopReason) -> Outcome {
    turn.say(text).await;
    Ok(Ending::Stop(reason))
}

async fn hang(turn: &mut Turn) -> Outcome {
    turn.unless_cancelled(pending()).await
}

async fn stuck(turn: &mut Turn) -> Outcome {
    turn.say("This is the whole answer.").await;
    hang(turn).await
}
