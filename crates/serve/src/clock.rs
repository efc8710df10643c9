//! The one place of this crate that reads the wall clock.

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the shell of this crate reads the clock here and nowhere else")]
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// `at_ms` as the ISO 8601 text that JavaScript's `toISOString` gives, which is what clients parse.
pub(crate) fn iso(at_ms: u64) -> String {
    let (seconds, millis) = (at_ms / 1000, at_ms % 1000);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a count of days since the epoch (the era algorithm for the proleptic Gregorian calendar).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_print_as_javascript_prints_them() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_977_593_493, "2026-11-29T18:39:53.493Z"),
            (4_102_444_799_999, "2099-12-31T23:59:59.999Z"),
        ];
        for (at_ms, expected) in cases {
            assert_eq!(iso(at_ms), expected);
        }
    }

    #[test]
    fn the_clock_is_past_the_year_2020() {
        assert!(now_ms() > 1_577_836_800_000);
    }
}
