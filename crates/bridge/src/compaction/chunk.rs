//! An update taken apart, as far as it takes to put several together.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Shape;
use crate::incoming::StateKind;
use crate::limits::FOLD_MEMBERS_MAX;

/// The members of an object, in order: names, and raw values.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a str)>);

/// A piece of a text.
pub(super) struct Chunk<'a> {
    /// What stands between the quotation marks.
    pub(super) text: &'a str,
    /// What of the update is neither its text, its time nor its metadata.
    pub(super) members: Vec<(Cow<'a, str>, &'a str)>,
    pub(super) meta: Vec<(Cow<'a, str>, &'a str)>,
    pub(super) timestamp: Option<&'a str>,
}

/// What `update` is, as far as its kind says.
pub(super) fn shape(update: &str) -> Shape {
    match acp::string_at(update, &["sessionUpdate"]).as_deref() {
        Some("agent_message_chunk" | "agent_thought_chunk") => Shape::Chunk,
        Some("tool_call" | "tool_call_update") => Shape::Call,
        Some("available_commands_update") => Shape::State(StateKind::AvailableCommands),
        Some("current_mode_update") => Shape::State(StateKind::CurrentMode),
        _ => Shape::Other,
    }
}

impl<'a> Members<'a> {
    /// The members of `raw`; none when it is no object, has a name twice, or so many members that nobody means them.
    pub(super) fn of(raw: &'a str) -> Option<Self> {
        let members: Self = serde_json::from_str(raw).ok()?;
        let names = &members.0;
        let is_once = |at: usize| !names[..at].iter().any(|(name, _)| *name == names[at].0);
        (names.len() <= FOLD_MEMBERS_MAX && (0..names.len()).all(is_once)).then_some(members)
    }

    fn take(&mut self, name: &str) -> Option<&'a str> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }
}

impl<'a> Chunk<'a> {
    /// A text that others may join; none when it is something else, or is to stand by itself.
    pub(super) fn of(update: &'a str) -> Option<Self> {
        let mut members = Members::of(update)?;
        let text = plain_text(members.take("content")?)?;
        let meta = members.take("_meta").map_or(Some(Vec::new()), |raw| Some(Members::of(raw)?.0))?;
        let is_discrete = |(name, value): &(Cow<'_, str>, &str)| name == "qwenDiscreteMessage" && *value != "false";
        if meta.iter().any(is_discrete) {
            return None;
        }
        let timestamp = members.take("timestamp");
        Some(Self { text, members: members.0, meta, timestamp })
    }
}

/// The inside of the text of a content block that is a text and nothing else.
fn plain_text(content: &str) -> Option<&str> {
    let mut members = Members::of(content)?;
    let (kind, text) = (members.take("type")?, members.take("text")?);
    let is_plain = kind == "\"text\"" && members.0.is_empty();
    text.strip_prefix('"')?.strip_suffix('"').filter(|_| is_plain)
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Walk).map(Members)
    }
}

/// A key, which is borrowed where it holds no escape.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            // One more than may be is enough to know that there are too many.
            if members.len() <= FOLD_MEMBERS_MAX {
                members.push((name, value.get()));
            }
        }
        Ok(members)
    }
}
