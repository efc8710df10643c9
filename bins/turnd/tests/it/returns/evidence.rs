//! What a request comes to whose session's files another program has changed between two lives of the daemon. Daemon, hosts and agents are
//! killed, and nobody has seen the end of the turn but the host, who has put it on record; a row says what becomes of the files then, and
//! what the next life says.
//!
//! A row is a list of steps, `;` between them. `settled`: `turnd explain --apply` puts on the ledger what it finds of the end. `gone`: there is
//! no transcript. `unstaged`: the store has forgotten the outcome that it had staged. Any other is the transcript from then on, record by
//! record, each hanging on the one before it: `before` (the turn before), `prompt`, `call`, `answer` and `result` are those that the host wrote;
//! `... without its id` is one that says of no prompt that it is its own; `stranger` is another program's question under no id and `client` one
//! under another id; what stands in brackets lies beside the branch: the next one hangs on what was before the bracket.

use std::fs;

use serde_json::{Value, json};

use super::{all_events, body, ended, get, post, reached, submit, told};
use crate::commands::turnd;
use crate::world::{World, chats, until};

/// The agent says so much when its tool has run.
const DONE: &str = r#"completed - yes "It ran.""#;
const UNATTRIBUTABLE: &str = "indeterminate unattributable yes";
const EXTRA: &str = "indeterminate extra_user_message yes";
const UNAVAILABLE: &str = "indeterminate final_text_unavailable yes";
const INTERRUPTED: &str = "indeterminate daemon_lost yes (turn_interrupted)";
const NOT_SHOWN: &str = "indeterminate daemon_lost yes (turn_not_shown)";
const MISSING: &str = "indeterminate daemon_lost yes (transcript_missing)";
const REPLACED: &str = "indeterminate daemon_lost yes (history_replaced)";
const MARKER_ABSENT: &str = "indeterminate daemon_lost yes (marker_absent)";

/// What each request asks: a turn that is not over before there is a certain file.
const PROMPT: &str = "tool until test -e go; do sleep 0.1; done";

#[test]
fn scenario_31_a_turn_whose_records_say_of_no_prompt_that_they_are_its_own_is_nobodys() {
    hold(&[
        ("before, prompt, call, answer, result", DONE),
        ("before, prompt without its id, call, answer, result without its id", UNATTRIBUTABLE),
        ("prompt without its id, call, answer, result without its id", UNATTRIBUTABLE),
        ("before, prompt without its id, call, answer, result", UNATTRIBUTABLE),
        ("before, prompt, call, answer, result without its id", UNATTRIBUTABLE),
        // What was concluded from place and time says no more than these.
        ("before, prompt without its id, call, answer, result without its id; settled", UNATTRIBUTABLE),
        ("before, prompt without its id, call, answer; settled", UNATTRIBUTABLE),
        ("before, prompt without its id, call, answer; settled; gone", UNATTRIBUTABLE),
        ("before, prompt, call, answer, result; settled", DONE),
    ]);
}

#[test]
fn scenario_32_whoever_else_asks_something_before_the_turn_is_over_takes_its_certainty_and_behind_it_nobody_does() {
    hold(&[
        ("before, prompt, call, answer, result", DONE),
        ("before, prompt, stranger, call, answer, result", EXTRA),
        ("before, prompt, call, stranger, answer, result", EXTRA),
        ("before, prompt, call, answer, stranger, stranger's answer, result", EXTRA),
        ("before, prompt, client, call, answer, result", EXTRA),
        ("prompt, stranger, call, answer, result", EXTRA),
        // Two writers at once, neither of which has read what the other wrote.
        ("before, prompt, [stranger, stranger's answer], call, answer, result", EXTRA),
        ("before, prompt, call, answer, [client], result", EXTRA),
        ("before, prompt, [call, answer, result], stranger", EXTRA),
        // Between the last record at the dispatch and the prompt: the specification lets that be, and it is nothing to be sure of.
        ("before, stranger, prompt, call, answer, result", EXTRA),
        ("before, [stranger], prompt, call, answer, result", EXTRA),
        ("before, prompt, call, answer, result, stranger, stranger's answer", DONE),
        ("stranger, before, prompt, call, answer, result, client", DONE),
        ("[stranger], before, prompt, call, answer, result", DONE),
    ]);
}

