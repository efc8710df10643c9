//! The script that works for a while, and then asks what was said meanwhile.

use std::time::Duration;

use super::{Arguments, Script, number};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

pub(super) const STEER: Script = Script {
    name: "steer",
    arguments: Arguments::Number,
    example: "steer 500",
    what: "works for so many milliseconds, then asks what was said meanwhile and repeats it",
    act: |turn, time| Box::pin(steer(turn, number(time, 0))),
};

async fn steer(turn: &mut Turn, time_ms: u64) -> Outcome {
    turn.say("working").await;
    turn.pause(Duration::from_millis(time_ms)).await?;
    let heard = turn.drain().await?;
    turn.say(&format!("; heard: {}", if heard.is_empty() { "nothing".to_owned() } else { heard.join(", ") })).await;
    Ok(Ending::END_TURN)
}
