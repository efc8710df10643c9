//! The body of a prompt: what is checked before anyone looks for the session (wire rules, section 8.1), and what travels on.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::body::Fields;
use crate::identity::is_prompt_id;
use crate::limits::{DEADLINE_MS_MAX, MEDIA_BLOCKS_MAX, PROMPT_NESTING_MAX};
use crate::refusal::Refusal;
use crate::requests::{number, whole_number};

/// Keys that are ours; every other key travels to the agent.
const OWN_KEYS: [&str; 7] =
    ["prompt", "promptId", "deadlineMs", "runDeadlineMs", "eventDetailMode", "delivery", "retry"];

/// How the members of `_meta` begin that are a daemon's orders.
const ORDERS: &str = "qwen.daemon.";

/// A prompt's body that passed every check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// The blocks: the raw text of an array.
    pub(crate) blocks: String,
    /// The same for people.
    pub(crate) text: String,
    /// The caller's own id.
    pub(crate) prompt_id: Option<String>,
    /// How long the caller waits, in milliseconds from admission.
    pub(crate) deadline_ms: Option<u64>,
    /// How long the caller waits, in milliseconds from dispatch.
    pub(crate) run_deadline_ms: Option<u64>,
    /// The prompt repeats a failed one.
    pub(crate) retry: bool,
    /// What else there was: the raw text of an object.
    pub(crate) extra: Option<String>,
}

/// Checks a body.
///
/// # Errors
/// 400, for the first thing that is wrong.
pub(crate) fn parse(fields: &Fields<'_>) -> Result<Content, Refusal> {
    let missing = || invalid("`prompt` is required and must be a non-empty array of content blocks");
    let raw = fields.get("prompt").ok_or_else(missing)?;
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(|_| missing())?;
    if parts.is_empty() {
        return Err(missing());
    }
    if nesting(raw.get()) > PROMPT_NESTING_MAX {
        return Err(invalid(format!("`prompt` is nested too deep (max {PROMPT_NESTING_MAX} levels)")));
    }
    let blocks: Vec<Value> =
        serde_json::from_str(raw.get()).map_err(|error| invalid(format!("`prompt` cannot be read: {error}")))?;
    check_blocks(&blocks)?;
    let (deadline_ms, run_deadline_ms) = deadlines(fields)?;
    check_modes(fields)?;
    Ok(Content {
        blocks: raw.get().to_owned(),
        text: display_text(&blocks),
        prompt_id: prompt_id(fields)?,
        deadline_ms,
        run_deadline_ms,
        retry: fields.get("retry").is_some_and(|raw| raw.get() == "true"),
        extra: extra(fields),
    })
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::bad_request("invalid_prompt", message)
}

/// How deep arrays and objects stand in each other in a JSON text.
fn nesting(json: &str) -> usize {
    let (mut deepest, mut depth) = (0, 0_usize);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Goes behind the end of the string whose first quote was just read.
fn skip_string(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => return,
            _ => {}
        }
    }
}

fn check_blocks(blocks: &[Value]) -> Result<(), Refusal> {
    if !blocks.iter().all(Value::is_object) {
        return Err(invalid("each `prompt` element must be a content block object"));
    }
    let is_media = |block: &&Value| matches!(block["type"].as_str(), Some("image" | "audio"));
    if blocks.iter().filter(is_media).count() > MEDIA_BLOCKS_MAX {
        return Err(invalid("`prompt` carries too many media blocks (max 256)"));
    }
    blocks.iter().filter(|block| block["type"] == "image").try_for_each(check_image)
}

fn check_image(block: &Value) -> Result<(), Refusal> {
    let media = block["mimeType"].as_str().unwrap_or_default();
    if media.eq_ignore_ascii_case("image/svg+xml") {
        return Err(invalid("SVG images are not supported"));
    }
    let inline = block["data"].is_string() && media.starts_with("image/");
    let attached = block["attachmentId"].is_string() && whole_number(&block["size"]).is_some() && !media.is_empty();
    if inline || attached {
        return Ok(());
    }
    Err(invalid(
        "each `prompt` image block must be an inline content block or carry `attachmentId`, `size`, and `mimeType`",
    ))
}

/// How long the caller waits, in milliseconds from admission and from dispatch.
///
/// # Errors
/// 400 `invalid_deadline_ms` and `invalid_run_deadline_ms`.
pub(crate) fn deadlines(fields: &Fields<'_>) -> Result<(Option<u64>, Option<u64>), Refusal> {
    let deadline_ms = deadline(fields, "deadlineMs", "invalid_deadline_ms")?;
    Ok((deadline_ms, deadline(fields, "runDeadlineMs", "invalid_run_deadline_ms")?))
}

