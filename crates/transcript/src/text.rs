//! Texts cut to a bound that a JavaScript reader counts in the same way.

/// Most UTF-16 units of a prompt's or an answer's text in a turn result (turn status seed).
pub const TEXT_UNITS_MAX: usize = 32_768;
/// Most UTF-16 units of an error message (turn status seed).
pub const MESSAGE_UNITS_MAX: usize = 4_096;
/// Most UTF-16 units of an error code (turn status seed).
pub const CODE_UNITS_MAX: usize = 256;

/// A text within its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// The text, or as much of its beginning as fits.
    pub text: String,
    /// Whether something was cut off.
    pub truncated: bool,
}

/// Cuts `text` to at most `units_max` UTF-16 units. A character that would lose half of its surrogate pair is dropped
/// whole.
#[must_use]
pub fn bounded(text: &str, units_max: usize) -> Bounded {
    let end = end_of_prefix(text, units_max);
    Bounded { text: text[..end].to_owned(), truncated: end < text.len() }
}

/// The text without the white space at its end, as a browser counts it: with the byte-order mark, without the next-line
/// control.
pub(crate) fn trimmed_end(text: &str) -> &str {
    text.trim_end_matches(|last: char| last == '\u{feff}' || last.is_whitespace() && last != '\u{85}')
}

/// The byte length of the longest prefix of `text` within `units_max` UTF-16 units.
fn end_of_prefix(text: &str, units_max: usize) -> usize {
    // No character has fewer bytes than units, so a short text needs no counting.
    if text.len() <= units_max {
        return text.len();
    }
    let mut units = 0;
    for (start, character) in text.char_indices() {
        units += character.len_utf16();
        if units > units_max {
            return start;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, units_max: usize, expected: &str) {
        let cut = bounded(text, units_max);
        assert_eq!(cut.text, expected, "{text:?} at {units_max}");
        assert_eq!(cut.truncated, expected != text, "{text:?} at {units_max}");
    }

    #[test]
    fn a_text_is_cut_by_utf16_units() {
        check("", 0, "");
        check("abc", 3, "abc");
        check("abc", 2, "ab");
        check("éé", 2, "éé");
        check("ééé", 2, "éé");
    }

    #[test]
    fn a_cut_never_leaves_half_a_pair() {
        check("a🧪", 3, "a🧪");
        check("a🧪", 2, "a");
        check("🧪🧪", 3, "🧪");
    }

    #[test]
    fn a_pair_at_the_cut_goes_as_a_whole() {
        // Pairs before, at and behind the cut.
        for (units_max, expected) in [(0, ""), (1, ""), (2, "🧪"), (3, "🧪a"), (4, "🧪a"), (5, "🧪a🧪"), (6, "🧪a🧪b")]
        {
            check("🧪a🧪b", units_max, expected);
        }
    }

    #[test]
    fn white_space_at_the_end_is_what_a_browser_takes_for_it() {
        for space in [
            '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2003}', '\u{2028}', '\u{3000}',
            '\u{feff}',
        ] {
            assert_eq!(trimmed_end(&format!(" a{space}{space}")), " a", "{space:?}");
        }
        for letter in ['\0', '\u{85}', '\u{180e}', '\u{200b}', '\u{2060}'] {
            assert_eq!(trimmed_end(&format!("a{letter} ")), format!("a{letter}"), "{letter:?}");
        }
        assert_eq!(trimmed_end(" \n"), "");
    }

    #[test]
    fn a_text_of_few_units_may_have_many_bytes() {
        check("中中中", 3, "中中中");
        check("中中中", 2, "中中");
        // A joined sequence is cut between its characters: the bound counts units, not what one sees.
        check("e\u{301}", 1, "e");
        check("👨\u{200d}👩", 3, "👨\u{200d}");
    }

    #[test]
    fn no_text_is_longer_than_no_units() {
        check("", 0, "");
        check("a", 0, "");
        check("a", usize::MAX, "a");
    }

    proptest! {
        #[test]
        fn a_cut_is_the_longest_that_fits(text in any::<String>(), units_max in 0..40_usize) {
            let cut = bounded(&text, units_max);
            let units = cut.text.encode_utf16().count();
            prop_assert!(text.starts_with(&cut.text) && units <= units_max);
            let next = text[cut.text.len()..].chars().next();
            prop_assert_eq!(cut.truncated, next.is_some());
            prop_assert!(next.is_none_or(|next| units + next.len_utf16() > units_max));
        }
    }
}
