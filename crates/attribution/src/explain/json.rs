//! The explanation as one JSON object, with the names of evidence rules, section 6.

use std::fmt::Write;

use ledger::{Reading, Record, Wish};
use transcript::{Classified, Value};

use super::Explanation;

impl Explanation {
    /// One line of JSON, without its end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let reading = self.plan.reading.as_ref();
        let mut json = String::from("{\"records\":");
        push_list(&mut json, reading.iter().flat_map(|reading| &reading.records).map(Record::to_line));
        let _ = write!(json, ",\"droppedLines\":{}", reading.map_or(0, |reading| reading.dropped_lines));
        json.push_str(",\"dangling\":");
        push_list(&mut json, self.dangling.iter().map(|id| text(id)));
        json.push_str(",\"tailUuid\":");
        json.push_str(&self.tail_uuid.as_deref().map_or_else(null, text));
        json.push_str(",\"projection\":");
        match &self.projection {
            Some(uuids) => push_list(&mut json, uuids.iter().map(|uuid| text(uuid))),
            None => json.push_str("null"),
        }
        json.push_str(",\"classify\":");
        json.push_str(&self.classified.as_ref().map_or_else(null, classified));
        json.push_str(",\"verdict\":");
        self.push_verdict(&mut json);
        json.push_str(",\"evidence\":");
        let basis = self.plan.verdict.settled.first().map(|settled| settled.basis.evidence());
        json.push_str(&basis.map_or_else(null, text));
        json.push_str(",\"terminals\":");
        match &self.terminals {
            Some(terminals) => push_list(&mut json, terminals.iter().map(Record::to_line)),
            None => json.push_str("null"),
        }
        let wishes = reading.map_or_else(Vec::new, |reading| Reading::open_wishes(reading));
        if !wishes.is_empty() {
            json.push_str(",\"wishes\":");
            push_list(&mut json, wishes.into_iter().map(Wish::to_line));
        }
        if self.is_live {
            json.push_str(",\"live\":true");
        }
        if let Some(error) = &self.error {
            let _ = write!(json, ",\"error\":{}", text(error));
        }
        json.push('}');
        json
    }

    /// What would be appended, and why not more.
    fn push_verdict(&self, json: &mut String) {
        let verdict = &self.plan.verdict;
        json.push('{');
        if !verdict.settled.is_empty() {
            json.push_str("\"append\":");
            push_list(json, verdict.settled.iter().map(|settled| without_time(&settled.record(0))));
        }
        if let Some(withheld) = verdict.withheld {
            let comma = if verdict.settled.is_empty() { "" } else { "," };
            let _ = write!(json, "{comma}\"withheld\":\"{withheld}\"");
        }
        json.push('}');
    }
}

fn classified(classified: &Classified) -> String {
    match classified {
        Classified::None => "{\"kind\":\"none\"}".to_owned(),
        Classified::Prompt { parts } => {
            let mut json = String::from("{\"kind\":\"interrupted_prompt\",\"parts\":");
            push_list(&mut json, parts.iter().map(Value::to_string));
            json.push('}');
            json
        }
        Classified::Turn { calls } => {
            let mut json = String::from("{\"kind\":\"interrupted_turn\",\"danglingCalls\":");
            let call = |(id, name): &(String, String)| format!("{{\"callId\":{},\"name\":{}}}", text(id), text(name));
            push_list(&mut json, calls.iter().map(call));
            json.push('}');
            json
        }
    }
}

/// The line of a record that was not written yet. The time is its last field.
fn without_time(record: &Record) -> String {
    let line = record.to_line();
    let end = line.rfind(",\"at\":").unwrap_or(line.len());
    format!("{}}}", &line[..end])
}

fn push_list(json: &mut String, items: impl Iterator<Item = String>) {
    json.push('[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            json.push(',');
        }
        json.push_str(&item);
    }
    json.push(']');
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

fn null() -> String {
    "null".to_owned()
}
