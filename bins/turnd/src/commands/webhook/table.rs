//! Endpoints and their dead letters as a person reads them: columns as wide as what stands in them, one line each.

use serde_json::Value;

use crate::exit::printable;

/// Every endpoint a line, under a head.
pub(super) fn endpoints(endpoints: &[Value]) -> Vec<String> {
    let head = ["NAME", "STATE", "NEXT", "TRIES", "DEAD", "LAST ERROR", "URL"].map(str::to_owned);
    let rows = endpoints.iter().map(|endpoint| {
        let cell = |key: &str| cell(&endpoint[key]);
        let next = endpoint["acked"].as_u64().map_or_else(|| "-".to_owned(), |acked| (acked + 1).to_string());
        let fault = fault(&endpoint["last_error"]);
        [cell("name"), cell("state"), next, cell("tries"), cell("dead_letter_count"), fault, cell("url")]
    });
    lines(std::iter::once(head).chain(rows).collect())
}

/// One endpoint, a line for each thing that there is to say.
pub(super) fn endpoint(endpoint: &Value, now_ms: u64) -> Vec<String> {
    let cell = |key: &str| cell(&endpoint[key]);
    let mut said = vec![("name", cell("name")), ("url", cell("url")), ("state", state(endpoint))];
    said.push(("has had", format!("all up to event {}", cell("acked"))));
    if let Some(tries) = endpoint["tries"].as_u64().filter(|tries| *tries > 0) {
        said.push(("tries", format!("{tries} of the next one, the last of them: {}", fault(&endpoint["last_error"]))));
    }
    if let Some(seq) = endpoint["sending"].as_u64() {
        said.push(("on its way", format!("event {seq}")));
    }
    if let Some(at_ms) = endpoint["next_try_at"].as_u64() {
        said.push(("next try", format!("in {} s", at_ms.saturating_sub(now_ms).div_ceil(1_000))));
    }
    let wanted = numbers(&endpoint["redeliveries"]);
    if !wanted.is_empty() {
        said.push(("once more", format!("event {}", wanted.join(", "))));
    }
    if let Some(count) = endpoint["dead_letter_count"].as_u64() {
        said.push(("dead letters", count.to_string()));
    }
    if endpoint["secret_count"] == 2 {
        said.push(("secrets", "two sign; `turnd webhook retire` ends the former one".to_owned()));
    }
    if endpoint["secret"].is_string() {
        said.push(("secret", format!("{}  (told this once)", cell("secret"))));
    }
    lines(said.into_iter().map(|(key, value)| [key.to_owned(), value]).collect())
}

/// Every dead letter a line, under a head.
pub(super) fn letters(letters: &[Value]) -> Vec<String> {
    let head = ["EVENT", "TRIES", "LAST ERROR", "WAITS TO BE SENT AGAIN"].map(str::to_owned);
    let rows = letters.iter().map(|letter| {
        let waits = if letter["is_wanted"] == true { "yes" } else { "no" };
        [cell(&letter["seq"]), cell(&letter["tries"]), fault(&letter["last_error"]), waits.to_owned()]
    });
    lines(std::iter::once(head).chain(rows).collect())
}

fn state(endpoint: &Value) -> String {
    match (endpoint["gap"]["from"].as_u64(), endpoint["gap"]["through"].as_u64()) {
        (Some(from), Some(through)) => {
            format!("gap: events {from} to {through} are gone; `turnd webhook resume` goes on behind them")
        }
        _ => cell(&endpoint["state"]),
    }
}

/// What became of a try: a word, and the status where there was an answer.
fn fault(fault: &Value) -> String {
    let Some(code) = fault["code"].as_str() else { return "-".to_owned() };
    match fault["status"].as_u64() {
        Some(status) => format!("{} {status}", printable(code)),
        None => printable(code),
    }
}

fn numbers(list: &Value) -> Vec<String> {
    list.as_array().map(|list| list.iter().map(cell).collect()).unwrap_or_default()
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        other => other.to_string(),
    }
}

/// Rows as lines: each column as wide as its widest cell, nothing behind the last one.
fn lines<const N: usize>(rows: Vec<[String; N]>) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_columns_that_fit_and_lines_that_stay_lines() {
        let listed = [
            json!({"name": "pager", "state": "active", "acked": 41, "tries": 0, "dead_letter_count": 0, "last_error": null, "url": "http://a/"}),
            json!({"name": "b", "state": "disabled", "acked": 9, "tries": 12, "dead_letter_count": 3,
                "last_error": {"code": "gone", "status": 410}, "url": "http://b/\n\u{1b}[31m"}),
        ];
        let expected = [
            "NAME   STATE     NEXT  TRIES  DEAD  LAST ERROR  URL",
            "pager  active    42    0      0     -           http://a/",
            "b      disabled  10    12     3     gone 410    http://b/  [31m",
        ];
        assert_eq!(endpoints(&listed), expected);
    }

    #[test]
    fn an_endpoint_is_told_with_what_there_is_to_tell() {
        let quiet =
            json!({"name": "a", "url": "http://a/", "state": "active", "acked": 7, "tries": 0, "secret_count": 1});
        assert_eq!(
            endpoint(&quiet, 0),
            ["name     a", "url      http://a/", "state    active", "has had  all up to event 7"]
        );
        let busy = json!({"name": "a", "url": "http://a/", "state": "gap", "gap": {"from": 8, "through": 9}, "acked": 7, "tries": 2,
            "last_error": {"code": "timeout", "status": null}, "next_try_at": 5_001, "sending": 8, "redeliveries": [3, 1],
            "dead_letter_count": 4, "secret_count": 2, "secret": "whsec_x"});
        let told = endpoint(&busy, 1_000).join("\n");
        for part in [
            "events 8 to 9 are gone",
            "2 of the next one, the last of them: timeout",
            "event 3, 1",
            "two sign",
            "whsec_x",
            "in 5 s",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let dead = json!({"seq": 3, "tries": 9, "last_error": {"code": "status", "status": 500}, "is_wanted": true});
        assert_eq!(letters(&[dead])[1], "3      9      status 500  yes");
    }
}
