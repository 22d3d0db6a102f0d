/// Parses a decimal integer as strictly as Redis does: no sign except `-`, no leading zero, no space, no `-0`.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits {
        b"0" if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Accumulated as a negative number, because the smallest integer has no positive counterpart.
    let value = digits.iter().try_fold(0i64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative { Some(value) } else { value.checked_neg() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_like_redis() {
        let accepted: [(&[u8], i64); 6] = [
            (b"0", 0),
            (b"7", 7),
            (b"-7", -7),
            (b"1048576", 1_048_576),
            (b"9223372036854775807", i64::MAX),
            (b"-9223372036854775808", i64::MIN),
        ];
        for (text, value) in accepted {
            assert_eq!(parse_integer(text), Some(value));
        }
        for text in ["", "-", "-0", "+1", "01", " 1", "1 ", "1a", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }
}
