//! A page for a terminal: headings, and rows of a label and a text that is wrapped under itself.

/// The widest line; a word that is longer stands alone and whole.
const COLUMNS_MAX: usize = 100;
/// Where the text of a row begins.
const TEXT_COLUMN: usize = 14;

/// The lines of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
}

impl Page {
    /// A line of its own, wrapped under itself; a blank one goes before it unless it is the first.
    pub(super) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.wrap("", text);
    }

    /// A row. One without a label goes on with the row before it.
    pub(super) fn row(&mut self, label: &str, text: &str) {
        self.wrap(&format!("  {label:<width$}", width = TEXT_COLUMN - 2), text);
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn wrap(&mut self, first: &str, text: &str) {
        let (mut line, indent) = (first.to_owned(), " ".repeat(first.len()));
        let mut is_empty = true;
        for word in text.split(' ') {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS_MAX {
                self.push(&line);
                line.clone_from(&indent);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.push(&line);
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_wrapped_under_itself() {
        let mut page = Page::default();
        page.heading("head");
        page.row("label", &["word"; 20].join(" "));
        page.row("", "more");
        page.heading("next");
        let first = ["word"; 17].join(" ");
        let indent = " ".repeat(TEXT_COLUMN);
        let expected = format!("head\n  label       {first}\n{indent}word word word\n{indent}more\n\nnext\n");
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn a_line_may_have_a_hundred_columns_and_no_more() {
        for (letters, lines) in [(100 - TEXT_COLUMN - 2, 1), (100 - TEXT_COLUMN - 1, 2)] {
            let mut page = Page::default();
            page.row("", &format!("{} é", "é".repeat(letters)));
            assert_eq!(page.finish().lines().count(), lines, "{letters}");
        }
    }

    #[test]
    fn a_word_that_fits_nowhere_stays_whole() {
        let mut page = Page::default();
        page.row("", &format!("a {} b", "x".repeat(200)));
        assert_eq!(page.finish().lines().map(str::trim).collect::<Vec<_>>(), ["a", &"x".repeat(200), "b"]);
    }
}
