//! The time a record carries.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Milliseconds since the epoch of an ISO 8601 instant, cut to whole milliseconds: date, `T`, time and an offset, or a
/// date alone, which a browser takes for its beginning in UTC. None for anything else: a text that only looks like a
/// date, or one whose zone nobody knows, dates nothing (evidence rules, section 2).
pub(crate) fn parse_millis(text: &str) -> Option<i64> {
    const DATE_BYTES: usize = 10;
    if text.len() == DATE_BYTES {
        return parse_millis(&format!("{text}T00:00Z"));
    }
    let mut left = text.as_bytes();
    let year = digits(&mut left, 4)?;
    let month = after(&mut left, b'-')?;
    let day = after(&mut left, b'-')?;
    literal(&mut left, b'T')?;
    let hour = digits(&mut left, 2)?;
    let minute = after(&mut left, b':')?;
    let second = if left.first() == Some(&b':') { after(&mut left, b':')? } else { 0 };
    let milli = fraction(&mut left)?;
    let offset_minutes = offset(&mut left)?;
    if !left.is_empty() {
        return None;
    }
    let narrow = |number: i64| i8::try_from(number).ok();
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        narrow(month)?,
        narrow(day)?,
        narrow(hour)?,
        narrow(minute)?,
        narrow(second)?,
        0,
    );
    let instant = TimeZone::UTC.to_timestamp(civil.ok()?).ok()?;
    Some(instant.as_millisecond() + milli - offset_minutes * 60_000)
}

/// Whether an instant is written as [`to_text`] writes it. Of two such texts the later one is the later instant.
pub(crate) fn is_plain(text: &str) -> bool {
    const PLAIN_BYTES: usize = "2026-11-29T18:33:40.001Z".len();
    text.len() == PLAIN_BYTES && text.ends_with('Z')
}

/// ISO 8601 in UTC with milliseconds, as every record of the format carries it and JavaScript's `toISOString` prints it. None
/// for a time, in epoch milliseconds, that no timestamp can say.
#[must_use]
pub fn to_text(at_ms: u64) -> Option<String> {
    let instant = jiff::Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(format!("{instant:.3}"))
}

fn after(left: &mut &[u8], separator: u8) -> Option<i64> {
    literal(left, separator)?;
    digits(left, 2)
}

fn literal(left: &mut &[u8], byte: u8) -> Option<()> {
    *left = left.strip_prefix(&[byte])?;
    Some(())
}

