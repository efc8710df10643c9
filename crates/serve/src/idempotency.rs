//! The two ways to choose a prompt's id: a field of the body, and the header that HTTP clients know.

use hyper::HeaderMap;
use hyper::header::HeaderName;

use crate::identity::is_prompt_id;
use crate::refusal::Refusal;

/// The header by which a client marks a request that it may send again.
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The id that a request asks for: the body's `promptId`, or `Idempotency-Key`, which is another name for it. The header's value may
/// stand in quotes, as the internet draft that describes it wants.
///
/// # Errors
/// 400 `invalid_prompt_id` for a malformed key, 400 `idempotency_key_mismatch` where two ids are named.
pub(crate) fn chosen_id(body: Option<String>, headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let mut chosen = body;
    for value in headers.get_all(KEY) {
        let key = value.to_str().ok().map(unquoted).filter(|key| is_prompt_id(key)).ok_or_else(|| {
            Refusal::bad_request(
                "invalid_prompt_id",
                "`Idempotency-Key` must match [A-Za-z0-9._:-]{1,128} and not be `current` when provided",
            )
        })?;
        if chosen.get_or_insert_with(|| key.to_owned()) != key {
            let message = "`promptId` and `Idempotency-Key` name one id; they must not name two";
            return Err(Refusal::bad_request("idempotency_key_mismatch", message));
        }
    }
    Ok(chosen)
}

fn unquoted(key: &str) -> &str {
    key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of a body and some keys, or the code of the refusal.
    fn check(body: Option<&str>, keys: &[&str], expected: Result<Option<&str>, &str>) {
        let mut headers = HeaderMap::new();
        for key in keys {
            headers.append(KEY, key.parse().unwrap());
        }
        let got = chosen_id(body.map(str::to_owned), &headers);
        let got = got.as_ref().map(|id| id.as_deref()).map_err(|refusal| &*refusal.code);
        assert_eq!(got, expected, "{body:?} {keys:?}");
    }

    #[test]
    fn the_header_and_the_field_are_one_id() {
        check(None, &[], Ok(None));
        check(Some("a"), &[], Ok(Some("a")));
        check(None, &["a"], Ok(Some("a")));
        check(None, &["\"a\""], Ok(Some("a")));
        check(Some("a"), &["a"], Ok(Some("a")));
        check(Some("a"), &["\"a\"", "a"], Ok(Some("a")));
    }

    #[test]
    fn two_ids_are_none() {
        check(Some("a"), &["b"], Err("idempotency_key_mismatch"));
        check(None, &["a", "b"], Err("idempotency_key_mismatch"));
    }

    #[test]
    fn a_key_has_the_form_of_a_prompt_id() {
        let long = "x".repeat(129);
        for key in ["", "a b", "a/b", "current", "\"", "\"\"", "\"a", "ä", &long] {
            check(None, &[key], Err("invalid_prompt_id"));
            check(Some("a"), &[key], Err("invalid_prompt_id"));
        }
    }
}
