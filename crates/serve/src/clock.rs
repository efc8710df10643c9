//! The one place of this crate that reads the wall clock.

/// Milliseconds since the epoch.
#[expect(clippy::disallowed_methods, reason = "the shell of this crate reads the clock here and nowhere else")]
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_ms = since.map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
    now_ms.saturating_sub(set_back_ms())
}

/// By how many milliseconds a test has set the clock of this process back: none, in this build.
#[cfg(not(feature = "fail-points"))]
const fn set_back_ms() -> u64 {
    0
}

/// By how many milliseconds a test has set the clock of this process back, at any time of its life: what the file says that its plan names
/// as `clock=FILE`.
#[cfg(feature = "fail-points")]
#[expect(clippy::disallowed_methods, reason = "compiled only for tests, which start this process with a plan")]
fn set_back_ms() -> u64 {
    static FILE: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| {
        let plan = std::env::var("TURND_FAIL_POINTS").ok()?;
        plan.split(';').find_map(|part| part.trim().strip_prefix("clock=")).map(str::to_owned)
    });
    let text = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
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