fn digits(left: &mut &[u8], count: usize) -> Option<i64> {
    let (number, rest) = left.split_at_checked(count)?;
    *left = rest;
    number.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// The milliseconds of a fraction of a second; further digits are cut off, not rounded.
fn fraction(left: &mut &[u8]) -> Option<i64> {
    let Some(rest) = left.strip_prefix(b".") else { return Some(0) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let padded = rest[..count].iter().copied().chain(*b"00").take(3);
    *left = &rest[count..];
    Some(padded.fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0')))
}

/// Minutes east of UTC.
fn offset(left: &mut &[u8]) -> Option<i64> {
    let (sign, rest) = left.split_first()?;
    *left = rest;
    let direction = match sign {
        b'Z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(left, 2)?;
    let minutes = if left.first() == Some(&b':') { after(left, b':')? } else { digits(left, 2)? };
    (hours < 24 && minutes < 60).then_some(direction * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instant_is_cut_to_milliseconds() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("1969-12-31T23:59:59.998Z", -2),
            ("2026-11-29T18:33:40.001Z", 1_795_977_220_001),
            ("2026-11-29T18:33:40Z", 1_795_977_220_000),
            ("2026-11-29T18:33Z", 1_795_977_180_000),
            ("2026-11-29T18:33:40.0019999Z", 1_795_977_220_001),
            ("2026-11-29T18:33:40.1Z", 1_795_977_220_100),
            ("2026-11-29T20:33:40.001+02:00", 1_795_977_220_001),
            ("2026-11-29T13:03:40.001-0530", 1_795_977_220_001),
            ("2024-02-29T00:00:00Z", 1_709_164_800_000),
            ("2024-02-29", 1_709_164_800_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000),
            ("1969-12-31T23:59:59.9999Z", -1),
        ] {
            assert_eq!(parse_millis(text), Some(millis), "{text}");
        }
    }

    #[test]
    fn a_fraction_has_any_number_of_digits_and_counts_three() {
        for (fraction, millis) in [
            ("", 0),
            (".0", 0),
            (".5", 500),
            (".05", 50),
            (".005", 5),
            (".0005", 0),
            (".9999", 999),
            (".123456789", 123),
        ] {
            assert_eq!(parse_millis(&format!("1970-01-01T00:00:00{fraction}Z")), Some(millis), "{fraction}");
        }
        let long = format!("1970-01-01T00:00:00.{}Z", "9".repeat(1_000));
        assert_eq!(parse_millis(&long), Some(999));
        for wrong in [".", ",5", ".5.5", ".x", ". 5"] {
            assert_eq!(parse_millis(&format!("1970-01-01T00:00:00{wrong}Z")), None, "{wrong}");
        }
    }

    #[test]
    fn an_offset_is_taken_off() {
        for (offset, minutes) in [
            ("Z", 0),
            ("+00:00", 0),
            ("-00:00", 0),
            ("+00:01", -1),
            ("-00:01", 1),
            ("+0530", -330),
            ("-0930", 570),
            ("+23:59", -1_439),
            ("-23:59", 1_439),
        ] {
            assert_eq!(parse_millis(&format!("1970-01-01T00:00:00{offset}")), Some(minutes * 60_000), "{offset}");
        }
        for wrong in
            ["", "z", "+", "+5", "+05", "+5:00", "+05:", "+05:3", "+24:00", "+00:60", "UTC", "Z+00:00", "ZZ", "−01:00"]
        {
            assert_eq!(parse_millis(&format!("1970-01-01T00:00:00{wrong}")), None, "{wrong}");
        }
    }

    #[test]
    fn no_leap_second_and_no_twenty_fifth_hour_is_an_instant() {
        for text in [
            "2016-12-31T23:59:60Z",
            "2016-12-31T23:59:60.500Z",
            "2016-12-31T24:00:00Z",
            "2016-12-31T23:60:00Z",
            "2016-12-31T25:00:00Z",
        ] {
            assert_eq!(parse_millis(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_must_be_in_the_calendar() {
        for (day, is_one) in [
            ("2024-02-29", true),
            ("2100-02-29", false),
            ("2026-04-30", true),
            ("2026-04-31", false),
            ("2026-00-10", false),
            ("2026-01-00", false),
            ("2026-12-31", true),
        ] {
            assert_eq!(parse_millis(day).is_some(), is_one, "{day}");
            assert_eq!(parse_millis(&format!("{day}T00:00:00Z")).is_some(), is_one, "{day} with a time");
        }
    }

    #[test]
    fn whatever_names_no_instant_is_undated() {
        for text in [
            "",
            "yesterday",
            "2026-13-40T99:00:00.000Z",
            "2023-02-29T00:00:00Z",
            "2026-11-31",
            "2026-11-29T18:33:40.001",
            "2026-11-29 18:33:40Z",
            "2026-11-29T18:33:60Z",
            "2026-11-29T18:33:40.Z",
            "2026-11-29T18:33:40.001Z ",
            "2026-11-29T18:33:40+25:00",
            "1795977220001",
            "+002026-11-29T18:33:40Z",
            "-000001-01-01T00:00:00Z",
            "26-11-29T18:33:40Z",
            "2026-11-29t18:33:40Z",
            "2026-1-29T18:33:40Z",
            "2026-11-29T18Z",
            "2026-11-29T",
            "2026-11-29Z",
            "2026-11",
            "2026/11/29",
            " 2026-11-29T18:33:40Z",
            "２026-11-2",
        ] {
            assert_eq!(parse_millis(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for at_ms in [0, 1, 1_795_977_220_001, 253_402_207_199_999] {
            let text = to_text(at_ms).unwrap();
            assert_eq!(parse_millis(&text).map(i64::unsigned_abs), Some(at_ms), "{text}");
        }
        assert_eq!(to_text(1_795_977_220_001).as_deref(), Some("2026-11-29T18:33:40.001Z"));
        assert_eq!(to_text(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn an_offset_moves_no_instant(at_ms in 0..253_402_207_199_999_u64, hours in 0..24_i64, minutes in 0..60_i64) {
            let east = i64::try_from(at_ms).unwrap() + (hours * 60 + minutes) * 60_000;
            let local = to_text(u64::try_from(east).unwrap().min(253_402_207_199_999)).unwrap();
            let text = local.replace('Z', &format!("+{hours:02}:{minutes:02}"));
            let utc = parse_millis(&local).unwrap() - (hours * 60 + minutes) * 60_000;
            prop_assert_eq!(parse_millis(&text), Some(utc), "{}", text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-0-9TZ:+.é]{0,30}") {
            let _ = parse_millis(&text);
        }
    }
}
