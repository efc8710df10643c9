//! Ids, times and counts as a terminal may show them.

use std::fmt::Write;
use std::path::Path;

use ledger::{Fact, Record, Terminal};
use transcript::iso_text;

/// Columns of one id or name. Ids have 36; one that is cut shows how long it is.
const NAME_COLUMNS_MAX: usize = 80;
/// Columns of a path. It is there to be copied, so that only an absurd one is cut.
const PATH_COLUMNS_MAX: usize = 1_024;
/// Beyond every date, a number is given by its size: its digits would fill lines.
const SPELLED_MS_MAX: f64 = 1e18;
/// Names that are listed before the rest is only counted.
const LISTED_MAX: usize = 3;

/// A text from a file, safe to print: a plain one as it is, any other in quotes. Whatever could steer a terminal or turn
/// the direction of writing is escaped, and a text of more than 80 columns is cut.
#[must_use]
pub fn printable(text: &str) -> String {
    shown(text, NAME_COLUMNS_MAX)
}

/// The same of a path, which is cut much later.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    shown(&path.to_string_lossy(), PATH_COLUMNS_MAX)
}

fn shown(text: &str, columns_max: usize) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/@+".contains(&byte);
    if !text.is_empty() && text.len() <= columns_max && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let (mut shown, mut columns) = (String::from("\""), 0);
    for letter in text.chars() {
        let before = shown.len();
        push_safely(&mut shown, letter);
        columns += shown[before..].chars().count();
        if columns > columns_max {
            shown.truncate(before);
            let _ = write!(shown, "…\" ({} bytes)", text.len());
            return shown;
        }
    }
    shown.push('"');
    shown
}

fn push_safely(shown: &mut String, letter: char) {
    match letter {
        ' '..='~' if letter != '"' && letter != '\\' => shown.push(letter),
        _ if letter.is_alphabetic() && !is_right_to_left(letter) => shown.push(letter),
        _ if letter.is_ascii() => shown.extend(letter.escape_default()),
        _ => shown.extend(letter.escape_unicode()),
    }
}

/// Whether a letter belongs to a script that is written from the right: it would turn what stands around it.
fn is_right_to_left(letter: char) -> bool {
    matches!(u32::from(letter), 0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfeff | 0x1_0800..=0x1_0fff | 0x1_e800..=0x1_efff)
}

/// A time of the ledger, which may be any number.
pub(super) fn moment(at_ms: f64) -> String {
    // Saturates; what does not come back the same has no date.
    let whole = at_ms.floor() as u64;
    let is_dated = whole as f64 == at_ms.floor();
    let number = || if at_ms.abs() < SPELLED_MS_MAX { format!("{at_ms}") } else { format!("{at_ms:e}") };
    iso_text(whole).filter(|_| is_dated).unwrap_or_else(|| format!("{} ms since 1970", number()))
}

/// `1 record`, `2 records`.
pub(super) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// `A`, `A and B`, `A, B and C`, `A, B, C and 4 more`.
pub(super) fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let left_off = names.len().saturating_sub(LISTED_MAX);
    let mut shown: Vec<_> = names.take(LISTED_MAX).map(printable).collect();
    if left_off > 0 {
        shown.push(format!("{left_off} more"));
    }
    match shown.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.concat(),
    }
}

/// How a prompt ended, with the detail that is known.
pub(super) fn ending(fact: &Fact) -> String {
    let Fact::Terminal { terminal, code, stop_reason } = fact else { return String::from("still open") };
    let word = match terminal {
        Terminal::Completed | Terminal::Cancelled | Terminal::Interrupted => terminal.as_str(),
        Terminal::Error => "failed",
    };
    match code.as_ref().or(stop_reason.as_ref()) {
        Some(detail) => format!("{word} ({})", printable(detail)),
        None => word.to_owned(),
    }
}

/// A terminal of the ledger as a clause.
pub(super) fn ended(record: &Record) -> String {
    let Record { prompt_id, at_ms, fact } = record;
    format!("{} ended at {}: {}", printable(prompt_id), moment(*at_ms), ending(fact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_id_is_shown_as_it_is() {
        for id in ["3f1c0a52-0000-4000-8000-000000000000", "r0", "/home/a/b.c", "a@b:c+d"] {
            assert_eq!(printable(id), id);
        }
    }

    #[test]
    fn nothing_that_steers_a_terminal_or_turns_the_writing_is_shown_raw() {
        for (text, shown) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("\x1b[2J", r#""\u{1b}[2J""#),
            ("a\nb\t\"\\", r#""a\nb\t\"\\""#),
            ("\u{9b}31m", r#""\u{9b}31m""#),
            ("a\u{202e}b", r#""a\u{202e}b""#),
            ("\u{2066}\u{200f}\u{61c}", r#""\u{2066}\u{200f}\u{61c}""#),
            ("\u{5d0}\u{627}", r#""\u{5d0}\u{627}""#),
            ("e\u{301}\u{feff}\u{fffd}", r#""e\u{301}\u{feff}\u{fffd}""#),
            ("müller 中文", r#""müller 中文""#),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut_and_measured() {
        let shown = printable(&"x".repeat(1_000_000));
        assert_eq!(shown, format!("\"{}…\" (1000000 bytes)", "x".repeat(80)));
        assert!(printable(&"\u{1b}".repeat(99)).len() < 110);
    }

    #[test]
    fn a_time_that_is_no_date_is_a_number() {
        for (at_ms, shown) in [
            (1_795_977_222_000.0, "2026-11-29T18:33:42.000Z"),
            (1_795_977_222_000.9, "2026-11-29T18:33:42.000Z"),
            (0.0, "1970-01-01T00:00:00.000Z"),
            (-5.0, "-5 ms since 1970"),
            (-0.5, "-0.5 ms since 1970"),
            (1e17, "100000000000000000 ms since 1970"),
            (-1.5e300, "-1.5e300 ms since 1970"),
        ] {
            assert_eq!(moment(at_ms), shown);
        }
    }

    #[test]
    fn a_list_names_three_and_counts_the_rest() {
        let of = |names: &[&str]| list(names.iter().copied());
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["A"]), "A");
        assert_eq!(of(&["A", "B"]), "A and B");
        assert_eq!(of(&["A", "B", "C"]), "A, B and C");
        assert_eq!(of(&["A", "B", "C", "D", "E"]), "A, B, C and 2 more");
    }
}
