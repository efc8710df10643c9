//! What must hold of every world once its test is over, whatever was done to it: no agent has heard a prompt twice, none has heard what was
//! not sent, what has completed was heard, and the store of return requests is sound.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::{JOURNAL, World, chats};

/// Where a prompt's id stands in what an agent has heard.
const PROMPT_ID: &str = "/heard/params/_meta/qwen-code~1invocation/promptId";

impl Drop for World {
    fn drop(&mut self) {
        self.end_all();
        // A test that has failed says why itself.
        if !thread::panicking() {
            let heard = self.prompts_heard();
            self.store_agrees(&heard);
        }
    }
}

impl World {
    /// Ends the daemon and everything below it, and the hosts that have outlived one and their agents: whatever names this world's folder.
    fn end_all(&mut self) {
        let is_running = matches!(self.daemon.child.try_wait(), Ok(None));
        let mut doomed = if is_running { self.family() } else { BTreeSet::new() };
        let base = self.base.path().display().to_string();
        let names_it = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| contains(&line, &base));
        doomed.extend(super::parents().into_iter().map(|(pid, _)| pid).filter(names_it));
        if doomed.is_empty() {
            return;
        }
        // Stopped first, so that none begins another one.
        for signal in ["-STOP", "-KILL"] {
            let pids = doomed.iter().map(ToString::to_string);
            let _ = Command::new("kill").arg(signal).args(pids).stderr(Stdio::null()).status();
        }
        let _ = self.daemon.child.wait();
        if !thread::panicking() {
            self.until_dead(&doomed);
        }
    }

    /// How often each prompt was heard: not more than once. Nothing where the agents keep no journal.
    fn prompts_heard(&self) -> Option<BTreeMap<String, usize>> {
        if !self.flags.iter().any(|flag| flag.contains(JOURNAL)) {
            return None;
        }
        // There is none before the first agent, and its last line may be one over which its agent was killed.
        let text = fs::read_to_string(self.base.path().join(JOURNAL)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut heard = BTreeMap::new();
        for line in lines.filter(|line| line["heard"]["method"] == "session/prompt") {
            let id = line.pointer(PROMPT_ID).and_then(Value::as_str).unwrap_or_else(|| panic!("whose prompt: {line}"));
            *heard.entry(id.to_owned()).or_insert(0) += 1;
        }
        let twice: Vec<_> = heard.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "heard more than once: {twice:?}");
        Some(heard)
    }

    /// Looks whether everything holds that must in the store, and whether what it says of each prompt is what the agents have heard. One
    /// that was put aside is none.
    fn store_agrees(&self, heard: &Option<BTreeMap<String, usize>>) {
        let folder = chats(self).with_file_name("turnd-requests");
        let file = folder.join("requests.db");
        if !file.exists() {
            return;
        }
        let report = request::store::verify(&folder).unwrap();
        assert_eq!(report.violations, Vec::<String>::new());
        let Some(heard) = heard else { return };
        let conn = Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let mut told = conn.prepare("SELECT prompt_id, state, input_written FROM request").unwrap();
        let mut rows = told.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let [prompt, state, written] = [0, 1, 2].map(|column| row.get::<_, String>(column).unwrap());
            let is_heard = heard.contains_key(&prompt);
            let is_over = !["registered", "submitted", "bound"].contains(&&*state);
            assert!(!is_heard || !is_over || written != "no", "{state}, {written}, and {prompt} was heard");
            assert!(is_heard || state != "completed", "{prompt} has completed, and nobody has heard it");
        }
    }
}

fn contains(line: &[u8], word: &str) -> bool {
    line.windows(word.len()).any(|part| part == word.as_bytes())
}
