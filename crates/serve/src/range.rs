//! Which bytes of a body a request asks for (RFC 9110, section 14). One range; whoever asks for several gets all.

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All of it: there is no header, or one that we do not follow.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes that are not there.
    Unsatisfiable,
}

/// Reads the header for a body of so many bytes.
pub(crate) fn asked(header: Option<&[u8]>, length: u64) -> Asked {
    let Some(set) = header.and_then(|header| std::str::from_utf8(header).ok()).and_then(of_bytes) else {
        return Asked::Whole;
    };
    let Some((first, last)) = set.split_once('-') else { return Asked::Whole };
    let part = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        (Some(first), None) if last.is_empty() => first..length,
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return Asked::Whole,
    };
    if part.is_empty() { Asked::Unsatisfiable } else { Asked::Part(part) }
}

/// The one range of a set in the unit `bytes`.
fn of_bytes(header: &str) -> Option<&str> {
    let (unit, set) = header.split_once('=')?;
    let set = set.trim_matches([' ', '\t']);
    (unit.trim_end().eq_ignore_ascii_case("bytes") && !set.contains(',')).then_some(set)
}

/// Digits as a number. One that is too large stands for more than there is.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_the_rfc_says() {
        let part = |from, to| Asked::Part(from..to);
        let huge = "bytes=99999999999999999999-".to_owned();
        let cases = [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-9", part(0, 10)),
            ("bytes=3-5", part(3, 6)),
            ("Bytes=3-", part(3, 10)),
            ("bytes=9-", part(9, 10)),
            ("bytes=5-400", part(5, 10)),
            ("bytes=5-18446744073709551615", part(5, 10)),
            ("bytes=-4", part(6, 10)),
            ("bytes=-400", part(0, 10)),
            ("bytes= 1-2 ", part(1, 3)),
            ("bytes=10-", Asked::Unsatisfiable),
            ("bytes=10-12", Asked::Unsatisfiable),
            ("bytes=-0", Asked::Unsatisfiable),
            (huge.as_str(), Asked::Unsatisfiable),
            ("bytes=5-3", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=1-2,4-5", Asked::Whole),
            ("lines=1-2", Asked::Whole),
            ("1-2", Asked::Whole),
            ("", Asked::Whole),
        ];
        for (header, expected) in cases {
            assert_eq!(asked(Some(header.as_bytes()), 10), expected, "{header}");
        }
        assert_eq!(asked(None, 10), Asked::Whole);
        assert_eq!(asked(Some(b"\xff"), 10), Asked::Whole);
        assert_eq!(asked(Some(b"bytes=0-"), 0), Asked::Unsatisfiable);
    }
}
