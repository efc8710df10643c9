//! Who uses a session (wire specification, section 4).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::limits::CLIENTS_MAX;

/// The registered clients of one session. They live as long as the session does.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    registered: HashMap<String, Registration>,
}

#[derive(Debug)]
struct Registration {
    count: usize,
    seen_at_ms: u64,
}

impl Clients {
    /// Counts a registered client again, or registers `fresh`: unknown ids are replaced, so that nobody takes another's by name.
    /// Gives the client's id, and the client that made room for it.
    pub(crate) fn register(&mut self, client_id: Option<&str>, fresh: String, at_ms: u64) -> (String, Option<String>) {
        if let Some((id, registration)) = client_id.and_then(|id| Some((id, self.registered.get_mut(id)?))) {
            registration.count += 1;
            registration.seen_at_ms = at_ms;
            return (id.to_owned(), None);
        }
        let gone = self.make_room();
        self.registered.insert(fresh.clone(), Registration { count: 1, seen_at_ms: at_ms });
        (fresh, gone)
    }

    /// Who is registered.
    pub(crate) fn ids(&self) -> BTreeSet<Arc<str>> {
        self.registered.keys().map(|id| id.as_str().into()).collect()
    }

    pub(crate) fn is_registered(&self, client_id: &str) -> bool {
        self.registered.contains_key(client_id)
    }

    pub(crate) fn see(&mut self, client_id: &str, at_ms: u64) {
        if let Some(registration) = self.registered.get_mut(client_id) {
            registration.seen_at_ms = at_ms;
        }
    }

    /// Takes one registration back; the last one taken back unregisters the client, which is then gone.
    pub(crate) fn detach(&mut self, client_id: &str) -> bool {
        let Some(registration) = self.registered.get_mut(client_id) else { return false };
        registration.count -= 1;
        let gone = registration.count == 0;
        if gone {
            self.registered.remove(client_id);
        }
        gone
    }

    pub(crate) fn len(&self) -> usize {
        self.registered.len()
    }

    fn make_room(&mut self) -> Option<String> {
        if self.registered.len() < CLIENTS_MAX {
            return None;
        }
        let longest_unseen = self.registered.iter().min_by_key(|(_, registration)| registration.seen_at_ms);
        let id = longest_unseen.map(|(id, _)| id.clone())?;
        self.registered.remove(&id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_id_is_replaced_and_a_known_one_counted() {
        let mut clients = Clients::default();
        assert_eq!(clients.register(Some("mine"), "fresh".into(), 0), ("fresh".into(), None));
        assert!(!clients.is_registered("mine"));
        assert_eq!(clients.register(Some("fresh"), "other".into(), 0), ("fresh".into(), None));
        assert_eq!(clients.len(), 1);
    }

    #[test]
    fn a_client_registered_twice_is_there_until_it_detached_twice() {
        let mut clients = Clients::default();
        clients.register(None, "c".into(), 0);
        clients.register(Some("c"), "d".into(), 0);
        assert!(!clients.detach("c"));
        assert!(clients.is_registered("c"));
        assert!(clients.detach("c"));
        assert!(!clients.is_registered("c"));
        assert!(!clients.detach("c"));
        assert_eq!(clients.len(), 0);
    }

    #[test]
    fn the_client_unseen_for_longest_makes_room() {
        let mut clients = Clients::default();
        for number in 0..CLIENTS_MAX {
            clients.register(None, number.to_string(), 1);
        }
        clients.see("0", 2);
        clients.register(Some("1"), "unused".into(), 2);
        for number in 2..CLIENTS_MAX - 1 {
            clients.see(&number.to_string(), 2);
        }
        let (_, gone) = clients.register(None, "newcomer".into(), 3);
        assert_eq!(gone, Some((CLIENTS_MAX - 1).to_string()));
        assert_eq!(clients.len(), CLIENTS_MAX);
        assert!(clients.is_registered("0") && clients.is_registered("newcomer"));
        assert!(!clients.is_registered(&(CLIENTS_MAX - 1).to_string()));
    }
}
