use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;
use crate::branch::Transcript;

/// A record in short notation. Users: `u` a prompt, `/` a command, `m` what was said into a turn, `s` what was spoken, `t` a
/// tool's answer to the call of the record before it. The model: `a` an answer, `c` a call. Notes: `=` the session answered
/// the command, `k` a compression to one entry, `n` anything else.
fn record(index: usize, word: &str) -> Value {
    let parent = index.checked_sub(1).map(|before| format!("r{before}"));
    let mut record = json!({"uuid": format!("r{index}"), "parentUuid": parent, "sessionId": "s", "type": "user"});
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let model = |part: Value| json!({"role": "model", "parts": [part]});
    match word {
        "u" => record["message"] = user("q"),
        "/" => record["message"] = user("/about"),
        "m" | "s" => {
            record["message"] = user("/about");
            record["subtype"] = json!(if word == "m" { "mid_turn_user_message" } else { "realtime_message" });
        }
        "t" => {
            let call = format!("c{}", index.saturating_sub(1));
            record["message"] = json!({"role": "user", "parts": [{"functionResponse": {"id": call}}]});
            record["type"] = json!("tool_result");
        }
        "a" | "c" => {
            let call = json!({"functionCall": {"id": format!("c{index}"), "name": "ls"}});
            record["message"] = model(if word == "a" { json!({"text": "a"}) } else { call });
            record["type"] = json!("assistant");
        }
        note => {
            record["type"] = json!("system");
            let (subtype, payload) = payload(note);
            record["subtype"] = json!(subtype);
            record["systemPayload"] = payload;
        }
    }
    record
}

fn payload(note: &str) -> (&'static str, Value) {
    match note {
        "=" => {
            let items = json!([{"type": "assistant", "text": "1.0"}]);
            ("slash_command", json!({"phase": "result", "rawCommand": "/about", "outputHistoryItems": items}))
        }
        "k" => {
            let summary = json!({"role": "user", "parts": [{"text": "summary"}]});
            ("chat_compression", json!({"compressedHistory": [summary]}))
        }
        _ => ("ui_telemetry", json!({})),
    }
}

fn records(words: &str) -> Vec<Value> {
    words.split_whitespace().enumerate().map(|(index, word)| record(index, word)).collect()
}

/// The history of a branch, read until nothing further back matters, and the number of records that were looked at.
fn read(records: &[Value]) -> (Result<History, Unreadable>, Vec<Record>, usize) {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), records.iter().map(|record| format!("{record}\n")).collect::<String>()).unwrap();
    let mut tail = HistoryTail::default();
    let (mut all, mut taken) = (Vec::new(), 0);
    if let Some(transcript) = Transcript::open(file.path()).unwrap() {
        let mut branch = transcript.branch(u64::MAX).unwrap();
        while let Some(record) = branch.next_record().unwrap() {
            taken += usize::from(!tail.is_complete());
            tail.push(&record);
            all.push(record);
        }
    }
    if !tail.is_complete() {
        tail.reach_the_beginning();
    }
    (tail.finish(), all, taken)
}

/// Which records each entry was made from: `0 1+2 3` are three entries.
fn history(records: &[Value]) -> String {
    let (history, all, _) = read(records);
    let Ok(history) = history else { return "unreadable".to_owned() };
    let origin = |start: u64| all.iter().find(|record| record.span.contains(&start)).unwrap().uuid[1..].to_owned();
    let entry = |entry: &Message| {
        let origins: Vec<_> = entry.spans.iter().map(|span| origin(span.start)).collect();
        origins.join("+")
    };
    history.entries.iter().map(entry).collect::<Vec<_>>().join(" ")
}

fn check(words: &str, expected: &str) {
    assert_eq!(history(&records(words)), expected, "{words}");
}

#[test]
fn every_message_is_an_entry() {
    check("", "");
    check("u a c t a", "0 1 2 3 4");
    check("u u a a", "0 1 2 3");
}

#[test]
fn a_note_is_none() {
    check("n u n a n", "1 3");
    check("n", "");
}

#[test]
fn a_message_said_into_a_turn_joins_the_user_s_entry_before_it() {
    check("u c t m", "0 1 2+3");
    check("u c t m m a", "0 1 2+3+4 5");
    check("u m", "0+1");
    check("u a m", "0 1 2");
    check("m", "0");
    check("u n m", "0+2");
}

#[test]
fn a_spoken_message_is_no_entry_and_comes_between_no_others() {
    check("u s a", "0 2");
    check("u c t s m", "0 1 2+4");
    check("/ s =", "");
}

#[test]
fn a_command_that_the_session_answered_is_taken_out() {
    check("u a / =", "0 1");
    check("/ = u a", "2 3");
    check("/ n =", "");
    check("/ = / =", "");
}

