//! Prompt ids that callers choose: one id runs once, in this life of the daemon and in the next ones (design, section 4).
//!
//! The ledger knows which ids were admitted and, by its own rule, nothing of what was asked. What is needed to tell a repetition from
//! another prompt of the same id lies beside it: one line for each chosen id, with a fingerprint of the content, written before the
//! admission. A line that takes itself back says that the admission was refused. Which session an id belongs to lies in files of the
//! workspace, since an id is one prompt's whichever session is asked; that line comes between the two, so that what names a session
//! there is found by the session's own claims when it is removed.
//!
//! A crash may come between any two of these lines. Then the claim is there, the id may be its session's, and no admission is: such a
//! claim holds nobody up, and whoever sends the prompt again has it run, unless the transcript shows that it ran.

mod dispatched;
mod file;
mod lines;
mod owners;

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex};

use bridge::{AdmitError, Receipt};
use ledger::Ledger;
use thiserror::Error;

use crate::layout::Layout;
use crate::options::Durability;
use crate::sidecar::{Place, Sidecar};
use crate::sync::lock;
use dispatched::dispatched;
use file::{Claim, ClaimFile};
use owners::{Owned, Owners};

/// The chosen ids of the live sessions, each session's read when the first one is chosen there.
pub(crate) struct Chosen {
    layout: Layout,
    durability: Durability,
    owners: Owners,
    sessions: Mutex<HashMap<String, Arc<Mutex<Known>>>>,
}

/// What is known of one session's ids, by fingerprint: a long session costs some bytes for each prompt and no texts.
struct Known {
    file: ClaimFile,
    ids: HashMap<u128, Entry>,
}

/// One id that is taken.
#[derive(Debug, Clone, Default)]
struct Entry {
    /// What was asked under it; none for an id that its caller did not choose.
    content: Option<u128>,
    /// The receipt given for it in this life.
    receipt: Option<Receipt>,
}

/// How an id was answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Once {
    /// Admitted now.
    Admitted(Receipt),
    /// Admitted before, with the same content. The receipt is there if it was in this life.
    Repeated(Option<Receipt>),
}