fn deadline(fields: &Fields<'_>, name: &str, code: &'static str) -> Result<Option<u64>, Refusal> {
    let Some(raw) = fields.get(name) else { return Ok(None) };
    let after_ms = number(raw, 1..=DEADLINE_MS_MAX);
    after_ms
        .map(Some)
        .map_err(|()| Refusal::bad_request(code, format!("`{name}` must be a positive integer (milliseconds)")))
}

fn check_modes(fields: &Fields<'_>) -> Result<(), Refusal> {
    let detail = fields.get("eventDetailMode").map(|raw| raw.get());
    if !matches!(detail, None | Some("\"full\"" | "\"summary\"")) {
        let message = "`eventDetailMode` must be `full` or `summary`";
        return Err(Refusal::bad_request("invalid_event_detail_mode", message));
    }
    match fields.contains_key("delivery") {
        // Channels are not ours; a prompt that wants its answer delivered to one must not be run without.
        true => Err(Refusal::bad_request("channel_delivery_invalid", "Invalid channel delivery.")),
        false => Ok(()),
    }
}

/// The id that a body names, if it names one.
///
/// # Errors
/// 400 `invalid_prompt_id`.
pub(crate) fn prompt_id(fields: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let Some(raw) = fields.get("promptId") else { return Ok(None) };
    match serde_json::from_str::<String>(raw.get()) {
        Ok(id) if is_prompt_id(&id) => Ok(Some(id)),
        _ => Err(Refusal::bad_request(
            "invalid_prompt_id",
            "`promptId` must match [A-Za-z0-9._:-]{1,128} and not be `current` when provided",
        )),
    }
}

/// The text blocks, one below the other; a prompt of images only shows as such.
fn display_text(blocks: &[Value]) -> String {
    let texts: Vec<_> =
        blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str()).collect();
    if texts.is_empty() && blocks.iter().any(|block| block["type"] == "image") {
        return "[image]".to_owned();
    }
    texts.join("\n")
}

fn extra(fields: &Fields<'_>) -> Option<String> {
    let others = fields.iter().filter(|(key, _)| !OWN_KEYS.contains(&key.as_str()));
    let member = |(key, raw): (&String, &&RawValue)| match key.as_str() {
        "_meta" => member(key, &without_orders(raw.get())),
        _ => member(key, raw.get()),
    };
    let others: Vec<_> = others.map(member).collect();
    (!others.is_empty()).then(|| format!("{{{}}}", others.join(",")))
}

fn member(key: &str, raw: &str) -> String {
    format!("{}:{raw}", Value::from(key))
}

