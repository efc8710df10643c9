//! Scripts that just answer, in their own time.

use std::time::Duration;

use super::{Arguments, Script, number};
use crate::ending::{Ending, Outcome};
use crate::limits::CHUNK_BYTES;
use crate::turn::Turn;

/// Time between two chunks of `slow`: often enough to look alive, seldom enough to read along.
const BEAT: Duration = Duration::from_millis(50);

/// What `wide` says: three bytes, which no power of two is a multiple of.
const WIDE_CHARACTER: &str = "€";

/// Chunks an echo comes in.
const ECHO_CHUNKS: usize = 3;

pub(super) const ECHO: Script = Script {
    name: "",
    arguments: Arguments::MaybeText,
    example: "hello there",
    what: "anything else is echoed in a few chunks",
    act: |turn, text| Box::pin(echo(turn, text)),
};

pub(super) const SLOW: Script = Script {
    name: "slow",
    arguments: Arguments::Number,
    example: "slow 2000",
    what: "streams for so many milliseconds",
    act: |turn, time| Box::pin(slow(turn, number(time, 0))),
};

pub(super) const THINK: Script = Script {
    name: "think",
    arguments: Arguments::MaybeText,
    example: "think about it",
    what: "thinks aloud first, then echoes",
    act: |turn, text| Box::pin(think(turn, text)),
};

pub(super) const LONG: Script = Script {
    name: "long",
    arguments: Arguments::Number,
    example: "long 100000",
    what: "answers with so many bytes",
    act: |turn, length| Box::pin(long(turn, number(length, 0))),
};

pub(super) const WIDE: Script = Script {
    name: "wide",
    arguments: Arguments::Number,
    example: "wide 10000",
    what: "answers with so many characters of three bytes each",
    act: |turn, count| Box::pin(wide(turn, number(count, 0))),
};

pub(super) const EMPTY: Script = Script {
    name: "empty",
    arguments: Arguments::None,
    example: "empty",
    what: "ends normally without a word",
    act: |_, _| Box::pin(async { Ok(Ending::END_TURN) }),
};

pub(super) const RECALL: Script = Script {
    name: "recall",
    arguments: Arguments::None,
    example: "recall",
    what: "says what was asked before in this session",
    act: |turn, _| Box::pin(recall(turn)),
};

async fn recall(turn: &mut Turn) -> Outcome {
    let asked = turn.asked();
    // The last one is the question itself.
    let before = asked.split_last().map_or(&asked[..], |(_, before)| before);
    turn.say(&format!("asked: {}", before.join(" | "))).await;
    Ok(Ending::END_TURN)
}

async fn echo(turn: &mut Turn, text: &str) -> Outcome {
    for chunk in chunks(&format!("echo: {text}"), ECHO_CHUNKS) {
        turn.say(chunk).await;
    }
    Ok(Ending::END_TURN)
}

async fn slow(turn: &mut Turn, time_ms: u64) -> Outcome {
    stream(turn, Duration::from_millis(time_ms)).await?;
    turn.say("done").await;
    Ok(Ending::END_TURN)
}

/// Says a number at every beat until the time is over.
pub(super) async fn stream(turn: &mut Turn, time: Duration) -> Result<(), crate::ending::Cancelled> {
    let mut left = time;
    for beat in 1_u64.. {
        if left.is_zero() {
            break;
        }
        turn.say(&format!("{beat} ")).await;
        let step = BEAT.min(left);
        turn.pause(step).await?;
        left -= step;
    }
    Ok(())
}

async fn think(turn: &mut Turn, text: &str) -> Outcome {
    turn.think("let me think").await;
    turn.think(&format!(" about {text:?}")).await;
    echo(turn, text).await
}

/// Digits that count the bytes, so that a reader sees where something is missing.
async fn long(turn: &mut Turn, length_bytes: u64) -> Outcome {
    let digits: String = ('0'..='9').cycle().take(CHUNK_BYTES + 10).collect();
    let mut said = 0;
    while said < length_bytes {
        let chunk_bytes = CHUNK_BYTES.min(usize::try_from(length_bytes - said).unwrap_or(CHUNK_BYTES));
        let start = usize::try_from(said % 10).unwrap_or(0);
        turn.say(&digits[start..start + chunk_bytes]).await;
        said += chunk_bytes as u64;
    }
    Ok(Ending::END_TURN)
}

async fn wide(turn: &mut Turn, count: u64) -> Outcome {
    let whole = WIDE_CHARACTER.repeat(CHUNK_BYTES / WIDE_CHARACTER.len());
    let mut left_bytes = count.saturating_mul(WIDE_CHARACTER.len() as u64);
    while left_bytes > 0 {
        let chunk = &whole[..usize::try_from(left_bytes).map_or(whole.len(), |left| left.min(whole.len()))];
        turn.say(chunk).await;
        left_bytes -= chunk.len() as u64;
    }
    Ok(Ending::END_TURN)
}

/// Cuts a text into at most so many pieces, none of them empty, between characters.
fn chunks(text: &str, count_max: usize) -> Vec<&str> {
    let (mut rest, mut pieces) = (text, Vec::new());
    for left in (1..=count_max).rev() {
        let cut = text_boundary(rest, rest.len().div_ceil(left));
        let (piece, behind) = rest.split_at(cut);
        rest = behind;
        if !piece.is_empty() {
            pieces.push(piece);
        }
    }
    pieces
}

/// The first place between characters at or after `at`.
fn text_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|place| text.is_char_boundary(*place)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_comes_in_a_few_pieces_that_join_to_the_text() {
        for text in ["echo: ", "echo: a", "echo: é😀é😀é😀", "a", "éé", ""] {
            let pieces = chunks(text, ECHO_CHUNKS);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() <= ECHO_CHUNKS && pieces.iter().all(|piece| !piece.is_empty()));
        }
        assert_eq!(chunks("echo: hello", 3), ["echo", ": he", "llo"]);
    }
}