#[test]
fn a_command_without_its_answer_stays() {
    check("u a /", "0 1 2");
    check("/ u a", "0 1 2");
}

#[test]
fn an_answer_takes_out_its_own_command_and_no_other() {
    check("u =", "0");
    check("/ a =", "0 1");
    check("/ u =", "0 1");
    check("/ = =", "");
    check("/ / = =", "0");
    check("u c t m =", "0 1 2+3");
}

#[test]
fn any_answer_is_a_fence_behind_the_prompt_before_it() {
    let mut other = records("/ = =");
    other[1]["systemPayload"]["rawCommand"] = json!("/other");
    assert_eq!(history(&other), "0");
}

#[test]
fn only_the_role_of_a_user_can_have_asked_a_command() {
    let mut spoken = records("/ =");
    spoken[0]["message"]["role"] = json!("model");
    assert_eq!(history(&spoken), "0");
    let mut longer = records("/ =");
    longer[0]["message"]["parts"] = json!([{"text": "/about"}, {"text": "x"}]);
    assert_eq!(history(&longer), "0");
    let mut attached = records("/ =");
    attached[0]["message"]["parts"] = json!([{"text": "/about", "thought": true}]);
    assert_eq!(history(&attached), "0");
}

#[test]
fn a_compression_takes_the_place_of_all_before_it() {
    check("u a k u", "2 3");
    check("u k k a", "2 3");
    check("u a k m", "2+3");
    check("/ k =", "1");
}

#[test]
fn a_compression_to_nothing_leaves_nothing_and_one_without_a_history_changes_nothing() {
    for (snapshot, expected) in [
        (json!([]), "3"),
        (json!(null), "0 1 3"),
        (json!(0), "0 1 3"),
        (json!(7), "unreadable"),
        (json!(["x"]), "unreadable"),
        (json!([{"role": "user", "parts": [7]}]), "unreadable"),
        (json!([{"role": "user"}]), "2 3"),
    ] {
        let mut records = records("u a k u");
        records[2]["systemPayload"]["compressedHistory"] = snapshot.clone();
        assert_eq!(history(&records), expected, "{snapshot}");
    }
}

#[test]
fn a_list_of_parts_that_are_no_objects_makes_the_history_unreadable() {
    for (parts, is_readable) in [
        (json!([]), true),
        (json!(null), true),
        // What is no list is left out, as the peer leaves it out.
        (json!("x"), true),
        (json!({}), true),
        (json!(7), true),
        (json!([{}, 7]), false),
        (json!([null]), false),
    ] {
        let mut records = records("u a u");
        records[1]["message"]["parts"] = parts.clone();
        assert_eq!(history(&records) != "unreadable", is_readable, "{parts}");
    }
    // What a compression took the place of is read by nobody.
    let mut replaced = records("u a k u");
    replaced[1]["message"]["parts"] = json!([7]);
    assert_eq!(history(&replaced), "2 3");
}

#[test]
fn a_long_history_is_not_read_to_its_beginning() {
    let words = "u a ".repeat(100);
    let (found, all, taken) = read(&records(&words));
    assert_eq!((found.unwrap().entries.len(), all.len(), taken), (50, 200, 52));
    let (_, _, taken) = read(&records(&("u a ".repeat(100) + "k u")));
    assert_eq!(taken, 2);
    let (_, _, taken) = read(&records(&("u a ".repeat(100) + &"/ = ".repeat(5))));
    assert_eq!(taken, 62, "a command that is taken out makes room for one more");
}

#[test]
fn the_commands_that_left_are_named() {
    let (found, ..) = read(&records("/ = u a / ="));
    let uuids: Vec<_> = found.unwrap().answered.into_iter().map(|command| command.uuid).collect();
    assert_eq!(uuids, ["r0", "r4"]);
}

/// A turn for a goal, whose tool's answer ends it: the call, the answer and the note, each changed as asked.
fn is_closed(change: impl Fn(&mut Vec<Value>)) -> bool {
    let goal = json!({"goalId": "g", "turnId": "t", "revision": 1});
    let mut all = records("u c t n");
    for record in &mut all[1..] {
        record["goalContext"] = goal.clone();
    }
    all[3]["subtype"] = json!("goal_turn_end");
    all[3]["systemPayload"] = json!({"toolCallId": "c1"});
    change(&mut all);
    let history = read(&all).0.unwrap();
    history.closed_by_goal == history.entries.len()
}

#[test]
fn a_goal_s_end_closes_the_answer_that_it_names() {
    assert!(is_closed(|_| {}));
    assert!(is_closed(|all| all.push(record(4, "n"))));
}

