//! What the workspaces of one daemon must know of each other: whether an id is another one's already, and how many sessions all of them
//! hold. Nothing else passes between them.

use std::sync::{Arc, OnceLock, Weak};

use crate::workspace::Workspace;

/// All workspaces of one daemon. They hold it, so it does not hold them.
#[derive(Default)]
pub(crate) struct Neighbours {
    all: OnceLock<Vec<Weak<Workspace>>>,
}

impl Neighbours {
    /// Makes the workspaces known to each other; only the first call counts.
    pub(crate) fn introduce<'w>(&self, workspaces: impl Iterator<Item = &'w Arc<Workspace>>) {
        self.all.get_or_init(|| workspaces.map(Arc::downgrade).collect());
    }

    /// All but `one`.
    pub(crate) fn of(&self, one: &Workspace) -> impl Iterator<Item = Arc<Workspace>> {
        let own = std::ptr::from_ref(one);
        self.iter().filter(move |other| !std::ptr::eq(Arc::as_ptr(other), own))
    }

    /// Sessions of all of them, those being opened included.
    pub(crate) fn occupied(&self) -> usize {
        self.iter().map(|workspace| workspace.occupied()).sum()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<Workspace>> {
        self.iter()
    }

    fn iter(&self) -> impl Iterator<Item = Arc<Workspace>> {
        self.all.get().into_iter().flatten().filter_map(Weak::upgrade)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::desk::{Action, Busy, RestoreRequest};
    use crate::hosts::ProcessStarter;
    use crate::limits::Limits;
    use crate::options::{Durability, Mode, ServeOptions};
    use crate::returns::Returns;
    use crate::wanted::Wanted;
    use crate::{create, restore};

    /// Options that fit a test without hosts.
    pub(crate) fn options(store: &std::path::Path) -> ServeOptions {
        ServeOptions {
            workspaces: vec!["/one".into(), "/two".into()],
            store: store.to_owned(),
            mode: Mode::Recorded,
            agent: vec!["none".into()],
            token: None,
            tls: None,
            require_auth: false,
            allow_origins: Vec::new(),
            rates: None,
            limits: Limits::default(),
            durability: Durability::Process,
            linger_ms: 0,
            agent_input_ms: 0,
            initialize_timeout_ms: 0,
            restore_timeout_ms: 0,
            prompt_deadline_ms: None,
            prompt_run_deadline_ms: None,
            settle_grace_ms: 0,
            close_settle_ms: 0,
            idleness: crate::reaper::Idleness::default(),
            mediation: bridge::Mediation::default(),
            writer_idle_timeout_ms: None,
            session_shell: false,
            host_launcher: "/nonexistent".into(),
            version: String::new(),
        }
    }

    /// The look at the door may be a moment too early: what counts is the one behind the taking of the id.
    #[tokio::test]
    async fn an_id_that_another_workspace_took_meanwhile_is_refused_behind_the_door_too() {
        let store = tempfile::tempdir().unwrap();
        let options = Arc::new(options(store.path()));
        let hosts = Arc::new(ProcessStarter { launcher: "/nonexistent".into() });
        let neighbours = Arc::<Neighbours>::default();
        let returns = Returns::new(Arc::clone(&neighbours));
        returns.open(store.path().join("requests")).await;
        let workspace = |folder: &str| {
            let (options, hosts) = (Arc::clone(&options), Arc::clone(&hosts));
            Arc::new(Workspace::new(folder.as_ref(), options, hosts, Arc::clone(&returns)))
        };
        let (one, two) = (workspace("/one"), workspace("/two"));
        neighbours.introduce([&one, &two].into_iter());
        let id = "11111111-1111-4111-8111-111111111111";
        let fence = one.desk.take(id, Busy::Creating).ok();
        let request = || RestoreRequest { action: Action::Load, records_max: None, options: Vec::new() };
        let refused = restore::restore(&two, id, request()).await.err().unwrap();
        assert_eq!(refused.code, "session_workspace_conflict");
        let refused = create::thread(&two, Some(id.to_owned()), Wanted::default()).await.err().unwrap();
        assert_eq!(refused.code, "session_id_conflict");
        drop(fence);
        let refused = restore::restore(&two, id, request()).await.err().unwrap();
        assert_eq!(refused.code, "session_not_found");
    }
}
