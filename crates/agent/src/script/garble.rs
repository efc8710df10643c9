//! Scripts that write lines as some agents do: with ids where none belong, or so that they cannot be read.

use std::time::Duration;

use acp::DEPTH_LEVELS_MAX;
use bytes::Bytes;

use super::{Arguments, Script};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

/// Time in which much may happen to whoever listens.
const SLOWNESS: Duration = Duration::from_millis(1_500);

pub(super) const NUMBERED: Script = Script {
    name: "numbered",
    arguments: Arguments::None,
    example: "numbered",
    what: "sends its updates with ids, as if they were requests",
    act: |turn, _| Box::pin(numbered(turn)),
};

/// Of its three lines. The `late` one is spoiled behind the answer, the `slow` one after [a while](SLOWNESS).
pub(super) const GARBLE: Script = Script {
    name: "garble",
    arguments: Arguments::MaybeText,
    example: "garble nan",
    what: "spoils its second line: nan, deep, tab, torn, joined, halves, bytes, late or slow",
    act: |turn, how| Box::pin(garble(turn, how)),
};

pub(super) const MUMBLE: Script = Script {
    name: "mumble",
    arguments: Arguments::MaybeText,
    example: "mumble nan",
    what: "spoils the line of its answer: nan, deep, tab, torn, batched, joined or slow",
    act: |turn, how| Box::pin(mumble(turn, how)),
};

async fn numbered(turn: &mut Turn) -> Outcome {
    for (id, text) in [("null", "first"), ("7", " second"), ("{}", " third")] {
        let line =
            text_of(&turn.line(text)).replacen(r#""jsonrpc":"2.0""#, &format!(r#""jsonrpc":"2.0","id":{id}"#), 1);
        turn.raw(line).await;
    }
    Ok(Ending::END_TURN)
}

async fn garble(turn: &mut Turn, how: &str) -> Outcome {
    turn.say("first").await;
    if how == "late" {
        let line = unreadable("nan", &turn.line(" late"));
        turn.answer_with(&Ending::END_TURN, |answer| [answer, &line[..]].concat().into()).await;
        return Ok(Ending::Answered);
    }
    if how == "slow" {
        turn.pause(SLOWNESS).await?;
    }
    let line = unreadable(how, &turn.line(" second"));
    turn.raw(line).await;
    turn.say(" third").await;
    Ok(Ending::END_TURN)
}

async fn mumble(turn: &mut Turn, how: &str) -> Outcome {
    turn.say("this is the answer").await;
    if how == "slow" {
        turn.pause(SLOWNESS).await?;
    }
    turn.answer_with(&Ending::END_TURN, |answer| unreadable(how, answer)).await;
    Ok(Ending::Answered)
}

/// The line as it should not be written.
fn unreadable(how: &str, line: &[u8]) -> Bytes {
    let line = text_of(line);
    let line = line.trim_end();
    let with = |member: &str| format!("{},{member}}}\n", line.strip_suffix('}').unwrap_or(line));
    match how {
        "deep" => {
            let levels = DEPTH_LEVELS_MAX + 2;
            with(&format!(r#""_meta":{}{}"#, "[".repeat(levels), "]".repeat(levels)))
        }
        "tab" => with("\"_meta\":\"a\tb\""),
        "torn" => {
            let (head, tail) = line.split_at(line.len() / 2);
            format!("{head}debug\n{tail}\n")
        }
        "batched" => format!("[{line}]\n"),
        "joined" => format!("{line}{line}\n"),
        "halves" => line.replacen("second", r"s\ud83dec\ude00ond", 1) + "\n",
        "bytes" => {
            let Some((head, tail)) = line.split_once("second") else { return line.to_owned().into() };
            return [head.as_bytes(), b"caf\xe9", tail.as_bytes(), b"\n"].concat().into();
        }
        _ => with(r#""_meta":{"cost":NaN}"#),
    }
    .into()
}

fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}
