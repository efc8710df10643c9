//! A native agent's names for the places of a conversation, and whether they mean the turns that the transcript shows there.
//!
//! qwen-code cuts its history by the number that a place has in its own list. That list goes on with turns that were taken back, and leaves
//! out what was no turn for its model; so a name may mean another turn than the one whose record it stands behind. It is sent to a place
//! only where both count as many turns and agree on this one, and the transcript is looked at afterwards.

use serde_json::Value;
use transcript::{RewindPoint, RewindPoints};

/// A native agent's list of places.
#[derive(Debug)]
pub(crate) struct Places(Vec<Value>);

/// Where a native agent is sent.
#[derive(Debug)]
pub(crate) struct Target {
    /// The agent's name for it.
    pub(crate) name: String,
    /// The prompts of the branch, and how many of them are to stay; none where the agent's own name was asked for.
    pub(crate) meant: Option<(Vec<RewindPoint>, u64)>,
}

impl Places {
    /// The list of an agent's answer; what is none is an empty one.
    pub(crate) fn of(answer: &str) -> Self {
        let mut answer: Value = serde_json::from_str(answer).unwrap_or_default();
        Self(answer["snapshots"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// The agent's name for a place of `found`, if it counts as the transcript does. Under another name than the one that stands in the transcript
    /// it would put back other files; so such a name is good only where files stay as they are.
    pub(crate) fn name(&self, found: &RewindPoints, point: &RewindPoint, files: bool) -> Option<String> {
        if self.0.len() as u64 != turns(found) {
            return None;
        }
        let entry = self.0.iter().find(|entry| entry["turnIndex"].as_u64() == Some(point.turn_index))?;
        let name = entry["promptId"].as_str()?;
        (!files || point.snapshot_id.as_deref() == Some(name)).then(|| name.to_owned())
    }

    /// The list with the ids of the prompts where transcript and agent agree on the place.
    pub(crate) fn named(mut self, found: &RewindPoints) -> Vec<Value> {
        for point in &found.points {
            let Some(name) = self.name(found, point, true) else { continue };
            let entry = self.0.iter_mut().find(|entry| entry["promptId"] == name.as_str());
            if let (Some(entry), Some(prompt_id)) = (entry, &point.prompt_id) {
                entry["daemonPromptId"] = prompt_id.as_str().into();
            }
        }
        self.0
    }
}

/// How many prompts stand on a branch of which all places were asked for.
pub(crate) fn turns(found: &RewindPoints) -> u64 {
    found.points.last().map_or(0, |point| point.turn_index + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn branch(snapshots: &[&str]) -> RewindPoints {
        let point = |(turn_index, snapshot): (u64, &&str)| RewindPoint {
            record: format!("r{turn_index}"),
            prompt_id: Some(format!("p{turn_index}")),
            snapshot_id: Some((*snapshot).to_owned()),
            at_ms: None,
            turn_index,
            before: None,
            last: "r".into(),
            entries: 1,
        };
        RewindPoints { leaf: None, points: (0..).zip(snapshots).map(point).collect(), is_compressed: false }
    }

    fn listed(names: &[&str]) -> Places {
        let entry = |(turn, name): (u64, &&str)| json!({"promptId": name, "turnIndex": turn});
        Places::of(&json!({"snapshots": (0..).zip(names).map(entry).collect::<Vec<_>>()}).to_string())
    }

    #[test]
    fn the_agents_list_gets_the_ids_of_the_prompts_that_the_transcript_has_at_the_same_place() {
        let found = branch(&["s#1", "s#3"]);
        let told = listed(&["s#1", "s#2"]).named(&found);
        let first = json!({"promptId": "s#1", "turnIndex": 0, "daemonPromptId": "p0"});
        assert_eq!(told, [first, json!({"promptId": "s#2", "turnIndex": 1})]);
        assert!(Places::of("null").named(&found).is_empty());
        assert_eq!(Places::of(r#"{"snapshots":[7,8]}"#).named(&found), [json!(7), json!(8)]);
    }

    #[test]
    fn a_name_that_stands_elsewhere_in_the_transcript_is_good_only_where_files_stay_as_they_are() {
        let (found, places) = (branch(&["s#1", "s#3"]), listed(&["s#1", "s#2"]));
        assert_eq!(places.name(&found, &found.points[1], true), None);
        assert_eq!(places.name(&found, &found.points[1], false).as_deref(), Some("s#2"));
        assert_eq!(places.name(&found, &found.points[0], true).as_deref(), Some("s#1"));
    }

    #[test]
    fn where_the_agent_counts_fewer_turns_or_more_no_name_is_good() {
        let found = branch(&["s#1", "s#2"]);
        for places in [listed(&["s#1"]), listed(&["s#1", "s#2", "s#3"]), Places::of("{}")] {
            for (point, files) in found.points.iter().zip([true, false]) {
                assert_eq!(places.name(&found, point, files), None);
            }
        }
    }
}