/// Why an id was not admitted.
#[derive(Debug, Error)]
pub(crate) enum OnceError {
    /// It is taken: with other content, by a prompt whose content is not known, or in another session.
    #[error("prompt id is already in use by another prompt")]
    Taken,
    /// That it is taken now cannot be written down.
    #[error("prompt id cannot be recorded: {0}")]
    Unwritable(#[from] io::Error),
    /// The session refused.
    #[error(transparent)]
    Refused(#[from] AdmitError),
}

impl Chosen {
    /// Nothing is read yet.
    pub(crate) fn new(layout: Layout, durability: Durability) -> Self {
        let owners = Owners::new(layout.prompt_id_owners(), durability);
        Self { layout, durability, owners, sessions: Mutex::default() }
    }

    /// Whether the ids of a session have been read.
    pub(crate) fn is_loaded(&self, session: &str) -> bool {
        lock(&self.sessions).contains_key(session)
    }

    /// Reads the ids of a session. Blocks.
    ///
    /// # Errors
    /// When its files cannot be read: then no id may be said to be new.
    pub(crate) fn load(&self, session: &str, ledger: &Ledger) -> io::Result<()> {
        let file = ClaimFile::new(self.layout.prompt_ids(session), self.durability);
        let mut claimed = HashMap::new();
        // What a failed move has left in the archive counts as well: an id is not new because its file lies elsewhere.
        let left = self.layout.sidecar(Place::Archived, Sidecar::PromptIds, session);
        let left = ClaimFile::new(left, self.durability).read()?;
        for Claim { prompt_id, content, withdrawn } in left.into_iter().chain(file.read()?) {
            if withdrawn {
                claimed.remove(&prompt_id);
            } else {
                claimed.insert(prompt_id, content);
            }
        }
        let mut ids = HashMap::new();
        let left = self.layout.sidecar(Place::Archived, Sidecar::Ledger, session);
        let left = Ledger::new(left, ledger::Durability::Process).read().map_err(io::Error::other)?;
        for record in left.records.into_iter().chain(ledger.read().map_err(io::Error::other)?.records) {
            let content = claimed.remove(&record.prompt_id);
            let entry = ids.entry(fingerprint(&[&record.prompt_id])).or_insert_with(Entry::default);
            entry.content = entry.content.or(content);
        }
        self.keep_dispatched(session, claimed, &mut ids)?;
        lock(&self.sessions).entry(session.to_owned()).or_insert_with(|| Arc::new(Mutex::new(Known { file, ids })));
        Ok(())
    }

    /// Of claims without an admission, those whose prompts may have reached the agent are taken. The others never were prompts.
    fn keep_dispatched(
        &self,
        session: &str,
        claimed: HashMap<String, u128>,
        ids: &mut HashMap<u128, Entry>,
    ) -> io::Result<()> {
        if claimed.is_empty() {
            return Ok(());
        }
        let wanted: HashSet<String> = claimed.keys().cloned().collect();
        let dispatched = dispatched(&self.layout.transcript(session), &wanted)?;
        for (prompt_id, content) in claimed.into_iter().filter(|(prompt_id, _)| dispatched.may_have(prompt_id)) {
            ids.insert(fingerprint(&[&prompt_id]), Entry { content: Some(content), receipt: None });
        }
        Ok(())
    }

    /// What an id means in a session whose ids have been read, without admitting anything: none when it is new there.
    ///
    /// # Errors
    /// [`OnceError::Taken`].
    pub(crate) fn known(&self, session: &str, prompt_id: &str, content: u128) -> Result<Option<Once>, OnceError> {
        let known = lock(&self.sessions).get(session).cloned();
        known.map_or(Ok(None), |known| lock(&known).repeated(prompt_id, content))
    }

    /// Admits a prompt under a chosen id unless the id is taken. Copies that arrive at once wait for each other here.
    ///
    /// # Errors
    /// See [`OnceError`]. The id is free afterwards unless it was taken before.
    pub(crate) fn once(
        &self,
        session: &str,
        prompt_id: &str,
        content: u128,
        admit: impl FnOnce() -> Result<Receipt, AdmitError>,
    ) -> Result<Once, OnceError> {
        let Some(known) = lock(&self.sessions).get(session).cloned() else {
            // They were read before, and forgotten with the session, which has ended since.
            return Err(OnceError::Refused(AdmitError::Gone));
        };
        let mut known = lock(&known);
        if let Some(repeated) = known.repeated(prompt_id, content)? {
            return Ok(repeated);
        }
        // A session that was removed owns nothing.
        let exists = |other: &str| self.is_loaded(other) || self.layout.has_left(other);
        let claim = |withdrawn| Claim { prompt_id: prompt_id.to_owned(), content, withdrawn };
        match self.owners.claim(prompt_id, session, exists, || known.file.append(&claim(false))) {
            Ok(Owned::Here) => {}
            Ok(Owned::Elsewhere) => return Err(OnceError::Taken),
            Err(error) => {
                // Whose the id is may not be known, so only what this session says of it is taken back: where the transcript cannot be
                // seen whole, a claim that stays would be taken for a prompt that ran.
                let _ = known.file.append(&claim(true));
                return Err(error.into());
            }
        }
        match admit() {
            Ok(receipt) => {
                known.ids.insert(
                    fingerprint(&[prompt_id]),
                    Entry { content: Some(content), receipt: Some(receipt.clone()) },
                );
                Ok(Once::Admitted(receipt))
            }
            Err(error) => {
                let freed = known.file.append(&claim(true)).and_then(|()| self.owners.release(prompt_id, session));
                if let Err(failure) = freed {
                    tracing::warn!(session, prompt = prompt_id, error = %failure, "a refused id stays taken after a restart");
                }
                Err(error.into())
            }
        }
    }

    /// Notes an id that its caller did not choose, so that nobody chooses it later.
    pub(crate) fn note(&self, session: &str, prompt_id: &str) {
        let known = lock(&self.sessions).get(session).cloned();
        if let Some(known) = known {
            lock(&known).ids.entry(fingerprint(&[prompt_id])).or_default();
        }
    }

    /// Whether the id is taken in a session whose ids have been read.
    pub(crate) fn is_taken(&self, session: &str, prompt_id: &str) -> bool {
        let known = lock(&self.sessions).get(session).cloned();
        known.is_some_and(|known| lock(&known).ids.contains_key(&fingerprint(&[prompt_id])))
    }

    /// Gives back the ids of a session that is removed, as long as its claims can be read. Blocks.
    ///
    /// # Errors
    /// When some stay its own; they are free all the same, once nothing else of the session is left.
    pub(crate) fn release(&self, session: &str) -> io::Result<()> {
        lock(&self.sessions).remove(session);
        let files = Place::ALL.map(|place| self.layout.sidecar(place, Sidecar::PromptIds, session));
        for path in files {
            let claims = ClaimFile::new(path, self.durability).read()?;
            self.owners.forget(claims.iter().map(|claim| claim.prompt_id.as_str()), session)?;
        }
        Ok(())
    }

    /// Forgets sessions that are not live any more.
    pub(crate) fn retain(&self, live: impl Fn(&str) -> bool) {
        lock(&self.sessions).retain(|session, _| live(session));
    }
}

impl Known {
    /// The answer to an id that is taken.
    fn repeated(&self, prompt_id: &str, content: u128) -> Result<Option<Once>, OnceError> {
        match self.ids.get(&fingerprint(&[prompt_id])) {
            Some(entry) if entry.content == Some(content) => Ok(Some(Once::Repeated(entry.receipt.clone()))),
            Some(_) => Err(OnceError::Taken),
            None => Ok(None),
        }
    }
}

/// A fingerprint of some texts (FNV-1a of 128 bits, which is the same in every release). It tells a repetition from a mistake; it is no
/// defence against a caller that wants its own prompts confused.
pub(crate) fn fingerprint(parts: &[&str]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests;
