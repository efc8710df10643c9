//! How the content of a prompt stands in its user record: one text a block. Who writes the record and who compares it later must agree.

use serde_json::Value;

/// The texts of a prompt's content blocks. Of what is no text only its name: one image would fill the page in which a reader looks for
/// the outcome. What is no list has none.
#[must_use]
pub fn prompt_texts(blocks: &Value) -> Vec<String> {
    blocks.as_array().into_iter().flatten().map(block_text).collect()
}

/// The text that stands for one content block.
#[must_use]
pub fn block_text(block: &Value) -> String {
    let field = |pointer| block.pointer(pointer).and_then(Value::as_str);
    match field("/type") {
        Some("text") => field("/text").unwrap_or_default().to_owned(),
        Some("resource_link") => format!("[{}]", field("/uri").unwrap_or("resource")),
        Some("resource") => match field("/resource/text") {
            Some(text) => text.to_owned(),
            None => format!("[{}]", field("/resource/uri").unwrap_or("resource")),
        },
        Some(kind) => format!("[{kind} {}]", field("/mimeType").unwrap_or("of an unknown type")),
        None => "[content]".to_owned(),
    }
}
