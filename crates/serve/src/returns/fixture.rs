//! What the tests of return requests ask for.

use request::{Baseline, Hash, Options, Registration, RequestId};

use crate::returns::submit::OWNER;

/// A registration under an id, with nothing that anybody could want of it.
pub(crate) fn registration(id: &str) -> Registration {
    Registration {
        request_id: RequestId::parse(id).unwrap(),
        owner: OWNER.into(),
        input_hash: Hash([0; 32]),
        hash_version: 1,
        session_id: "s".into(),
        incarnation_id: None,
        prompt_id: format!("p-{id}"),
        options: Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([0; 32]),
        prompt_bytes: 0,
        baseline: Baseline::default(),
        created_at: 1,
    }
}
