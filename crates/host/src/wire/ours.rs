//! Words that only daemon and host have between them, and that an agent may not say.
//!
//! The daemon believes them in two places: in the data of an error, where they say what became of a prompt, and in the `_meta` of a
//! result, where they say how a turn ended and who has it. Both are emptied of them before anything of an answer of the agent is read,
//! so that what the host adds is all that the daemon finds. A code of ours in an agent's mouth would go on record, and "the agent has
//! nothing of it" would have a prompt sent twice.

use std::borrow::Cow;

use acp::{Message, raw_at, with_member, without_prefixed};

use super::OURS;

/// An answer of the agent without what only turnd may say in it, in whatever spelling; none when there is nothing of that kind.
pub(crate) fn without_our_words(message: &Message) -> Option<Message> {
    let mut line = Cow::Borrowed(std::str::from_utf8(message.raw()).unwrap_or("null"));
    for (part, name, place) in [(message.error(), "error", "data"), (message.result(), "result", "_meta")] {
        let Some(part) = part else { continue };
        let Some(said) = raw_at(part, &[place]) else { continue };
        if let Cow::Owned(kept) = without_prefixed(said, OURS) {
            line = with_member(&line, name, &with_member(part, place, &kept)).into();
        }
    }
    match line {
        Cow::Borrowed(_) => None,
        Cow::Owned(line) => Message::parse(line.into()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rest: &str, cleaned: Option<&str>) {
        let line = |rest: &str| format!(r#"{{"jsonrpc":"2.0","id":"\u0031",{rest}}}"#);
        let message = Message::parse(line(rest).into()).unwrap();
        let left = without_our_words(&message).map(|message| String::from_utf8(message.raw().to_vec()).unwrap());
        assert_eq!(left, cleaned.map(line), "{rest}");
    }

    #[test]
    fn our_words_are_taken_out_of_an_agents_answer_however_it_spells_them() {
        for word in [r"turnd/code", r"turnd\/code", r"\u0074urnd/code", r"t\u0075rnd\u002Fcode"] {
            check(
                &format!(r#""error":{{"code":1,"message":"m","data":{{"{word}":"x","d":1e9999}}}}"#),
                Some(r#""error":{"code":1,"message":"m","data":{"d":1e9999}}"#),
            );
            check(
                &format!(r#""result":{{"_meta":{{"a":"\ud83d","{word}":{{"state":"completed"}}}},"stopReason":"x"}}"#),
                Some(r#""result":{"_meta":{"a":"\ud83d"},"stopReason":"x"}"#),
            );
        }
        let both = r#""result":{"_meta":{"turnd/turn":1}},"error":{"data":{"turnd/code":1}}"#;
        check(both, Some(r#""result":{"_meta":{}},"error":{"data":{}}"#));
    }

    #[test]
    fn an_answer_without_them_is_left_as_it_is() {
        for rest in [
            r#""result":null"#,
            r#""result":{"_meta":{"qwen.branchPoint":{}},"turnd/turn":1}"#,
            r#""error":{"code":1,"message":"turnd/code","data":{"x":{"turnd/code":1}}}"#,
            r#""error":{"code":1,"message":"m","data":"turnd/code"}"#,
        ] {
            check(rest, None);
        }
    }
}