#[test]
fn scenario_32_a_program_that_writes_into_a_running_turn_is_noticed_though_the_host_knows_nothing_of_it() {
    let mut lives = Lives::begin(&["before", "before"], "");
    lives.stop();
    // The first session gets its stranger while its turn runs, the second one when it is over.
    lives.asks_in(0);
    lives.go_on();
    lives.asks_in(1);
    lives.die();
    lives.next(&[("a stranger in the turn", EXTRA), ("a stranger behind it", DONE)]);
}

#[test]
fn scenario_35_of_an_end_that_is_on_the_ledger_alone_nobody_has_the_text() {
    hold(&[
        ("settled; before, prompt, call, answer, result", DONE),
        ("settled; before", UNAVAILABLE),
        ("settled; gone", UNAVAILABLE),
        ("settled; before, prompt, call, answer", UNAVAILABLE),
        ("settled; before, prompt, call, result", UNAVAILABLE),
        ("settled; before, stranger, stranger's answer", UNAVAILABLE),
        ("settled; before, prompt without its id, call, answer, result without its id", UNAVAILABLE),
        // And where it is not even there.
        ("before", NOT_SHOWN),
        ("gone", MISSING),
        ("before, prompt, call, answer", INTERRUPTED),
    ]);
}

#[test]
fn scenario_35_of_an_end_that_the_daemon_itself_put_on_the_ledger_the_stage_or_the_transcript_has_the_text() {
    for row in [("unstaged; before", UNAVAILABLE), ("unstaged; gone", UNAVAILABLE), ("gone", DONE), ("unstaged", DONE)]
    {
        let mut lives = Lives::begin(&[row.0], "before:terminal=stop*1");
        lives.go_on();
        lives.world.until_stopped(lives.world.pid());
        let ledger = lives.world.ledger(&lives.open[0].session);
        assert!(lives.open[0].has_ended(&ledger), "{ledger}");
        lives.die();
        lives.change(&[row]);
        lives.next(&[row]);
    }
}

#[test]
fn scenario_50_a_turn_whose_conversation_was_taken_back_or_replaced_behind_the_marker_is_not_completed_from_it() {
    hold(&[
        ("before, prompt, call, answer, result", DONE),
        ("before, prompt, call, answer, result, rewind to before", REPLACED),
        ("before, prompt, call, answer, result, rewind to before, stranger, stranger's answer", REPLACED),
        ("before, prompt, call, answer, result, rewind to the beginning", MARKER_ABSENT),
        ("before, prompt, call, answer, result, stranger, rewind to result", REPLACED),
        ("before, stranger, rewind to before, prompt, call, answer, result", REPLACED),
        ("prompt, call, answer, result, rewind to the beginning", REPLACED),
        ("before, prompt, call, answer, result, compression", REPLACED),
        ("before, prompt, compression, call, answer, result", REPLACED),
        ("before, compression, prompt, call, answer, result", REPLACED),
        ("prompt, call, answer, result, compression", REPLACED),
        ("stranger, rewind to the beginning, compression, before, prompt, call, answer, result", DONE),
    ]);
}

#[test]
fn scenario_50_a_turn_that_was_taken_back_or_replaced_before_its_end_is_lost_and_says_why() {
    let rows = [
        ("before, prompt, call", INTERRUPTED),
        ("before, prompt, call, rewind to before", REPLACED),
        ("before, prompt, call, rewind to the beginning", MARKER_ABSENT),
        ("before, prompt, call, compression", REPLACED),
        ("rewind to the beginning, compression, before, prompt, call", INTERRUPTED),
    ];
    let mut lives = Lives::begin(&rows.map(|row| row.0), "");
    lives.die();
    lives.change(&rows);
    lives.next(&rows);
}

/// In each row's session all processes are killed when the turn is on record; then its files are changed.
fn hold(rows: &[(&str, &str)]) {
    let files: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let mut lives = Lives::begin(&files, "");
    lives.stop();
    lives.go_on();
    lives.die();
    lives.change(rows);
    lives.next(rows);
}

/// A request that the first life leaves open.
struct Open {
    id: String,
    session: String,
    prompt: String,
}

