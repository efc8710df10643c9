//! Whose turns are followed behind the ends of their requests, and which of them are to stop. There are so many places, since each turn is
//! looked at again and again, and a wish has its place from the moment it is heard: who is told that it was taken is not told wrong.

use std::collections::HashSet;
use std::sync::Mutex;

use request::RequestId;

use crate::limits::AFTERWARDS_TURNS_MAX;
use crate::sync::lock;

/// The places.
#[derive(Default)]
pub(super) struct Following(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    to_stop: HashSet<RequestId>,
    followed: HashSet<RequestId>,
}

impl Following {
    /// Notes that the turn of a request is to stop. Whether there is a place for it.
    pub(super) fn want_stop(&self, request_id: &RequestId) -> bool {
        let mut turns = lock(&self.0);
        if !turns.has_place(request_id) {
            drop(turns);
            tracing::warn!(request = %request_id, "a turn is not told to stop: too many are followed already");
            return false;
        }
        turns.to_stop.insert(request_id.clone());
        true
    }

    /// Whether the turn of a request is to stop; said once of each wish.
    pub(super) fn take_stop(&self, request_id: &RequestId) -> bool {
        lock(&self.0).to_stop.remove(request_id)
    }

    /// Takes a request for one whose turn is followed, unless it is one already, or there is no place.
    pub(super) fn begin(&self, request_id: &RequestId) -> bool {
        let mut turns = lock(&self.0);
        if !turns.has_place(request_id) {
            drop(turns);
            tracing::warn!(request = %request_id, "a turn is not followed behind its request's end: too many are already");
            return false;
        }
        turns.followed.insert(request_id.clone())
    }

    /// Nobody follows the turn of a request any more.
    pub(super) fn end(&self, request_id: &RequestId) {
        let mut turns = lock(&self.0);
        turns.followed.remove(request_id);
        turns.to_stop.remove(request_id);
    }
}

impl Turns {
    /// Whether a request has a place, or can have one.
    fn has_place(&self, request_id: &RequestId) -> bool {
        let has_one = self.to_stop.contains(request_id) || self.followed.contains(request_id);
        has_one || self.to_stop.union(&self.followed).count() < AFTERWARDS_TURNS_MAX as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> RequestId {
        RequestId::parse(&format!("r{number}")).unwrap()
    }

    #[test]
    fn a_wish_that_was_taken_has_its_place_and_one_too_many_is_refused() {
        let following = Following::default();
        assert!((0..AFTERWARDS_TURNS_MAX).all(|number| following.want_stop(&id(number))));
        let more = id(AFTERWARDS_TURNS_MAX);
        assert!(!following.want_stop(&more) && !following.begin(&more) && !following.take_stop(&more));
        assert!(following.want_stop(&id(0)), "again");
        assert!(following.begin(&id(0)), "it has its place already");
        assert!(!following.begin(&id(0)), "it is followed");
        assert!(following.take_stop(&id(0)) && !following.take_stop(&id(0)));
        assert!(!following.want_stop(&more), "it is followed all the same");
        following.end(&id(0));
        assert!(following.want_stop(&more));
    }

    #[test]
    fn a_turn_that_is_only_followed_needs_a_place_too() {
        let following = Following::default();
        assert!((0..AFTERWARDS_TURNS_MAX).all(|number| following.begin(&id(number))));
        assert!(!following.want_stop(&id(AFTERWARDS_TURNS_MAX)));
        assert!(following.want_stop(&id(7)));
    }
}
