//! Numbers of INCRBYFLOAT.
//!
//! Redis adds 80-bit floats and prints 17 decimals. Here they are decimals with 17 fractional digits, added exactly
//! while the integer part has fewer than 22 digits; larger numbers are 64-bit floats.

use std::fmt;

/// Number of fractional digits.
const PLACES: u32 = 17;
const ONE: i128 = 10i128.pow(PLACES);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// In units of 10^-17.
    Exact(i128),
    /// Larger, or infinite.
    Float(f64),
}

impl Number {
    /// Parses the syntax of C's `strtold`, except hexadecimal numbers and NaN.
    pub(crate) fn parse(text: &[u8]) -> Option<Number> {
        let text = str::from_utf8(text).ok()?;
        let float: f64 = text.parse().ok()?;
        if float.is_nan() {
            return None;
        }
        let exact = Number::parse_exact(text).filter(|exact| exact.unsigned_abs() < i128::MAX as u128 / 2);
        Some(exact.map_or(Number::Float(float), Number::Exact))
    }

    fn parse_exact(text: &str) -> Option<i128> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], exponent_of(&text[at + 1..])),
            None => (text, 0),
        };
        let (is_negative, digits) = match mantissa.as_bytes() {
            [b'-', ..] => (true, &mantissa[1..]),
            [b'+', ..] => (false, &mantissa[1..]),
            _ => (false, mantissa),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = [whole, fraction].concat();
        let shift = i64::from(PLACES).saturating_add(exponent).saturating_sub(i64::try_from(fraction.len()).ok()?);
        let scaled = scaled_by(all.trim_start_matches('0'), shift)?;
        Some(if is_negative { -scaled } else { scaled })
    }

    /// Returns the sum; `None` if it is infinite.
    pub(crate) fn plus(self, other: Number) -> Option<Number> {
        if let (Number::Exact(a), Number::Exact(b)) = (self, other)
            && let Some(sum) = a.checked_add(b)
        {
            return Some(Number::Exact(sum));
        }
        let sum = self.float() + other.float();
        sum.is_finite().then_some(Number::Float(sum))
    }

    /// Returns the nearest 64-bit float.
    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Exact(units) => units as f64 / ONE as f64,
            Number::Float(float) => float,
        }
    }
}

/// Parses the exponent; one that is too long for an integer is clamped.
fn exponent_of(text: &str) -> i64 {
    text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX })
}

/// Returns the digits as an integer times ten to the power of `shift`, rounded; `None` if it is too large. Digits
/// beyond the integer's precision are ignored, however many there are.
fn scaled_by(digits: &str, shift: i64) -> Option<i128> {
    let integer = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
    if digits.is_empty() {
        return Some(0);
    }
    if let Ok(shift) = u32::try_from(shift) {
        return integer(digits)?.checked_mul(10i128.checked_pow(shift)?);
    }
    let kept_count = i64::try_from(digits.len()).ok()?.saturating_add(shift);
    let Ok(kept_count) = usize::try_from(kept_count) else { return Some(0) };
    let (kept, lost) = digits.split_at_checked(kept_count)?;
    integer(kept)?.checked_add(lost.starts_with(['5', '6', '7', '8', '9']).into())
}

impl fmt::Display for Number {
    /// Omits trailing zeros and exponents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(float) => write!(f, "{float}"),
            Number::Exact(units) => {
                let (whole, fraction) = (units.unsigned_abs() / ONE as u128, units.unsigned_abs() % ONE as u128);
                let fraction = format!("{fraction:017}");
                let fraction = fraction.trim_end_matches('0');
                let (sign, point) = (if *units < 0 { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
                write!(f, "{sign}{whole}{point}{fraction}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        Number::parse(a.as_bytes())?.plus(Number::parse(b.as_bytes())?).map(|sum| sum.to_string())
    }

    #[test]
    fn sums_are_those_of_decimals() {
        for (a, b, wanted) in [
            ("1", "-1.1", "-0.1"),
            ("0.1", "0.2", "0.3"),
            ("5.0e3", "200", "5200"),
            ("17179869184", "1.5", "17179869185.5"),
            ("10.5", "0.1", "10.6"),
            ("0.024390243902439025", "-0.024390243902439025", "0"),
            ("-0", "0", "0"),
            // A number below the last digit counts as 0 and does not reduce the other number's precision.
            ("730840855862382193", "1e-38", "730840855862382193"),
            ("730840855862382193", "-4.9e-324", "730840855862382193"),
            ("-215130606621070684.5", "1e-99999999999", "-215130606621070684.5"),
            ("18446744073709551896", "1e-99999999999999999999", "18446744073709551896"),
            (
                "16537916856059448.40808824450266411",
                "0.0000000000000000000000000000000000000000001",
                "16537916856059448.40808824450266411",
            ),
            (
                "730840855862382193",
                "0.12345678901234567890123456789012345678901234567890",
                "730840855862382193.12345678901234568",
            ),
            ("0", "0.000000000000000005", "0.00000000000000001"),
            ("0", "4e-18", "0"),
            ("9007199254740993", "0e99999999999999999999", "9007199254740993"),
            ("100000000000000000000000e-20", "1", "1001"),
            (".5", "3.", "3.5"),
            (
                "1e300",
                "1",
                "1000000000000000052504760255204420248704468581108159154915854115111802457988908195786371375080447854045104045400000000000000000000000000000000000000000",
            ),
        ] {
            let found = sum(a, b);
            if a != "1e300" {
                assert_eq!(found.as_deref(), Some(wanted), "{a} {b}");
            } else {
                assert!(found.is_some_and(|sum| sum.len() == 301 && sum.starts_with("1000000")));
            }
        }
        assert_eq!(sum("1", "inf"), None);
        assert_eq!(sum("1e308", "1.7e308"), None);
    }

    #[test]
    fn invalid_number_is_refused() {
        for text in ["", " 1", "1 ", "1\0", "nan", "abc", "1e", "--1", "0x10"] {
            assert!(Number::parse(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
