//! Which process an agent is, so that no other one is ever taken for it.

use bridge::witness::Process;
use request::Incarnation;
use request::store::StoreError;
use serde_json::Value;

use crate::clock::now_ms;
use crate::returns::Returns;
use crate::sync::lock;
use crate::workspace::Workspace;

/// Why a process is gone whose session is over.
const SESSION_ENDED: &str = "session_ended";

impl Returns {
    /// The id of the process of a live session's agent; the session's life is the nonce, being random and never used twice.
    pub(crate) fn incarnation_id(&self, process: &Process, life: &str) -> Option<String> {
        let daemon_epoch = self.store().ok()?.daemon_epoch();
        let (child_pid, child_start_ticks) = (process.pid, process.start_ticks);
        let boot_id = &process.boot_id;
        Some(request::Process { child_pid, child_start_ticks, boot_id, daemon_epoch, nonce: life }.incarnation_id())
    }

    /// The same, on record.
    ///
    /// # Errors
    /// When the store does not take it.
    pub(crate) async fn note_incarnation(
        &self,
        workspace: &Workspace,
        process: Option<&Process>,
        life: &str,
    ) -> Result<Option<String>, StoreError> {
        let Some(process) = process else { return Ok(None) };
        let Some(incarnation_id) = self.incarnation_id(process, life) else { return Err(StoreError::Closed) };
        if lock(&self.noted).contains_key(&incarnation_id) {
            return Ok(Some(incarnation_id));
        }
        let store = self.store().map_err(|_| StoreError::Closed)?;
        let welcome: Value = workspace.welcome().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let text = |pointer: &str| welcome.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let incarnation = Incarnation {
            incarnation_id: incarnation_id.clone(),
            daemon_epoch: store.daemon_epoch(),
            boot_id: process.boot_id.clone(),
            child_pid: process.pid,
            child_start_ticks: process.start_ticks,
            nonce: life.to_owned(),
            agent_name: text("/agentInfo/name"),
            agent_version: text("/agentInfo/version"),
            protocol_version: welcome.get("protocolVersion").map(Value::to_string),
            workspace_key: workspace.id.clone(),
            spawned_at: now_ms(),
            ended_at: None,
            end_reason: None,
        };
        super::asked(|reply| store.note_incarnation(incarnation, reply)).await?;
        lock(&self.noted).insert(incarnation_id.clone(), life.to_owned());
        Ok(Some(incarnation_id))
    }

    /// Notes that a life of a session is over, and its agent's processes with it.
    pub(crate) fn session_ended(&self, life: &str) {
        let Ok(store) = self.store() else { return };
        let mut noted = lock(&self.noted);
        for (incarnation_id, _) in noted.extract_if(|_, of| of == life) {
            store.end_incarnation(incarnation_id, SESSION_ENDED.to_owned(), now_ms(), |_| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn scenario_43_the_same_pid_ticks_and_boot_in_another_life_of_the_daemon_or_the_session_are_another_incarnation()
     {
        let folder = tempfile::tempdir().unwrap();
        let process = Process { pid: 7, start_ticks: 9, boot_id: "boot".into() };
        let mut ids = Vec::new();
        for _ in 0..2 {
            let returns = Returns::new(Arc::default());
            returns.open(folder.path().join("requests")).await;
            for life in ["one", "two"] {
                let id = returns.incarnation_id(&process, life).unwrap();
                assert_eq!(returns.incarnation_id(&process, life).as_ref(), Some(&id));
                ids.push(id);
            }
            for other in [
                Process { pid: 8, ..process.clone() },
                Process { start_ticks: 8, ..process.clone() },
                Process { boot_id: "boat".into(), ..process.clone() },
            ] {
                ids.push(returns.incarnation_id(&other, "one").unwrap());
            }
            returns.close().await;
        }
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
    }
}
