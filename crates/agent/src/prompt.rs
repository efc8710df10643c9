//! What the client said.

use acp::{lenient_value, raw_at};
use serde_json::Value;

/// The content blocks of a prompt, or `None` when it has no list of them.
pub(crate) fn blocks(params: &str) -> Option<Vec<Value>> {
    match lenient_value(raw_at(params, &["prompt"])?)? {
        Value::Array(blocks) => Some(blocks),
        _ => None,
    }
}

/// The text that names a script: all text blocks, one a line, without the space around them.
pub(crate) fn text(blocks: &[Value]) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    texts.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_blocks_are_joined_and_others_left_out() {
        let params = r#"{"sessionId":"s","prompt":[{"type":"text","text":" slow 5"},{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"text","text":"b\ud83d "}]}"#;
        assert_eq!(text(&blocks(params).unwrap()), "slow 5\nb\u{fffd}");
    }

    #[test]
    fn a_prompt_without_a_list_of_blocks_is_none() {
        for params in ["{}", r#"{"prompt":"text"}"#, r#"{"prompt":null}"#, "null", ""] {
            assert_eq!(blocks(params), None);
        }
        assert_eq!(text(&blocks(r#"{"prompt":[]}"#).unwrap()), "");
    }
}
