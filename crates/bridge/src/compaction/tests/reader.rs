//! Somebody who reads events, and what is then on the screen.

use serde_json::{Map, Value};

/// Metadata that says something about a piece of a text and not about whose it is.
const ABOUT_A_PIECE: [&str; 2] = ["usage", "timestamp"];

/// What is on the screen.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Screen {
    /// Below each tool call and (null) at the top, in order.
    shown: Vec<(Value, Vec<Block>)>,
    commands: Value,
    mode: Value,
}

#[derive(Debug, PartialEq)]
enum Block {
    Text { kind: Value, text: String, of: Value, accounts: Vec<Value>, is_discrete: bool },
    Call { id: Value, is_begun: bool, turn: usize, members: Map<String, Value> },
    Other(Value),
}

/// Reads all events.
pub(super) fn read(events: &[Value]) -> Screen {
    let (mut screen, mut turn) = (Screen::default(), 0);
    for event in events {
        screen.show(event, turn);
        turn += usize::from(event["type"].as_str().unwrap().starts_with("turn_"));
    }
    screen
}

impl Screen {
    fn show(&mut self, event: &Value, turn: usize) {
        let update = &event["data"]["update"];
        let place = update["_meta"]["parentToolCallId"].clone();
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk" | "agent_thought_chunk") => self.say(place, turn, update),
            Some("tool_call" | "tool_call_update") => self.call(place, turn, update),
            Some("available_commands_update") => self.commands = update["n"].clone(),
            Some("current_mode_update") => self.mode = update["n"].clone(),
            // What concerns the whole turn ends every text there is.
            _ => {
                for (_, blocks) in &mut self.shown {
                    blocks.push(Block::Other(Value::Null));
                }
                self.below(Value::Null).push(Block::Other(event["data"].clone()));
            }
        }
    }

    fn below(&mut self, place: Value) -> &mut Vec<Block> {
        let at = self.shown.iter().position(|(known, _)| *known == place).unwrap_or_else(|| {
            self.shown.push((place, Vec::new()));
            self.shown.len() - 1
        });
        &mut self.shown[at].1
    }

    fn say(&mut self, place: Value, _turn: usize, update: &Value) {
        let piece = update["content"]["text"].as_str().unwrap();
        let mut owner = update.get("_meta").cloned().unwrap_or_default();
        for about in ABOUT_A_PIECE {
            owner.as_object_mut().map(|meta| meta.remove(about));
        }
        let owner = if owner == serde_json::json!({}) { Value::Null } else { owner };
        let account = update["_meta"].get("usage").cloned();
        let discrete = update["_meta"]["qwenDiscreteMessage"] == true;
        let blocks = self.below(place);
        if let Some(Block::Text { kind, text, of, accounts, is_discrete: false }) = blocks.last_mut()
            && !discrete
            && *kind == update["sessionUpdate"]
            && *of == owner
        {
            text.push_str(piece);
            return accounts.extend(account);
        }
        blocks.push(Block::Text {
            kind: update["sessionUpdate"].clone(),
            text: piece.to_owned(),
            of: owner,
            accounts: account.into_iter().collect(),
            is_discrete: discrete,
        });
    }

    fn call(&mut self, place: Value, now: usize, update: &Value) {
        let begins = update["sessionUpdate"] == "tool_call";
        let mut said = update.as_object().unwrap().clone();
        said.remove("sessionUpdate");
        let known = self.shown.iter_mut().flat_map(|(_, blocks)| blocks).find_map(|block| match block {
            Block::Call { id, is_begun, turn, members } if *id == update["toolCallId"] && *turn == now => {
                Some((is_begun, members))
            }
            _ => None,
        });
        match known {
            Some((is_begun, members)) => {
                *is_begun |= begins;
                members.extend(said.into_iter().filter(|(_, value)| !value.is_null()));
            }
            None => {
                let id = update["toolCallId"].clone();
                self.below(place).push(Block::Call { id, is_begun: begins, turn: now, members: said });
            }
        }
    }
}