/// A `_meta` without what only a daemon may order of its agent: with some of it the agent does not read the prompt, but goes on with another
/// one (wire rules, section 14.2).
fn without_orders(meta: &str) -> Cow<'_, str> {
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(meta) else { return meta.into() };
    if !members.keys().any(|key| key.starts_with(ORDERS)) {
        return meta.into();
    }
    let kept = members.iter().filter(|(key, _)| !key.starts_with(ORDERS));
    format!("{{{}}}", kept.map(|(key, raw)| member(key, raw.get())).collect::<Vec<_>>().join(",")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::fields;

    fn check(body: &str) -> Result<Content, String> {
        parse(&fields(body.as_bytes()).unwrap()).map_err(|refusal| refusal.code.into_owned())
    }

    #[test]
    fn the_first_thing_that_is_wrong_is_said() {
        let text = r#""prompt":[{"type":"text","text":"x"}]"#;
        let cases = [
            ("{}".to_owned(), "invalid_prompt"),
            (r#"{"prompt":"str"}"#.to_owned(), "invalid_prompt"),
            (r#"{"prompt":[]}"#.to_owned(), "invalid_prompt"),
            (r#"{"prompt":["x"],"deadlineMs":0}"#.to_owned(), "invalid_prompt"),
            (r#"{"prompt":[{"type":"image"}]}"#.to_owned(), "invalid_prompt"),
            (r#"{"prompt":[{"type":"image","data":"aa","mimeType":"text/plain"}]}"#.to_owned(), "invalid_prompt"),
            (r#"{"prompt":[{"type":"image","data":"aa","mimeType":"image/svg+xml"}]}"#.to_owned(), "invalid_prompt"),
            (format!("{{{text},\"deadlineMs\":0}}"), "invalid_deadline_ms"),
            (format!("{{{text},\"deadlineMs\":1.5}}"), "invalid_deadline_ms"),
            (format!("{{{text},\"deadlineMs\":\"9\"}}"), "invalid_deadline_ms"),
            (format!("{{{text},\"deadlineMs\":null}}"), "invalid_deadline_ms"),
            (format!("{{{text},\"runDeadlineMs\":0}}"), "invalid_run_deadline_ms"),
            (format!("{{{text},\"runDeadlineMs\":-1}}"), "invalid_run_deadline_ms"),
            (format!("{{{text},\"runDeadlineMs\":\"9\"}}"), "invalid_run_deadline_ms"),
            (format!("{{{text},\"eventDetailMode\":\"z\"}}"), "invalid_event_detail_mode"),
            (format!("{{{text},\"delivery\":{{}}}}"), "channel_delivery_invalid"),
            (format!("{{{text},\"promptId\":\"a b\"}}"), "invalid_prompt_id"),
            (format!("{{{text},\"promptId\":\"current\"}}"), "invalid_prompt_id"),
        ];
        for (body, code) in cases {
            assert_eq!(check(&body).map(|_| ()), Err(code.to_owned()), "{body}");
        }
    }

    #[test]
    fn a_prompt_that_is_nested_too_deep_is_told_the_limit() {
        // The array of the prompt and the object of the block are the first two levels.
        let body = |depth: usize| {
            let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
            format!(r#"{{"prompt":[{{"type":"text","text":"[[\\\"[[","deep":{open}{close}}}]}}"#)
        };
        assert!(check(&body(PROMPT_NESTING_MAX)).is_ok());
        for depth in [PROMPT_NESTING_MAX + 1, 300, 100_000] {
            let refusal = parse(&fields(body(depth).as_bytes()).unwrap()).unwrap_err();
            assert_eq!(refusal.code, "invalid_prompt");
            assert_eq!(refusal.message, "`prompt` is nested too deep (max 100 levels)");
        }
    }

    #[test]
    fn a_prompt_that_is_there_is_not_called_missing() {
        let refusal = parse(&fields(br#"{"prompt":[{"type":"text","text":"x","n":1e999}]}"#).unwrap()).unwrap_err();
        assert!(refusal.message.starts_with("`prompt` cannot be read: number out of range"), "{}", refusal.message);
    }

    #[test]
    fn what_is_not_ours_travels_on() {
        let content =
            check(r#"{"prompt":[{"type":"text","text":"x"}],"_meta":{"a":1},"k\"ey":[2],"retry":true,"promptId":"p"}"#);
        let content = content.unwrap();
        assert_eq!(content.extra.as_deref(), Some(r#"{"_meta":{"a":1},"k\"ey":[2]}"#));
        assert_eq!((content.prompt_id.as_deref(), content.retry), (Some("p"), true));
    }

    #[test]
    fn a_client_cannot_order_the_agent_in_the_daemons_name() {
        let order = r#""qwen.daemon.continueLastTurn":true"#;
        let with = |meta: &str| {
            check(&format!(r#"{{"prompt":[{{"type":"text","text":"x"}}],"_meta":{meta}}}"#)).unwrap().extra.unwrap()
        };
        assert_eq!(with(&format!(r#"{{"a":1,{order},"b":[ 2 ]}}"#)), r#"{"_meta":{"a":1,"b":[ 2 ]}}"#);
        assert_eq!(with(&format!("{{{order}}}")), r#"{"_meta":{}}"#);
        assert_eq!(with(r#"{"\u0071wen.daemon.continueLastTurn":true}"#), r#"{"_meta":{}}"#);
        assert_eq!(with("[7]"), r#"{"_meta":[7]}"#);
        assert_eq!(with(r#"{ "a":1 }"#), r#"{"_meta":{ "a":1 }}"#);
    }

    #[test]
    fn people_see_the_text_or_that_it_is_an_image() {
        let image = r#"{"type":"image","data":"aa","mimeType":"image/png"}"#;
        assert_eq!(check(&format!("{{\"prompt\":[{image}]}}")).unwrap().text, "[image]");
        let mixed = format!(r#"{{"prompt":[{{"type":"text","text":"a"}},{image},{{"type":"text","text":"b"}}]}}"#);
        assert_eq!(check(&mixed).unwrap().text, "a\nb");
    }

    #[test]
    fn a_deadline_is_a_whole_number_of_milliseconds() {
        let body = r#"{"prompt":[{"type":"text","text":"x"}],"deadlineMs":1500.0}"#;
        assert_eq!(check(body).unwrap().deadline_ms, Some(1500));
    }
}
