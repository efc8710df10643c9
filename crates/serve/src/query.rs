//! Reading a query string.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The value of the last `key=…` in a query. A key without a value has the empty one; a plus sign is a space.
pub(crate) fn value<'q>(query: Option<&'q str>, key: &str) -> Option<Cow<'q, str>> {
    let pairs = query?.split('&').rev();
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .find(|(name, _)| *name == key)
        .map(|(_, text)| decode(text))
}

fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace('+', " ");
    Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_and_decoded() {
        let cases = [
            (Some("deep=1"), Some("1")),
            (Some("deep"), Some("")),
            (Some("a=b&deep=x%20y+z"), Some("x y z")),
            (Some("deep=1&deep=2"), Some("2")),
            (Some("deeper=1"), None),
            (Some(""), None),
            (None, None),
        ];
        for (query, expected) in cases {
            assert_eq!(value(query, "deep").as_deref(), expected, "{query:?}");
        }
    }
}
