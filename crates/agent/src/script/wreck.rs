//! Scripts that break the stream, the process, or what is around it.

use std::process::Stdio;

use acp::compose;
use serde_json::json;
use tokio::process::Command;

use super::{Arguments, Script, number};
use crate::ending::{Ending, Outcome};
use crate::limits::CHUNK_BYTES;
use crate::turn::Turn;

pub(super) const DIE: Script = Script {
    name: "die",
    arguments: Arguments::None,
    example: "die",
    what: "says a few words and kills the agent",
    act: |turn, _| Box::pin(die(turn)),
};

pub(super) const NOISE: Script = Script {
    name: "noise",
    arguments: Arguments::None,
    example: "noise",
    what: "writes lines that are no messages and a message in two halves, then answers",
    act: |turn, _| Box::pin(noise(turn)),
};

pub(super) const SURROGATE: Script = Script {
    name: "surrogate",
    arguments: Arguments::None,
    example: "surrogate",
    what: "answers with half a surrogate pair, which full JSON parsers refuse",
    act: |turn, _| Box::pin(surrogate(turn)),
};

pub(super) const ENDLESS: Script = Script {
    name: "endless",
    arguments: Arguments::Number,
    example: "endless 1000000",
    what: "writes a line of so many bytes that is no message, then answers",
    act: |turn, length| Box::pin(endless(turn, number(length, 0))),
};

pub(super) const FLOOD: Script = Script {
    name: "flood",
    arguments: Arguments::Number,
    example: "flood 10000",
    what: "sends so many updates as fast as it can",
    act: |turn, count| Box::pin(flood(turn, number(count, 0))),
};

pub(super) const GRANDCHILD: Script = Script {
    name: "grandchild",
    arguments: Arguments::None,
    example: "grandchild",
    what: "leaves a process behind in a session of its own and answers with its pid",
    act: |turn, _| Box::pin(grandchild(turn)),
};

/// Leaves a process that ignores soft signals and has neither our group nor our pipes. It prints its
/// pid once it is on its own; its parent is gone by then, so a search among our children does not
/// find it.
const LEAVE_BEHIND: &str = r#"
apart=$(command -v setsid || echo nohup)
"$apart" sh -c 'trap "" HUP INT TERM; echo $$; exec sleep 300 >/dev/null' </dev/null 2>/dev/null &
"#;

async fn die(turn: &mut Turn) -> Outcome {
    turn.say("these are my last words").await;
    turn.flush().await;
    Ok(Ending::Death)
}

async fn noise(turn: &mut Turn) -> Outcome {
    turn.say("before").await;
    for line in [
        "Warning: no config file, using defaults\n",
        "\n",
        "[]\n",
        "{}\n",
        "{\"jsonrpc\":\"2.0\",\"method\":\"session/upd\n",
    ] {
        turn.raw(line).await;
    }
    turn.raw_in_halves(compose::notification("_noise", &json!({"halves": 2}))).await;
    turn.say(" and after").await;
    Ok(Ending::END_TURN)
}

async fn surrogate(turn: &mut Turn) -> Outcome {
    let content = r#"{"type":"text","text":"half a pair: \ud83d"}"#;
    turn.raw_update(&format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{content}}}"#)).await;
    Ok(Ending::END_TURN)
}

async fn endless(turn: &mut Turn, length_bytes: u64) -> Outcome {
    let mut left = length_bytes;
    while left > 0 {
        let chunk_bytes = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES));
        turn.raw(vec![b'x'; chunk_bytes]).await;
        left -= chunk_bytes as u64;
    }
    turn.raw("\n").await;
    turn.say("over").await;
    Ok(Ending::END_TURN)
}

async fn flood(turn: &mut Turn, count: u64) -> Outcome {
    for update in 1..=count {
        turn.say(&format!("{update} ")).await;
        turn.check()?;
    }
    Ok(Ending::END_TURN)
}

async fn grandchild(turn: &mut Turn) -> Outcome {
    let left_behind = Command::new("sh").args(["-c", LEAVE_BEHIND]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match turn.unless_cancelled(left_behind).await? {
        Ok(output) => turn.say(String::from_utf8_lossy(&output.stdout).trim()).await,
        Err(error) => turn.say(&format!("nothing could be left behind: {error}")).await,
    }
    Ok(Ending::END_TURN)
}
