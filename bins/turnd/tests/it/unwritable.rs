//! Commands whose stdout takes nothing: an answer that was told to nobody is a failure, and is said to be one.

use std::fs::{File, OpenOptions};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::requests::stderr;
use crate::scripted::{End, Heard, Reply, Scripted};

/// Every command that talks to a daemon and prints.
const TALKING: [&[&str]; 19] = [
    &["send", "S", "--return-final", "--request-id", "x", "hello"],
    &["send", "S", "hello"],
    &["request", "get", "x"],
    &["request", "cancel", "x"],
    &["request", "list"],
    &["request", "wait", "x"],
    &["request", "watch"],
    &["request", "watch", "--once"],
    &["request", "ack", "billing", "1"],
    &["webhook", "add", "pager", "http://127.0.0.1:1/"],
    &["webhook", "list"],
    &["webhook", "list", "--json"],
    &["webhook", "show", "pager"],
    &["webhook", "show", "pager", "--json"],
    &["webhook", "rotate", "pager"],
    &["webhook", "retire", "pager"],
    &["webhook", "resume", "pager"],
    &["webhook", "redeliver", "pager", "1"],
    &["webhook", "dead-letters", "pager", "--json"],
];

/// The others. What they need lies in the folder that they run in.
const ALONE: [&[&str]; 9] = [
    &["explain", "."],
    &["completions", "bash"],
    &["man"],
    &["demo"],
    &["help"],
    &["--help"],
    &["--version"],
    &["request", "get", "--help"],
    &["request", "store", "verify", "--store", "store", "--workspace", "workspace"],
];

/// A stdout to which nothing can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wall {
    /// A full disk.
    Full,
    /// Open for reading only.
    ReadOnly,
}

impl Wall {
    const ALL: [Self; 2] = [Self::Full, Self::ReadOnly];

    fn run(self, mut command: Command) -> Output {
        match self {
            Self::Full => command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap()),
            Self::ReadOnly => command.stdout(File::open("/dev/null").unwrap()),
        };
        command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap()
    }

    /// Asserts that a command says so, and nothing else.
    fn stops(self, words: &[&str], output: &Output) -> String {
        let said = stderr(output);
        assert_eq!(output.status.code(), Some(1), "{words:?} {self:?}: {said}");
        let why = if self == Self::Full { "No space left" } else { "it can only be read; nothing was done" };
        let is_said = said.starts_with(&format!("turnd: cannot write to stdout: {why}"));
        assert!(is_said && said.lines().count() == 1, "{words:?} {self:?}: {said}");
        said
    }
}

/// An answer in which each of the commands finds what it asked for.
fn answer(request: &Heard, _: usize) -> Reply {
    let endpoint = json!({ "name": "pager", "url": "http://127.0.0.1:1/", "state": "active", "secret": "whsec_MfKQ" });
    let letter = json!({ "seq": 1, "reason": "gone" });
    let event =
        json!({ "v": 1, "terminal_event_sequence": 1, "cursor": "st.1/c", "stream_id": "st", "state": "completed" });
    if request.head.contains("accept: application/x-ndjson") {
        return Reply::Stream(vec![format!("{event}\n")], End::Open);
    }
    let prompt: Value = serde_json::from_str(&request.body).unwrap_or_default();
    let name = if request.target.contains("consumers") { "billing" } else { "pager" };
    let mut all = endpoint.clone();
    all["name"] = name.into();
    for (key, value) in [
        ("request_id", json!("x")),
        ("promptId", prompt["promptId"].clone()),
        ("state", json!("completed")),
        ("reply_pending", json!(false)),
        ("requests", json!([{ "request_id": "x" }])),
        ("webhooks", json!([endpoint])),
        ("dead_letters", json!([letter])),
        ("stream_id", json!("st")),
        ("events", json!([event])),
        ("next_after", json!(1)),
        ("next_cursor", json!("st.1/c")),
        ("oldest", json!(1)),
        ("head", json!(1)),
    ] {
        all[key] = value;
    }
    Reply::Answer(200, "", all.to_string())
}

#[test]
fn a_command_whose_answer_has_no_way_out_ends_with_1_and_says_so() {
    for (words, wall) in TALKING.into_iter().flat_map(|words| Wall::ALL.map(|wall| (words, wall))) {
        let daemon = Scripted::play(answer);
        let output = wall.run(daemon.command(words));
        wall.stops(words, &output);
        // What can be seen beforehand is seen before anything is asked for.
        assert_eq!(daemon.heard().is_empty(), wall != Wall::Full, "{words:?} {wall:?}");
    }
}

#[test]
fn so_does_one_that_asks_no_daemon() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("workspace")).unwrap();
    let workspace = folder.path().join("workspace").canonicalize().unwrap();
    let chats = transcript::layout::chats_dir(&folder.path().join("store"), &workspace);
    let (store, _) =
        request::store::Store::open(&chats.with_file_name("turnd-requests"), request::store::Options::default(), 1_000)
            .unwrap();
    store.close(1_001).unwrap();
    for (words, wall) in ALONE.into_iter().flat_map(|words| Wall::ALL.map(|wall| (words, wall))) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnd"));
        command.args(words).current_dir(folder.path());
        let output = wall.run(command);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?} {wall:?}: {said}");
        assert!(said.starts_with("turnd: cannot write to stdout: "), "{words:?} {wall:?}: {said}");
    }
}

#[test]
fn what_was_done_before_its_answer_was_lost_is_named() {
    for (words, expected) in [
        (TALKING[0], "the request is on record: `turnd request wait x`"),
        (TALKING[1], "it was taken: its promptId is "),
        (TALKING[9], "the secret was told to nobody: `turnd webhook rotate pager`"),
        (TALKING[14], "the secret was told to nobody: `turnd webhook retire pager --which current`"),
    ] {
        let daemon = Scripted::play(answer);
        let said = Wall::Full.stops(words, &Wall::Full.run(daemon.command(words)));
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn a_stdout_that_swallows_everything_is_what_its_caller_wanted() {
    for words in TALKING.into_iter().filter(|words| *words != ["request", "watch"]) {
        let daemon = Scripted::play(answer);
        for null in [Stdio::null(), File::options().read(true).write(true).open("/dev/null").unwrap().into()] {
            let output = daemon.command(words).stdout(null).output().unwrap();
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{words:?}");
        }
    }
}
