//! The tool calls of a turn: announced, written, finished.

use std::collections::HashMap;

use serde_json::Value;
use transcript::Body;

use super::json::{CallFields, bounded_name, call_part, response_part};
use crate::limits::CALLS_MAX;

/// Every call of the turn, in the order of its first sign.
///
/// Agents differ in all one could rely on: an update may be the first sign of a call, its arguments come later or
/// never, statuses repeat and go back, and some calls are never finished.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    known: Vec<Call>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: String,
    args: Option<Value>,
    output: Option<String>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Known, and in no record yet.
    Held,
    /// In an assistant record; its result is not.
    Written,
    /// Its result is in a record too.
    Finished,
}

/// How a call ended, as the word of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Success,
    Error,
    Cancelled,
}

impl Fate {
    fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Calls {
    /// Takes note of what a message says about a call, and gives the call's place. None when there is nothing to record:
    /// what an agent still says about a call behind its end, unless it announces the call anew, and calls beyond the
    /// bound.
    pub(crate) fn note(&mut self, fields: &CallFields, announced: bool) -> Option<usize> {
        let at = match self.by_id.get(&fields.id) {
            Some(at) if self.known[*at].stage != Stage::Finished => *at,
            Some(_) if !announced => return None,
            None if fields.id.is_empty() && !announced => return None,
            _ => self.announce(&fields.id)?,
        };
        self.known[at].learn(fields);
        Some(at)
    }

    fn announce(&mut self, id: &str) -> Option<usize> {
        let at = self.known.len();
        if at >= CALLS_MAX {
            return None;
        }
        // A call that comes without an id cannot be named again, but it must not be lost as evidence that a tool ran.
        let id = if id.is_empty() { format!("turnd-call-{at}") } else { id.to_owned() };
        self.by_id.insert(id.clone(), at);
        self.known.push(Call { id, name: "tool".to_owned(), args: None, output: None, stage: Stage::Held });
        Some(at)
    }

    /// How many calls wait to be written.
    pub(crate) fn held(&self) -> usize {
        self.known.iter().rev().take_while(|call| call.stage == Stage::Held).count()
    }

    /// The parts of an assistant record for every call that waits.
    pub(crate) fn write_held(&mut self) -> Vec<Value> {
        let from = self.known.len() - self.held();
        let held = self.known[from..].iter_mut();
        let write = |call: &mut Call| {
            call.stage = Stage::Written;
            call_part(&call.id, &call.name, call.args.take().as_ref())
        };
        held.map(write).collect()
    }

    /// The record of a result. None for a call that is in no record yet, or finished.
    pub(crate) fn finish(&mut self, at: usize, fate: Fate) -> Option<Body> {
        let call = self.known.get_mut(at)?;
        (call.stage == Stage::Written).then(|| call.finish(fate, "the tool failed"))
    }

    /// The records that close every call still open when its turn ends.
    pub(crate) fn close_open(&mut self, fate: Fate) -> Vec<Body> {
        let open = self.known.iter_mut().filter(|call| call.stage == Stage::Written);
        open.map(|call| call.finish(fate, "the turn ended before the tool call did")).collect()
    }
}

impl Call {
    fn learn(&mut self, fields: &CallFields) {
        if let Some(output) = &fields.output {
            self.output = Some(output.clone());
        }
        if self.stage != Stage::Held {
            return;
        }
        if let Some(name) = &fields.name {
            self.name = bounded_name(name);
        }
        if let Some(args) = &fields.args {
            self.args = Some(args.clone());
        }
    }

    fn finish(&mut self, fate: Fate, why: &str) -> Body {
        self.stage = Stage::Finished;
        let output = self.output.take();
        let result = match fate {
            Fate::Success => Ok(output.as_deref().unwrap_or_default()),
            Fate::Error => Err(output.as_deref().unwrap_or(why)),
            Fate::Cancelled => Err(why),
        };
        Body::ToolResult {
            call_id: self.id.clone(),
            status: fate.as_str().to_owned(),
            parts: vec![response_part(&self.id, &self.name, result)],
        }
    }
}
