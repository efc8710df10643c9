//! How long an endpoint is left alone after a try that failed.

use super::limits::{PAUSE_FIRST_MS, PAUSE_MAX_MS, RETRY_AFTER_MAX_MS};

/// Milliseconds until the next try after `tries` of them: any number below a bound that doubles with each try, all alike likely. `dice` is
/// 32 random bits. A receiver that named a time is left alone for that long, up to a bound.
pub(super) fn pause_ms(tries: u32, retry_after_ms: Option<u64>, dice: u32) -> u64 {
    let doublings = tries.saturating_sub(1).min(32);
    let bound = PAUSE_FIRST_MS.saturating_mul(1 << doublings).min(PAUSE_MAX_MS);
    // Below 2^20 times below 2^32.
    let chosen = (bound * u64::from(dice)) >> 32;
    chosen.max(retry_after_ms.unwrap_or_default().min(RETRY_AFTER_MAX_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_from_a_second_to_ten_minutes() {
        let bounds: Vec<u64> =
            [1, 2, 3, 4, 9, 10, 11, 400, u32::MAX].map(|tries| pause_ms(tries, None, u32::MAX) + 1).to_vec();
        assert_eq!(bounds, [1_000, 2_000, 4_000, 8_000, 256_000, 512_000, 600_000, 600_000, 600_000]);
    }

    #[test]
    fn within_the_bound_chance_decides() {
        assert_eq!(pause_ms(3, None, 0), 0);
        assert_eq!(pause_ms(3, None, 1 << 31), 2_000);
        assert_eq!(pause_ms(3, None, 1 << 30), 1_000);
    }

    #[test]
    fn what_a_receiver_asks_for_is_kept_up_to_an_hour() {
        assert_eq!(pause_ms(1, Some(90_000), 1 << 31), 90_000);
        assert_eq!(pause_ms(1, Some(0), 1 << 31), 500, "no demand to be called at once");
        assert_eq!(pause_ms(1, Some(u64::MAX), 0), 3_600_000);
    }
}
