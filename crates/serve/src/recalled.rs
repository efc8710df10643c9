//! Where whole answers were found, so that the next range of one costs its own bytes, and neither a search through the transcript nor a
//! reading of all that stands before it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Mutex;

use transcript::{Answer, Answered, PageError, Recorded, find_answer};

use crate::limits::{RECALLED_MAX, RECALLED_PARTS_MAX};
use crate::sync::lock;

/// The long answers that were found last.
#[derive(Debug, Default)]
pub(crate) struct Recalled {
    kept: Mutex<VecDeque<Found>>,
}

/// One of them: its session, its prompt, and what was found.
type Found = (String, String, Answered);

impl Recalled {
    /// What the transcript at `path` has of a prompt's answer, as it was found before or is found now. Blocks.
    ///
    /// # Errors
    /// Those of [`find_answer`].
    pub(crate) fn find(&self, session: &str, prompt: &str, path: &Path) -> Result<Option<Answered>, PageError> {
        if let Some(answered) = self.get(session, prompt, path) {
            return Ok(Some(answered));
        }
        let found = find_answer(path, prompt)?;
        if let Some(answered) = &found {
            self.keep(session, prompt, answered);
        }
        Ok(found)
    }

    /// What was found of a prompt, if nobody has written to the transcript at `path` since: a longer file may have another branch.
    /// Blocks, for one look at the file.
    fn get(&self, session: &str, prompt: &str, path: &Path) -> Option<Answered> {
        let found = lock(&self.kept).iter().find(|(of, id, _)| of == session && id == prompt).cloned();
        let (.., answered) = found?;
        // A file that cannot be looked at is searched anew, and that search says why it cannot be read.
        let is_current = recorded(&answered).is_some_and(|recorded| recorded.is_current(path).unwrap_or(false));
        if !is_current {
            lock(&self.kept).retain(|(of, id, _)| of != session || id != prompt);
            return None;
        }
        self.keep(session, prompt, &answered);
        Some(answered)
    }

    /// Keeps what was found, where it is worth it and within bounds. The one that was asked for longest ago makes room.
    fn keep(&self, session: &str, prompt: &str, answered: &Answered) {
        if recorded(answered).is_none_or(|recorded| recorded.parts() > RECALLED_PARTS_MAX) {
            return;
        }
        let mut kept = lock(&self.kept);
        kept.retain(|(of, id, _)| of != session || id != prompt);
        if kept.len() == RECALLED_MAX {
            kept.pop_front();
        }
        kept.push_back((session.to_owned(), prompt.to_owned(), answered.clone()));
    }

    /// Forgets sessions that are not live any more, and closes their files.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.kept).retain(|(session, _, _)| live(session));
    }
}

/// The text that stands in the file; none when the result holds it.
fn recorded(answered: &Answered) -> Option<&Recorded> {
    match &answered.answer {
        Answer::Recorded(recorded) => Some(recorded),
        Answer::Nothing | Answer::Short(_) | Answer::Lost(_) => answered.partial.as_ref(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use transcript::{Body, Durability, Identity, TurnResult, TurnState, Writer};

    use super::*;

    /// A transcript with one long answer for each prompt, and a writer of it.
    fn written(path: &Path, prompts: &[String]) -> Writer {
        let identity = Identity { session_id: "s".into(), cwd: "/ws".into(), version: "0".into() };
        let mut writer = Writer::open(path, identity, Durability::Process).unwrap();
        for prompt in prompts {
            say(&mut writer, prompt);
        }
        writer
    }

    fn say(writer: &mut Writer, prompt: &str) {
        let text = "long ".repeat(10_000);
        let said = Body::Assistant { model: None, parts: vec![json!({ "text": text })] };
        let result = TurnResult::new(prompt, TurnState::Completed, 1).with_result_text(&text);
        writer.append_all(&[(1, said), (1, result.into())]).unwrap();
    }

    #[test]
    fn what_was_found_is_kept_until_somebody_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut writer = written(&path, &["p".into()]);
        let recalled = Recalled::default();
        let find = || find_answer(&path, "p").unwrap().unwrap();
        recalled.keep("s", "p", &find());
        let has = |session: &str, prompt: &str| recalled.get(session, prompt, &path).is_some();
        assert!(has("s", "p") && has("s", "p") && !has("s", "q") && !has("t", "p"));
        say(&mut writer, "q");
        assert!(!has("s", "p"), "the file has grown");
        recalled.keep("s", "p", &find());
        assert!(has("s", "p"));
        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        assert!(!has("s", "p"), "it is gone");
        std::fs::copy(folder.path().join("moved"), &path).unwrap();
        recalled.keep("s", "p", &find_answer(&folder.path().join("moved"), "p").unwrap().unwrap());
        assert!(!has("s", "p"), "another file stands in its place");
        recalled.keep("s", "p", &find());
        let bytes = std::fs::read_to_string(&path).unwrap();
        let as_long = bytes.replace("long", "gone");
        std::fs::write(&path, &as_long).unwrap();
        let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(9_999_999_999);
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert!(!has("s", "p"), "it was written again, as long as it was");
    }

    #[test]
    fn the_one_that_was_asked_for_longest_ago_makes_room_and_short_ones_need_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let prompts: Vec<_> = (0..=RECALLED_MAX).map(|number| format!("p{number}")).collect();
        let mut writer = written(&path, &prompts);
        let short = TurnResult::new("short", TurnState::Completed, 1).with_result_text("hi");
        writer.append(1, &Body::from(short)).unwrap();
        let recalled = Recalled::default();
        for prompt in &prompts[..RECALLED_MAX] {
            recalled.keep("s", prompt, &find_answer(&path, prompt).unwrap().unwrap());
        }
        recalled.keep("s", "short", &find_answer(&path, "short").unwrap().unwrap());
        assert!(recalled.get("s", "short", &path).is_none());
        assert!(recalled.get("s", "p0", &path).is_some());
        let last = &prompts[RECALLED_MAX];
        recalled.keep("s", last, &find_answer(&path, last).unwrap().unwrap());
        assert!(recalled.get("s", "p0", &path).is_some() && recalled.get("s", last, &path).is_some());
        assert!(recalled.get("s", "p1", &path).is_none());
        recalled.retain(|_| false);
        assert!(lock(&recalled.kept).is_empty());
    }
}
