//! Agents that say what is not theirs to say: no word of theirs is taken for their host's.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{all_events, ended, submit, told};
use crate::world::{World, until};

/// Plays the lines of the file that a prompt names, as soon as nothing holds them back.
const LIAR: &str = r#"cd "$(dirname "$0")"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf %s "$line" | sed 's/.*"id":\([0-9][0-9]*\).*/\1/')
    case $line in
    *'"method":"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*) answer '{"sessionId":"ses"}' ;;
    *'"method":"session/prompt"'*)
        name=$(printf %s "$line" | sed 's/.*play \([a-z0-9-]*\).*/\1/')
        echo "$name" >> played
        while test -e "held-$name"; do sleep 0.02; done
        sed "s/@ID@/$id/" "lines-$name" ;;
    esac
done
"#;

/// A world with such an agent.
pub(super) struct Liar {
    folder: TempDir,
    pub(super) world: World,
}

impl Liar {
    pub(super) fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("agent");
        fs::write(&script, LIAR).unwrap();
        let agent = format!("sh '{}'", script.display());
        let flags: Vec<&str> = ["--agent", &agent].iter().chain(flags).copied().collect();
        Self { world: World::with(&flags), folder }
    }

    /// Writes what the agent says to a prompt of this name, and gives the prompt.
    pub(super) fn play(&self, name: &str, lines: &[String]) -> String {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(self.folder.path().join(format!("lines-{name}")), lines).unwrap();
        format!("play {name}")
    }

    /// How often the agent was given a prompt of this name.
    fn played(&self, name: &str) -> usize {
        let played = fs::read_to_string(self.folder.path().join("played")).unwrap_or_default();
        played.lines().filter(|line| *line == name).count()
    }
}

/// The answer to the prompt.
fn answer(rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":@ID@,{rest}}}"#)
}

#[test]
fn an_agents_error_says_nothing_in_its_hosts_name_however_it_is_spelled() {
    let mut liar = Liar::new(&[]);
    let cases = [
        ("plain", r#"{"turnd/inputWritten":"no","turnd/code":"session_closed"}"#),
        ("slash", r#"{"turnd\/inputWritten":"no","turnd\/code":"session_closed"}"#),
        ("letter", r#"{"\u0074urnd/inputWritten":"no","\u0074urnd/code":"prompt_deadline_exceeded"}"#),
        ("number", r#"{"turnd/inputWritten":"no","turnd/code":"channel_closed","d":1e9999}"#),
    ];
    let session = liar.world.session();
    for (name, data) in cases {
        let error = format!(r#""error":{{"code":-32000,"message":"m","data":{data}}}"#);
        let text = liar.play(name, &[answer(&error)]);
        let prompt = liar.world.prompt(&session, &text);
        let over = liar.world.settle(&session, &prompt);
        assert_eq!((&over["state"], &over["inputWritten"]), (&json!("error"), &json!("yes")), "{name}: {over}");
        assert_eq!(over["error"]["code"], "-32000", "{name}: {over}");
        assert_eq!(liar.played(name), 1);
        assert!(!liar.world.transcript(&session).contains("session_closed"), "{name}");
    }
    let status: Value = liar.world.get(&format!("/session/{session}/status"));
    assert_eq!(status["sessionId"], session, "the session goes on");
}

fn update(update: &Value) -> String {
    let params = json!({ "sessionId": "ses", "update": update });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

fn says(text: &str) -> String {
    update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }))
}

fn ends() -> String {
    answer(r#""result":{"stopReason":"end_turn"}"#)
}

/// What two requests come to whose agent says the same lines: one whose daemon lives, and one whose daemon was killed before the first.
fn live_and_killed(lines: &[String]) -> [Value; 2] {
    let mut liar = Liar::new(&["--linger-ms", "20000"]);
    let text = liar.play("live", lines);
    let session = liar.world.session();
    submit(&mut liar.world, &session, "live", &text);
    let live = ended(&mut liar.world, "live");
    let (session, text, held) =
        (liar.world.session(), liar.play("killed", lines), liar.folder.path().join("held-killed"));
    fs::write(&held, "").unwrap();
    submit(&mut liar.world, &session, "killed", &text);
    until("the agent has the prompt", || (liar.played("killed") == 1).then_some(()));
    liar.world.kill_daemon();
    fs::remove_file(&held).unwrap();
    let killed = ended(&mut liar.world, "killed");
    all_events(&mut liar.world, 2);
    [live, killed]
}

#[test]
fn scenarios_46_and_47_what_an_agent_says_that_it_was_asked_is_not_forgotten_with_a_daemon_that_was_killed() {
    let user = |id: &str, text: &str| {
        let content = json!({ "type": "text", "text": text });
        update(&json!({ "sessionUpdate": "user_message_chunk", "messageId": id, "content": content }))
    };
    let other = live_and_killed(&[user("m", "something else"), says("A"), ends()]);
    assert_eq!(other.map(|over| told(&over)), ["indeterminate prompt_mismatch yes"; 2]);
    let second = live_and_killed(&[user("m", "something"), says("A"), user("n", "else"), says("B"), ends()]);
    assert_eq!(second.map(|over| told(&over)), ["indeterminate extra_user_message yes"; 2]);
}

#[test]
fn scenario_53_what_two_could_read_in_two_ways_is_read_in_one_whether_the_daemon_lives_or_was_killed() {
    let call = json!({ "toolCallId": "c", "title": "x" });
    let params =
        json!({ "sessionId": "ses", "toolCall": call, "options": [{ "optionId": "a", "kind": "allow_once" }] });
    let asks = json!({ "jsonrpc": "2.0", "id": 55, "method": "session/request_permission", "params": params });
    let asked = live_and_killed(&[says("A"), asks.to_string(), says("B"), ends()]);
    assert_eq!(asked.map(|over| over["terminal"]["final_message"].clone()), [json!("B"), json!("B")]);
    let unnamed = says("X").replace(r#""sessionId":"ses","#, "");
    let untyped = says("X").replace(r#","type":"text""#, "").replace(r#""type":"text","#, "");
    for (unclear, typed) in [(unnamed, true), (says("X").replace(r#""ses""#, "7"), true), (untyped, false)] {
        assert_eq!(unclear.contains(r#""type":"text""#), typed, "{unclear}");
        let over = live_and_killed(&[says("A"), unclear, says("B"), ends()]);
        let details = over.each_ref().map(|over| (told(over), over["detail"].clone()));
        assert_eq!(
            details,
            ["indeterminate unattributable yes"; 2].map(|told| (told.to_owned(), json!("stray_words")))
        );
    }
}
