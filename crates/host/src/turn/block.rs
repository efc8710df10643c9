//! The response block under way: what the agent has said since its last tool call.

use serde_json::Value;

use super::json::{text_part, thought_part};
use crate::limits::BLOCK_BYTES_MAX;

/// What a run costs beside its text, in bytes. An agent that thinks between any two letters has many.
const RUN_BYTES: usize = 128;

/// Texts and thoughts in the order they came, within a bound.
#[derive(Debug, Default)]
pub(crate) struct Block {
    runs: Vec<Run>,
    bytes: usize,
    /// What did not fit, in bytes.
    left_out_bytes: usize,
    /// Runs before this one were said before a tool had given its result, and are no part of an answer.
    answer_from: usize,
}

/// Neighbouring chunks of one kind.
#[derive(Debug)]
struct Run {
    thought: bool,
    text: String,
}

impl Block {
    pub(crate) fn push(&mut self, thought: bool, chunk: &str) {
        let room = BLOCK_BYTES_MAX - self.bytes;
        let taken = &chunk[..chunk.floor_char_boundary(room)];
        self.left_out_bytes += chunk.len() - taken.len();
        // Once something was left out, a later chunk that happens to fit would stand in the wrong place.
        if taken.len() < chunk.len() {
            self.bytes = BLOCK_BYTES_MAX;
        }
        if taken.is_empty() {
            return;
        }
        self.bytes += taken.len();
        match self.runs[self.answer_from..].last_mut() {
            Some(run) if run.thought == thought => run.text.push_str(taken),
            _ => {
                self.bytes += RUN_BYTES;
                self.runs.push(Run { thought, text: taken.to_owned() });
            }
        }
        self.bytes = self.bytes.min(BLOCK_BYTES_MAX);
    }

    /// A tool has given its result: what was said so far was said before it, and the answer is still to come (turn
    /// status seed: text emitted before a tool call is discarded).
    pub(crate) fn answer_starts_here(&mut self) {
        self.answer_from = self.runs.len();
    }

    /// How many bytes did not fit.
    pub(crate) fn left_out_bytes(&self) -> u64 {
        self.left_out_bytes as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn has_text(&self) -> bool {
        self.runs.iter().any(|run| !run.thought)
    }

    /// The text that is an answer, thoughts left out.
    pub(crate) fn answer(&self) -> String {
        self.spoken(self.answer_from)
    }

    /// All of the text, thoughts left out.
    pub(crate) fn text(&self) -> String {
        self.spoken(0)
    }

    fn spoken(&self, from: usize) -> String {
        self.runs[from..].iter().filter(|run| !run.thought).map(|run| run.text.as_str()).collect()
    }

    /// The parts of a record, and an empty block.
    pub(crate) fn take_parts(&mut self) -> Vec<Value> {
        let block = std::mem::take(self);
        let part = |run: &Run| if run.thought { thought_part(&run.text) } else { text_part(&run.text) };
        let mut parts: Vec<_> = block.runs.iter().map(part).collect();
        if block.left_out_bytes > 0 {
            parts.push(text_part(&format!("\n[{} more bytes were not recorded]", block.left_out_bytes)));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes in a short notation: `t:` a text, `?:` a thought, `|` a tool's result.
    fn block(script: &[&str]) -> Block {
        let mut block = Block::default();
        for step in script {
            match step.split_once(':') {
                Some((kind, chunk)) => block.push(kind == "?", chunk),
                None => block.answer_starts_here(),
            }
        }
        block
    }

    fn check(script: &[&str], answer: &str, text: &str, parts: usize) {
        let mut block = block(script);
        assert_eq!((block.answer(), block.text()), (answer.to_owned(), text.to_owned()), "{script:?}");
        assert_eq!(block.take_parts().len(), parts, "{script:?}");
        assert!(block.is_empty(), "{script:?}");
    }

    #[test]
    fn chunks_of_one_kind_are_one_part() {
        check(&[], "", "", 0);
        check(&["t:a", "t:b"], "ab", "ab", 1);
        check(&["?:hm", "t:a", "?:so", "t:b"], "ab", "ab", 4);
        check(&["?:hm"], "", "", 1);
        check(&["t:"], "", "", 0);
    }

    #[test]
    fn what_was_said_before_a_tools_result_is_no_answer() {
        check(&["t:wait", "|", "t:done"], "done", "waitdone", 2);
        check(&["t:wait", "|"], "", "wait", 1);
    }

    #[test]
    fn a_block_stops_at_its_bound_and_says_so() {
        let mut block = block(&["t:a"]);
        block.push(false, &"é".repeat(BLOCK_BYTES_MAX));
        block.push(false, "late");
        assert!(block.text().len() <= BLOCK_BYTES_MAX);
        assert!(!block.text().contains("late"));
        let parts = block.take_parts();
        assert!(parts[1].to_string().contains("more bytes were not recorded"));
    }
}
