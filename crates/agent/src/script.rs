//! The repertoire: which text plays which script.

use std::pin::Pin;

use crate::ending::Outcome;
use crate::turn::Turn;

mod disobey;
mod garble;
mod quote;
mod speak;
mod steer;
mod steps;
mod stop;
mod tool;
mod wreck;

/// One thing the agent can be told to do.
///
/// A prompt plays the first script of [`SCRIPTS`] whose name is its first word and whose arguments
/// fit the rest; `slow down, please` fits none but the last, the echo.
pub struct Script {
    /// The prompt's first word; empty for the script that takes everything.
    pub name: &'static str,
    /// What may follow the name.
    pub arguments: Arguments,
    /// A prompt that plays it.
    pub example: &'static str,
    /// What it does, in a few words for a help text.
    pub what: &'static str,
    act: Act,
}

/// What may follow a script's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// Nothing.
    None,
    /// A whole number.
    Number,
    /// A whole number or nothing.
    MaybeNumber,
    /// Some text.
    Text,
    /// Some text or nothing.
    MaybeText,
    /// One word.
    Word,
    /// A JSON-RPC error number, and some text or nothing.
    Code,
}

type Playing<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
type Act = for<'a> fn(&'a mut Turn, &'a str) -> Playing<'a>;

/// Everything the agent can do, in the order in which it is tried. The last takes any text.
pub const SCRIPTS: &[Script] = &[
    speak::SLOW,
    speak::THINK,
    speak::LONG,
    speak::WIDE,
    speak::EMPTY,
    speak::RECALL,
    tool::TOOL,
    steps::STEPS,
    quote::QUOTE,
    quote::MISQUOTE,
    steer::STEER,
    stop::FAIL,
    stop::REJECT,
    stop::STOP,
    stop::REFUSE,
    stop::MAX_TOKENS,
    stop::HANG,
    stop::STUCK,
    disobey::DEAF,
    disobey::LATE,
    disobey::HASTY,
    disobey::TWICE,
    garble::NUMBERED,
    garble::GARBLE,
    garble::MUMBLE,
    wreck::DIE,
    wreck::NOISE,
    wreck::SURROGATE,
    wreck::ENDLESS,
    wreck::FLOOD,
    wreck::GRANDCHILD,
    speak::ECHO,
];

/// Plays the script that the text names.
pub(crate) async fn play(turn: &mut Turn, text: &str) -> Outcome {
    let (script, arguments) = find(text);
    (script.act)(turn, arguments).await
}

/// The script that the text names, and what follows its name.
fn find(text: &str) -> (&'static Script, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let named = SCRIPTS.iter().find(|script| script.name == word && script.arguments.fit(rest.trim()));
    match named {
        Some(script) if !script.name.is_empty() => (script, rest.trim()),
        _ => (&speak::ECHO, text),
    }
}

impl Arguments {
    fn fit(self, rest: &str) -> bool {
        let number = || rest.parse::<u64>().is_ok();
        match self {
            Self::None => rest.is_empty(),
            Self::Number => number(),
            Self::MaybeNumber => rest.is_empty() || number(),
            Self::Text => !rest.is_empty(),
            Self::MaybeText => true,
            Self::Word => rest.split_whitespace().count() == 1,
            Self::Code => code(rest).is_some(),
        }
    }
}

/// The number that [`Arguments::fit`] has found, or what stands in for none.
fn number(arguments: &str, default: u64) -> u64 {
    arguments.parse().unwrap_or(default)
}

/// The error number that [`Arguments::fit`] has found, and what stands behind it.
fn code(arguments: &str) -> Option<(i64, &str)> {
    let (number, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    Some((number.parse().ok()?, rest.trim()))
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: &str, arguments: &str) {
        let (script, rest) = find(text);
        assert_eq!((script.name, rest), (name, arguments), "{text}");
    }

    #[test]
    fn the_first_word_names_the_script() {
        check("slow 200", "slow", "200");
        check("tool ls -l  | wc", "tool", "ls -l  | wc");
        check("fail", "fail", "");
        check("fail no disk", "fail", "no disk");
        check("deaf", "deaf", "");
        check("deaf\n50", "deaf", "50");
        check("think about\nit", "think", "about\nit");
        check("stop pause_turn", "stop", "pause_turn");
        check("reject -32602", "reject", "-32602");
        check("reject -32602 but why", "reject", "-32602 but why");
    }

    #[test]
    fn what_names_no_script_or_does_not_fit_is_echoed_whole() {
        for text in [
            "",
            "hello",
            "slow",
            "slow down",
            "slow -1",
            "tool",
            "hang on",
            "deaf ears",
            "Slow 5",
            "slower 5",
            "empty the bin",
            "stop",
            "stop that now",
            "reject",
            "reject this",
            "quote me",
            "steps",
        ] {
            check(text, "", text);
        }
    }

    #[test]
    fn each_example_plays_its_own_script() {
        for script in SCRIPTS {
            assert_eq!(find(script.example).0.name, script.name, "{}", script.example);
        }
    }

    #[test]
    fn names_are_distinct_and_only_the_last_takes_everything() {
        for (n, script) in SCRIPTS.iter().enumerate() {
            assert!(SCRIPTS[..n].iter().all(|earlier| earlier.name != script.name), "{}", script.name);
            assert_eq!(script.name.is_empty(), n == SCRIPTS.len() - 1, "{}", script.name);
            assert!(!script.what.is_empty() && !script.example.is_empty());
        }
    }
}
