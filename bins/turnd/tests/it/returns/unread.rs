//! Agents that leave a prompt in their input unread (return requests, section 2.6, step S7): what there is of it when their time is over, what is
//! said of it, and who takes the next prompt.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};

use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::{Value, json};

use super::{all_events, body, ended, get, post, sent, submit, told};
use crate::world::World;

/// The built-in agent behind a valve. The prompt that finds a file `last` is the last one that comes through; it is looked for before the line
/// is handed on, since by its answer the file may be meant for the next one. What follows is left in the pipe, and taken as it is as soon as
/// somebody says that all is `over`.
const VALVED: &str = concat!(
    r#"sh -c 'while IFS= read -r line; do rm last 2>/dev/null && shut=1; printf "%s\n" "$line"; if test "$shut"; then "#,
    r#"until test -f over; do sleep 0.05; done; exec cat > got; fi; done | ""#,
    env!("CARGO_BIN_EXE_turnd"),
    r#"" agent --answer-after-ms 0 --journal ../journal.jsonl'"#
);

/// The time that a flag gives such an agent, which is much less than what it has without one, in milliseconds.
const TIMEOUT_MS: &str = "300";
const DEFAULT_MS: u64 = serve::limits::AGENT_INPUT_MS;

/// A session whose agent has answered `W`, and reads nothing more.
struct Deaf {
    world: World,
    session: String,
    /// The receipt of `W`.
    first: Value,
    /// The end of the pipe that the agent reads from. Held here too, what is in it outlives the agent.
    input: File,
    /// Everything but the daemon.
    processes: BTreeSet<u32>,
}

impl Deaf {
    fn new() -> Self {
        let mut world = World::with(&["--agent", VALVED, "--agent-input-timeout-ms", TIMEOUT_MS, "--linger-ms", "100"]);
        let session = world.session();
        put(&world, "last");
        submit(&mut world, &session, "W", "hello");
        let first = ended(&mut world, "W");
        assert_eq!(told(&first), "completed - yes");
        let input = File::open(format!("/proc/{}/fd/0", world.cast(&session).agent)).unwrap();
        let mut processes = world.family();
        processes.remove(&world.pid());
        Self { world, session, first, input, processes }
    }

    /// How many bytes of a line there are around the text of its prompt, the end of the line included.
    fn around_text(&self) -> usize {
        let journal = fs::read_to_string(self.world.base().join("journal.jsonl")).unwrap();
        let heard = journal.lines().find(|line| line.contains(r#""session/prompt""#)).unwrap();
        heard.len() - r#"{"heard":}"#.len() - "hello".len() + 1
    }

    /// Posts a prompt, says that all is over when it is answered, and gives what is left in the agent's input then.
    fn leave_unread(&mut self, text: &str, expected: &str) -> String {
        let (status, receipt) = post(&mut self.world, &self.session, &body("X", text));
        put(&self.world, "over");
        // A caller who still waits for the first sign of the agent is told so.
        assert_eq!((status, told(&receipt).as_str()), (202, expected), "{receipt}");
        assert_eq!((&receipt["reply_pending"], &receipt["replayed"]), (&json!(false), &json!(false)), "{receipt}");
        let took_ms = receipt["ended_at"].as_u64().unwrap() - receipt["dispatched_at"].as_u64().unwrap();
        assert!(took_ms < DEFAULT_MS, "as long as without the flag: {took_ms}");
        assert!(receipt["terminal"].get("final_message").is_none(), "{receipt}");
        self.world.until_dead(&self.processes);
        assert!(!self.workspace("got").exists(), "it was ended, and not told that nothing more comes");
        let mut left = String::new();
        self.input.read_to_string(&mut left).unwrap();
        assert!(!left.contains('\n'), "there is no end of a line, and nothing behind one");
        left
    }

    /// Another process takes the next prompt, nothing of the one before was heard, and its end is told as it was at first.
    fn go_on(mut self) {
        let over = get(&mut self.world, "X");
        self.world.until_gone(&self.session);
        self.world.load(&self.session);
        let taken = submit(&mut self.world, &self.session, "Y", "and now");
        let [now, before] = [&taken, &self.first].map(|receipt| &receipt["incarnation"]);
        assert!(now["id"].is_string() && now["id"] != before["id"] && now["pid"] != before["pid"], "{now} {before}");
        let next = ended(&mut self.world, "Y");
        assert_eq!(told(&next), "completed - yes");
        assert_eq!(next["terminal"]["final_message"], "echo: and now");
        sent(&self.world, 2);
        assert_eq!(all_events(&mut self.world, 3)[1], over["terminal"]);
    }

    fn workspace(&self, name: &str) -> std::path::PathBuf {
        self.world.base().join("workspace").join(name)
    }
}

/// Puts an empty file where the agent looks for it.
fn put(world: &World, name: &str) {
    fs::write(world.base().join("workspace").join(name), "").unwrap();
}

/// How much a pipe holds here, in bytes.
fn pipe_bytes() -> usize {
    let (_reader, mut writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let mut held = 0;
    while let Ok(written) = writer.write(&[0; 4096]) {
        held += written;
    }
    held
}

#[test]
fn scenario_17_an_agent_that_leaves_half_a_prompt_unread_is_ended_with_nothing_behind_it_and_another_process_goes_on() {
    let mut deaf = Deaf::new();
    let text = "x".repeat(3 * pipe_bytes());
    let left = deaf.leave_unread(&text, "delivery_failed write_failed no");
    assert_eq!(left.len(), pipe_bytes(), "as much as there is room for");
    let head = left.trim_end_matches('x');
    assert!(head.contains(r#""session/prompt""#) && head.ends_with(r#""text":""#), "no byte but of the line: {head}");
    deaf.go_on();
}

#[test]
fn scenario_18_an_agent_that_leaves_nothing_but_the_newline_unread_may_have_the_prompt_and_is_ended_all_the_same() {
    let mut deaf = Deaf::new();
    let text = "x".repeat(pipe_bytes() + 1 - deaf.around_text());
    let left = deaf.leave_unread(&text, "indeterminate write_unknown maybe");
    let line: Value = serde_json::from_str(&left).expect("all of it but the newline");
    assert_eq!((&line["method"], &line["params"]["prompt"][0]["text"]), (&json!("session/prompt"), &json!(text)));
    deaf.go_on();
}
