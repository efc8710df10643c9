//! Texts with a bound, counted the way clients count: in UTF-16 units.

/// A text and whether something was cut off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clipped {
    /// The beginning of the text, at most the bound; a cut never leaves half a character.
    pub text: String,
    /// There was more.
    pub truncated: bool,
}

impl Clipped {
    /// The beginning of `text`, at most `units_max` UTF-16 units of it.
    pub fn new(text: &str, units_max: usize) -> Self {
        let mut clip = Clip::new(units_max);
        clip.push(text);
        clip.into_clipped()
    }
}

/// A text that grows up to a bound and then only remembers that there was more.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    text: String,
    units_left: usize,
    truncated: bool,
}

impl Clip {
    pub(crate) fn new(units_max: usize) -> Self {
        Self { text: String::new(), units_left: units_max, truncated: false }
    }

    pub(crate) fn push(&mut self, more: &str) {
        // Once something is missing nothing may follow, or the text would have a hole in it.
        if self.truncated {
            return;
        }
        // A text has at most as many UTF-16 units as bytes.
        if more.len() <= self.units_left {
            self.units_left -= more.encode_utf16().count();
            self.text.push_str(more);
            return;
        }
        for letter in more.chars() {
            if letter.len_utf16() > self.units_left {
                self.truncated = true;
                return;
            }
            self.units_left -= letter.len_utf16();
            self.text.push(letter);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.truncated
    }

    pub(crate) fn into_clipped(self) -> Clipped {
        Clipped { text: self.text, truncated: self.truncated }
    }

    /// The text so far, if there is any.
    pub(crate) fn said(&self) -> Option<Clipped> {
        (!self.is_empty()).then(|| self.clone().into_clipped())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_within_the_bound_is_whole() {
        assert_eq!(Clipped::new("echo", 4), Clipped { text: "echo".into(), truncated: false });
    }

    #[test]
    fn a_cut_never_leaves_half_a_character() {
        assert_eq!(Clipped::new("ab😀", 3), Clipped { text: "ab".into(), truncated: true });
        assert_eq!(Clipped::new("ab😀", 4), Clipped { text: "ab😀".into(), truncated: false });
    }

    #[test]
    fn nothing_follows_a_hole() {
        let mut clip = Clip::new(3);
        clip.push("ab");
        clip.push("😀");
        clip.push("c");
        assert_eq!(clip.into_clipped(), Clipped { text: "ab".into(), truncated: true });
    }

    proptest! {
        #[test]
        fn pieces_and_the_whole_are_clipped_alike(pieces in proptest::collection::vec("\\PC{0,6}", 0..8), bound in 0usize..24) {
            let mut clip = Clip::new(bound);
            for piece in &pieces {
                clip.push(piece);
            }
            let whole = pieces.concat();
            let clipped = clip.into_clipped();
            prop_assert_eq!(&clipped, &Clipped::new(&whole, bound));
            prop_assert!(clipped.text.encode_utf16().count() <= bound);
            prop_assert!(whole.starts_with(&clipped.text));
            prop_assert_eq!(clipped.truncated, clipped.text.len() < whole.len());
        }
    }
}
