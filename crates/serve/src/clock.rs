//! The one place of this crate that reads the wall clock.

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the shell of this crate reads the clock here and nowhere else")]
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

/// `at_ms` as the ISO 8601 text that clients parse; empty for a time that no timestamp can say, which our clock never gives.
pub(crate) fn iso(at_ms: u64) -> String {
    transcript::iso_text(at_ms).unwrap_or_default()
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
