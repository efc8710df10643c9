//! Which ids are those of requests' prompts, and so of no other prompt: told by their form, without the store.

use crate::admission::{id_conflict, ids_unreadable};
use crate::identity::is_uuid;
use crate::refusal::Refusal;
use crate::returns::Returns;

impl Returns {
    /// Whether a caller may choose an id for a prompt of its own, as far as requests are concerned.
    ///
    /// # Errors
    /// 409 `prompt_id_conflict` for an id that is only a request's; 500 `prompt_ids_unreadable` when an open store cannot tell.
    pub(crate) async fn check_chosen(&self, session: &str, prompt_id: &str) -> Result<(), Refusal> {
        if request::is_prompt_id(prompt_id) || self.is_of_earlier_row(session, prompt_id).await? {
            return Err(id_conflict(session, prompt_id));
        }
        Ok(())
    }

    /// Whether a row has the id that was made before these ids had a form of their own. Such a row's session is not loaded before the store
    /// is open, or known to be none, so that nobody waits here: what is not open has nothing to say of any other session.
    async fn is_of_earlier_row(&self, session: &str, prompt_id: &str) -> Result<bool, Refusal> {
        if !is_uuid(prompt_id) || self.store().is_err() {
            return Ok(false);
        }
        let looked = prompt_id.to_owned();
        self.read(move |store| store.has_prompt(&looked)).await.map_err(|error| ids_unreadable(session, &error.code))
    }
}