#[test]
fn a_goal_s_end_closes_nothing_else() {
    assert!(!is_closed(|all| all[3]["systemPayload"]["toolCallId"] = json!("c9")));
    assert!(!is_closed(|all| all[3]["systemPayload"] = json!({})));
    assert!(!is_closed(|all| all[3]["goalContext"]["revision"] = json!(2)));
    assert!(!is_closed(|all| all[3]["goalContext"]["turnId"] = json!("other")));
    assert!(!is_closed(|all| all[3]["goalContext"] = json!(null)));
    assert!(!is_closed(|all| all[2]["goalContext"] = json!(null)));
    assert!(!is_closed(|all| all[2]["type"] = json!("user")));
    assert!(!is_closed(|all| all[2]["message"]["parts"] = json!([{"text": "c1"}])));
}

#[test]
fn a_call_made_or_answered_twice_closes_nothing() {
    let call = json!({"functionCall": {"id": "c1"}});
    let answer = json!({"functionResponse": {"id": "c1"}});
    assert!(!is_closed(|all| all[1]["message"]["parts"] = json!([call, call])));
    assert!(!is_closed(|all| all[2]["message"]["parts"] = json!([answer, answer])));
    assert!(!is_closed(|all| all[1]["message"]["parts"] = json!([{"text": "no call"}])));
}

#[test]
fn what_is_said_behind_a_closed_answer_is_open_again() {
    assert!(!is_closed(|all| all.push(record(4, "u"))));
    assert!(!is_closed(|all| all.push(record(4, "k"))));
    let goal = json!({"goalId": "g", "turnId": "t", "revision": 1});
    let mut all = records("u c t n m");
    for record in &mut all[1..4] {
        record["goalContext"] = goal.clone();
    }
    all[3]["subtype"] = json!("goal_turn_end");
    all[3]["systemPayload"] = json!({"toolCallId": "c1"});
    // It is no part of the turn that ended.
    assert_eq!(history(&all), "0 1 2 4");
}

#[test]
fn a_command_that_left_leaves_the_answer_before_it_closed() {
    assert!(is_closed(|all| all.extend([record(4, "/"), record(5, "=")])));
    assert!(!is_closed(|all| all.extend([record(4, "/"), record(5, "n")])));
}

#[test]
fn a_closed_call_that_is_answered_again_is_open_again() {
    let again = |word: &str| {
        let mut record = record(4, word);
        record["message"]["parts"] = json!([{"functionResponse": {"id": "c1"}}]);
        record
    };
    assert!(!is_closed(|all| all.extend([again("u"), record(5, "/"), record(6, "=")])));
}

/// The rules once more, as plainly as they can be said, on words and from the beginning.
fn plain(words: &[&str]) -> String {
    let mut entries: Vec<(bool, String)> = Vec::new();
    let mut last = "";
    for (index, word) in words.iter().enumerate() {
        match *word {
            "m" if entries.last().is_some_and(|(is_user, _)| *is_user) => {
                entries.last_mut().unwrap().1 += &format!("+{index}");
            }
            "=" if last == "/" => drop(entries.pop()),
            "k" => entries = vec![(true, index.to_string())],
            "u" | "/" | "m" | "t" => entries.push((true, index.to_string())),
            "a" | "c" => entries.push((false, index.to_string())),
            _ => {}
        }
        if !matches!(*word, "n" | "s") {
            last = word;
        }
    }
    let kept = entries.len().saturating_sub(HISTORY_TAIL_ENTRIES);
    entries.into_iter().skip(kept).map(|(_, entry)| entry).collect::<Vec<_>>().join(" ")
}

proptest! {
    #[test]
    fn the_end_of_a_history_is_that_of_the_whole(
        words in prop::collection::vec(prop::sample::select("u a c t m s / / = = n".split(' ').collect::<Vec<_>>()), 0..160),
        compressed in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut words = words;
        if let Some(place) = compressed.filter(|_| !words.is_empty()) {
            let place = place.index(words.len());
            words[place] = "k";
        }
        prop_assert_eq!(history(&records(&words.join(" "))), plain(&words), "{}", words.join(" "));
    }
}

#[test]
fn a_history_made_from_too_many_records_is_unreadable() {
    let file = NamedTempFile::new().unwrap();
    let text = format!("{}\n{}\n", record(0, "u"), record(1, "m"));
    std::fs::write(file.path(), text).unwrap();
    let transcript = Transcript::open(file.path()).unwrap().unwrap();
    let said = transcript.branch(0).unwrap().next_record().unwrap().unwrap();
    let mut history = HistoryTail::default();
    for _ in 0..RECORDS_WEIGHT_MAX / said.weight() {
        history.push(&said);
    }
    assert!(!history.is_complete() && history.finish().is_ok());
    history.push(&said);
    assert!(history.is_complete() && history.finish() == Err(Unreadable));
    history.push(&said);
    history.reach_the_beginning();
    assert_eq!(history.finish(), Err(Unreadable));
}
