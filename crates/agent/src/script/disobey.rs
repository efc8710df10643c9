//! Scripts that break the order of a turn.

use std::future::pending;
use std::time::Duration;

use super::{Arguments, Script, number, speak};
use crate::ending::{Ending, Outcome};
use crate::turn::Turn;

/// Time between an answer and what comes too late, and between two of those.
const LATENESS: Duration = Duration::from_millis(20);

pub(super) const DEAF: Script = Script {
    name: "deaf",
    arguments: Arguments::MaybeNumber,
    example: "deaf 2000",
    what: "ignores cancel and streams for so many milliseconds, or hangs for good",
    act: |turn, time| Box::pin(deaf(turn, time.parse().ok())),
};

pub(super) const LATE: Script = Script {
    name: "late",
    arguments: Arguments::MaybeNumber,
    example: "late 3",
    what: "sends so many updates after its answer",
    act: |turn, count| Box::pin(late(turn, number(count, 3))),
};

pub(super) const HASTY: Script = Script {
    name: "hasty",
    arguments: Arguments::MaybeNumber,
    example: "hasty 500",
    what: "streams for so many milliseconds and answers right before its last words",
    act: |turn, time| Box::pin(hasty(turn, number(time, 0))),
};

pub(super) const TWICE: Script = Script {
    name: "twice",
    arguments: Arguments::None,
    example: "twice",
    what: "answers twice",
    act: |turn, _| Box::pin(twice(turn)),
};

async fn deaf(turn: &mut Turn, time_ms: Option<u64>) -> Outcome {
    turn.deafen();
    turn.say("not listening ").await;
    let Some(time_ms) = time_ms else { return pending().await };
    speak::stream(turn, Duration::from_millis(time_ms)).await?;
    Ok(Ending::END_TURN)
}

async fn late(turn: &mut Turn, count: u64) -> Outcome {
    turn.say("answered").await;
    turn.answer(&Ending::END_TURN).await;
    for update in 1..=count {
        turn.pause(LATENESS).await?;
        turn.say(&format!(" late {update}")).await;
    }
    Ok(Ending::Answered)
}

async fn hasty(turn: &mut Turn, time_ms: u64) -> Outcome {
    speak::stream(turn, Duration::from_millis(time_ms)).await?;
    turn.say("so far").await;
    turn.answer_before(&Ending::END_TURN, ", and the rest").await;
    Ok(Ending::Answered)
}

async fn twice(turn: &mut Turn) -> Outcome {
    turn.say("once, twice").await;
    turn.answer(&Ending::END_TURN).await;
    Ok(Ending::END_TURN)
}