impl Open {
    /// Whether a ledger has the end of its prompt.
    fn has_ended(&self, ledger: &str) -> bool {
        ledger.contains(&format!(r#""promptId":"{}","terminal""#, self.prompt))
    }
}

/// A daemon, and a request in a session of its own for each row.
struct Lives {
    world: World,
    open: Vec<Open>,
}

impl Lives {
    /// Begins a request for each row, in a session that has had a turn where the row speaks of one. All are bound.
    fn begin(rows: &[&str], plan: &str) -> Self {
        let mut world = World::journaled(&["--linger-ms", "60000"]);
        world.restart_failing(plan);
        let mut open = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let (id, session) = (format!("X{number}"), world.session());
            if row.contains("before") {
                let before = world.prompt(&session, "hello");
                world.settle(&session, &before);
            }
            let receipt = submit(&mut world, &session, &id, PROMPT);
            let question = crate::permission::question(&mut world, &session);
            let path = format!("/permission/{}", question["requestId"].as_str().unwrap());
            let vote = json!({ "outcome": { "outcome": "selected", "optionId": question["options"][0]["optionId"] } });
            assert_eq!(world.call("POST", &path, &vote.to_string()).0, 200);
            open.push(Open { id, session, prompt: receipt["prompt_id"].as_str().unwrap().to_owned() });
        }
        for open in &open {
            reached(&mut world, &open.id, "bound");
        }
        Self { world, open }
    }

    /// From here on the daemon sees nothing any more.
    fn stop(&self) {
        self.world.signal(&[self.world.pid()], "STOP");
        self.world.until_stopped(self.world.pid());
    }

    /// Lets all turns come to their ends, and waits until these are on record.
    fn go_on(&self) {
        fs::write(self.world.base().join("workspace/go"), "").unwrap();
        for open in &self.open {
            let is_own = |line: &str| line.contains(r#""turn_result""#) && line.contains(&open.prompt);
            until("the turn is on record", || self.world.transcript(&open.session).lines().any(is_own).then_some(()));
        }
    }

    /// Kills daemon, hosts and agents with signal 9.
    fn die(&mut self) {
        self.world.end_everything();
    }

    /// Another program asks something in one of the sessions, behind the last record that it finds.
    fn asks_in(&self, number: usize) {
        let session = &self.open[number].session;
        let path = chats(&self.world).join(format!("{session}.jsonl"));
        let text = self.world.transcript(session);
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let stranger = hung(record(&last, "stranger"), last["uuid"].clone());
        fs::write(path, format!("{text}{stranger}\n")).unwrap();
    }

    /// Does to the files of each session what its row says.
    fn change(&self, rows: &[(&str, &str)]) {
        for (open, (row, _)) in self.open.iter().zip(rows) {
            let path = chats(&self.world).join(format!("{}.jsonl", open.session));
            for step in row.split("; ") {
                match step {
                    "settled" => self.settle(open, row),
                    "gone" => fs::remove_file(&path).unwrap(),
                    "unstaged" => self.unstage(open),
                    records => {
                        let written = Written::by_host(&self.world.transcript(&open.session), &open.prompt);
                        fs::write(&path, written.transcript(records)).unwrap();
                    }
                }
            }
        }
    }

    fn settle(&self, open: &Open, row: &str) {
        let (store, workspace) = (self.world.base().join("store"), self.world.base().join("workspace"));
        let (store, workspace) = (store.to_str().unwrap(), workspace.to_str().unwrap());
        let told = turnd(&["explain", &open.session, "--apply", "--store", store, "--workspace", workspace]);
        assert!(told.status.success(), "{row}: {}", String::from_utf8_lossy(&told.stderr));
        let ledger = self.world.ledger(&open.session);
        assert!(open.has_ended(&ledger), "{row}: {ledger}");
    }

    fn unstage(&self, open: &Open) {
        let file = chats(&self.world).with_file_name("turnd-requests").join("requests.db");
        let conn = rusqlite::Connection::open(file).unwrap();
        assert_eq!(conn.execute("DELETE FROM outcome_stage WHERE request_id = ?1", [&open.id]).unwrap(), 1);
    }

    /// The next life says this of each request, the one behind it says the same, and no prompt was sent again.
    fn next(&mut self, rows: &[(&str, &str)]) {
        let Self { world, open } = self;
        world.start_again();
        let over: Vec<Value> = open.iter().map(|open| ended(world, &open.id)).collect();
        for (over, (row, expected)) in over.iter().zip(rows) {
            assert_eq!(said(over), *expected, "{row}");
        }
        let events = all_events(world, open.len());
        world.kill_daemon();
        assert_eq!(all_events(world, open.len()), events);
        for (open, over) in open.iter().zip(&over) {
            assert!(events.contains(&over["terminal"]), "{over}");
            assert_eq!(get(world, &open.id), *over);
            let (status, again) = post(world, &open.session, &body(&open.id, PROMPT));
            assert_eq!((status, &again["terminal"]), (200, &over["terminal"]), "what ended is not sent again");
            let journal = world.journal();
            let heard = journal.iter().filter(|line| line["heard"]["method"] == "session/prompt");
            assert_eq!(heard.filter(|line| line.to_string().contains(&open.prompt)).count(), 1);
        }
    }
}

/// State, code and whether the input was written, the detail in brackets, and the final message, which nothing has that is not completed.
fn said(over: &Value) -> String {
    let detail = over["detail"].as_str().map(|detail| format!(" ({detail})"));
    let text = over["terminal"]["final_message"].as_str().map(|text| format!(" {text:?}"));
    format!("{}{}{}", told(over), detail.unwrap_or_default(), text.unwrap_or_default())
}

/// What the host wrote into a transcript.
struct Written {
    before: Vec<Value>,
    prompt: Value,
    /// Between the prompt and the answer.
    call: Vec<Value>,
    /// Nothing, or the answer and the result.
    end: Option<(Value, Value)>,
}

impl Written {
    fn by_host(text: &str, prompt: &str) -> Self {
        let mut before: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let place = before.iter().position(|record| record["daemonPromptId"] == prompt).unwrap();
        let mut turn = before.split_off(place);
        let mut call = turn.split_off(1);
        let result = call.pop_if(|record| record["systemPayload"]["promptId"] == prompt);
        let end = result.map(|result| (call.pop().unwrap(), result));
        Self { before, prompt: turn.remove(0), call, end }
    }

    /// The transcript that a row describes.
    fn transcript(&self, row: &str) -> String {
        let (mut text, mut parent, mut branch) = (String::new(), Value::Null, None);
        for word in row.split(", ") {
            if word.starts_with('[') {
                branch = Some(parent.clone());
            }
            let name = word.trim_matches(['[', ']']);
            if let Some(place) = name.strip_prefix("rewind to ") {
                parent = self.records(place).last().map_or(Value::Null, |record| record["uuid"].clone());
            }
            for record in self.records(name) {
                let record = hung(record, parent);
                parent = record["uuid"].clone();
                text += &format!("{record}\n");
            }
            if word.ends_with(']') {
                parent = branch.take().unwrap();
            }
        }
        text
    }

    fn records(&self, name: &str) -> Vec<Value> {
        let end = || self.end.clone().unwrap();
        match name {
            "the beginning" => Vec::new(),
            "before" => self.before.clone(),
            "prompt" => vec![self.prompt.clone()],
            "call" => self.call.clone(),
            "answer" => vec![end().0],
            "result" => vec![end().1],
            "prompt without its id" => vec![without(self.prompt.clone(), "", "daemonPromptId")],
            "result without its id" => vec![without(end().1, "/systemPayload", "promptId")],
            name => vec![record(&self.prompt, name)],
        }
    }
}

/// Another program's record, written where and when the prompt was.
fn record(prompt: &Value, name: &str) -> Value {
    let said = |kind: &str, role: &str| {
        let message = json!({ "role": role, "parts": [{ "text": format!("words of a {name}") }] });
        json!({ "type": kind, "message": message })
    };
    let note =
        |subtype: &str, payload: Value| json!({ "type": "system", "subtype": subtype, "systemPayload": payload });
    let history = json!([{ "role": "user", "parts": [{ "text": "what was said before, in short" }] }]);
    let fields = match name {
        "stranger" => said("user", "user"),
        "client" => super::with(said("user", "user"), &json!({ "daemonPromptId": "somebody-elses" })),
        "stranger's answer" => said("assistant", "model"),
        "compression" => note("chat_compression", json!({ "info": {}, "compressedHistory": history })),
        name if name.starts_with("rewind to ") => note("rewind", json!({ "truncatedCount": 2 })),
        _ => panic!("no record is called {name}"),
    };
    let base = ["sessionId", "timestamp", "cwd", "version"].map(|key| (key.to_owned(), prompt[key].clone()));
    let record = json!({ "uuid": uuid::Uuid::new_v4().to_string(), "parentUuid": null });
    super::with(super::with(record, &Value::Object(base.into_iter().collect())), &fields)
}

/// A record that hangs on another one.
fn hung(mut record: Value, parent: Value) -> Value {
    record["parentUuid"] = parent;
    record
}

/// A record that lacks a field of its own or, at `place`, of what is in it.
fn without(mut record: Value, place: &str, field: &str) -> Value {
    record.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(field).unwrap();
    record
}
