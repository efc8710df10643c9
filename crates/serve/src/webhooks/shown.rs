//! What a client is shown of an endpoint. Its secret is not among it.

use request::webhook::{Endpoint, Fault, Letter, Standing};
use serde_json::{Value, json};

/// An endpoint and how it goes with it, without its dead letters.
pub(crate) fn endpoint(endpoint: &Endpoint) -> Value {
    let (state, gap) = match endpoint.standing {
        Standing::Active => ("active", Value::Null),
        Standing::Disabled => ("disabled", Value::Null),
        Standing::Gap { from, through } => ("gap", json!({ "from": from, "through": through })),
    };
    let trying = &endpoint.trying;
    json!({
        "v": 1,
        "name": endpoint.name.as_str(),
        "url": endpoint.url,
        "secret_count": endpoint.secrets().count(),
        "state": state,
        "gap": gap,
        "acked": endpoint.acked,
        "sending": endpoint.sending.map(|sending| sending.seq),
        "tries": trying.tries,
        "next_try_at": trying.next_at,
        "last_error": fault(trying.fault),
        "redeliveries": endpoint.wanted,
        "created_at": endpoint.created_at,
        "updated_at": endpoint.updated_at,
    })
}

/// An event that an endpoint did not take; none for one that is only wanted again.
pub(crate) fn dead_letter(letter: &Letter) -> Option<Value> {
    let fault = fault(Some(letter.fault?));
    Some(json!({
        "seq": letter.seq,
        "tries": letter.tries,
        "last_error": fault,
        "at": letter.at_ms,
        "is_wanted": letter.is_wanted,
    }))
}

fn fault(fault: Option<Fault>) -> Value {
    fault.map_or(Value::Null, |fault| json!({ "code": fault.as_str(), "status": fault.status() }))
}
