//! Numbers written as a browser writes them.

/// Below this, every whole double is exact and its digits are the digits of the integer (2 to the power of 53).
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// Appends `number` in the form that `JSON.stringify` gives it; `null` when it is not finite.
///
/// The digits are the fewest that read back as the same double. Where they stand is the rule of ECMAScript's
/// `Number::toString`: plain from 1e-6 up to below 1e21, with an exponent outside.
pub(crate) fn push_number(json: &mut String, number: f64) {
    if !number.is_finite() {
        json.push_str("null");
    } else if number.fract() == 0.0 && number.abs() < EXACT_BELOW {
        // Exact by the bound above. The cast also makes a plain 0 of -0.
        json.push_str(&(number as i64).to_string());
    } else {
        push_inexact(json, number);
    }
}

fn push_inexact(json: &mut String, number: f64) {
    if number < 0.0 {
        json.push('-');
    }
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    match exponent {
        0..=20 => push_plain(json, &digits, exponent.unsigned_abs() as usize + 1),
        -6..=-1 => {
            json.push_str("0.");
            json.extend((exponent + 1..0).map(|_| '0'));
            json.push_str(&digits);
        }
        _ => push_scientific(json, &digits, exponent),
    }
}

/// `whole` digits stand before the point.
fn push_plain(json: &mut String, digits: &str, whole: usize) {
    match digits.split_at_checked(whole) {
        Some((before, "")) => json.push_str(before),
        Some((before, after)) => json.extend([before, ".", after]),
        None => {
            json.push_str(digits);
            json.extend((digits.len()..whole).map(|_| '0'));
        }
    }
}

fn push_scientific(json: &mut String, digits: &str, exponent: i32) {
    let (first, others) = digits.split_at(1);
    json.push_str(first);
    if !others.is_empty() {
        json.extend([".", others]);
    }
    json.push_str(&format!("e{exponent:+}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(number: f64) -> String {
        let mut json = String::new();
        push_number(&mut json, number);
        json
    }

    #[test]
    fn numbers_are_written_as_a_browser_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (5.0, "5"),
            (-5.0, "-5"),
            (1_795_977_220_000.0, "1795977220000"),
            (1_795_977_220_000.5, "1795977220000.5"),
            (0.1, "0.1"),
            (-1.25, "-1.25"),
            (123.456, "123.456"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (9_007_199_254_740_992.0, "9007199254740992"),
            (9_007_199_254_740_994.0, "9007199254740994"),
            (18_446_744_073_709_552_000.0, "18446744073709552000"),
            (1e20, "100000000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (-1.5e21, "-1.5e+21"),
            (1e300, "1e+300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.000_001, "0.000001"),
            (0.000_001_5, "0.0000015"),
            (0.000_000_1, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
            (f64::NEG_INFINITY, "null"),
        ];
        for (number, expected) in cases {
            assert_eq!(written(number), expected);
        }
    }

    #[test]
    fn a_written_number_reads_back_as_the_same_double() {
        let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits);
            if number.is_finite() {
                assert_eq!(written(number).parse::<f64>(), Ok(number));
            }
        }
    }
}
