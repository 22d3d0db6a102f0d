//! Numbers: Lua's, and as C prints them.

use mlua::Value;

/// Returns the number, or the number of a text, as Lua converts it.
pub(crate) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => text.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

/// Returns the number as `printf("%.{precision}g")` prints it.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if value == value.trunc() && value.abs() < 1e15 && precision >= 15 && (value != 0.0 || value.is_sign_positive()) {
        return (value as i64).to_string();
    }
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let digits_count = precision.max(1);
    let scientific = format!("{value:.*e}", digits_count - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits_count as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits_count as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{value:.decimals$}")).into()
}

/// Returns a decimal number without zeros at the end.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those of C.
    #[test]
    fn numbers_are_printed_as_in_c() {
        let cases = [
            (0.0, 17, "0"),
            (-0.0, 17, "-0"),
            (1.5, 17, "1.5"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e20, 17, "1e+20"),
            (1e15, 14, "1e+15"),
            (1e13, 14, "10000000000000"),
            (123456789012345678.0, 17, "1.2345678901234568e+17"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (-2.5e-300, 17, "-2.5e-300"),
            (99999999999999.9, 14, "1e+14"),
            (f64::INFINITY, 14, "inf"),
            (-9007199254740993.0, 17, "-9007199254740992"),
        ];
        for (value, precision, text) in cases {
            assert_eq!(general(value, precision), text, "{value:e}");
        }
    }
}
