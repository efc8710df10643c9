//! The number by which a client that polls knows that a list is worth fetching again.

use bridge::Title;

use crate::identity::fresh_uuid;

/// A folder that changed less than this ago may change once more without another time: file systems count in ticks, in milliseconds,
/// and the coarsest in seconds.
const TICK_MS: u64 = 2_000;

/// What a list depends on, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When the names in the folder of the sessions changed last, in epoch milliseconds: files came, went, or were moved.
    pub(crate) active_ms: Option<u64>,
    /// The same of the folder of those that were put away.
    pub(crate) archived_ms: Option<u64>,
    /// The live sessions and what they are called, by their ids.
    pub(crate) live: Vec<(String, Option<Title>)>,
}

/// A version as clients are told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogVersion {
    /// The life of the daemon: numbers of different lives are not to be compared.
    pub(crate) generation: String,
    /// Higher than before whenever the catalog has changed since, and at times when it has not.
    pub(crate) revision: u64,
}

/// The version of one catalog. It is raised when somebody looks, so that nobody who changes anything has to think of it.
#[derive(Debug)]
pub(super) struct Version {
    generation: String,
    revision: u64,
    seen: Option<Seen>,
    /// A folder had just changed when it was looked at, and may have changed once more under the same time.
    may_hide_more: bool,
}

impl Default for Version {
    fn default() -> Self {
        Self { generation: fresh_uuid(), revision: 0, seen: None, may_hide_more: false }
    }
}

impl Version {
    /// The version under which `seen` is told, at this time in epoch milliseconds.
    pub(super) fn observe(&mut self, seen: Seen, now_ms: u64) -> CatalogVersion {
        let is_fresh = |at_ms: Option<u64>| at_ms.is_some_and(|at_ms| now_ms < at_ms.saturating_add(TICK_MS));
        let may_hide_more = is_fresh(seen.active_ms) || is_fresh(seen.archived_ms);
        if self.may_hide_more || self.seen.as_ref() != Some(&seen) {
            self.revision += 1;
        }
        (self.seen, self.may_hide_more) = (Some(seen), may_hide_more);
        CatalogVersion { generation: self.generation.clone(), revision: self.revision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(active_ms: u64, live: &[(&str, Option<&str>)]) -> Seen {
        let title = |text: &str| Title { text: text.to_owned(), source: Title::MANUAL.to_owned() };
        let live = live.iter().map(|(id, name)| ((*id).to_owned(), name.map(title))).collect();
        Seen { active_ms: Some(active_ms), archived_ms: None, live }
    }

    #[test]
    fn a_revision_rises_with_every_change_and_rests_while_there_is_none() {
        let mut version = Version::default();
        let mut at = |seen: Seen| version.observe(seen, 100_000).revision;
        assert_eq!(at(seen(1, &[])), 1);
        assert_eq!(at(seen(1, &[])), 1);
        assert_eq!(at(seen(2, &[])), 2, "a file came or went");
        assert_eq!(at(seen(2, &[("a", None)])), 3, "a session lives");
        assert_eq!(at(seen(2, &[("a", Some("n"))])), 4, "it is called something");
        assert_eq!(at(seen(2, &[("a", Some("m"))])), 5);
        assert_eq!(at(Seen { archived_ms: Some(3), ..seen(2, &[("a", Some("m"))]) }), 6, "one was put away");
        assert_eq!(at(seen(2, &[("a", Some("m"))])), 7);
        assert_eq!(at(seen(2, &[("a", Some("m"))])), 7);
    }

    #[test]
    fn a_folder_that_has_just_changed_is_not_trusted_to_have_rested() {
        let mut version = Version::default();
        let mut at = |now_ms| version.observe(seen(10_000, &[]), now_ms).revision;
        assert_eq!((at(10_000), at(10_001), at(11_999)), (1, 2, 3));
        assert_eq!(at(12_000), 4, "it may have changed behind the look before");
        assert_eq!((at(12_001), at(20_000)), (4, 4));
    }

    #[test]
    fn every_life_has_its_own_generation() {
        assert_ne!(Version::default().generation, Version::default().generation);
    }
}
