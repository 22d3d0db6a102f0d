//! Sizes in bytes, as people write them.

/// Parses a number of bytes with an optional unit.
pub(crate) fn bytes_of(text: &str) -> Option<u64> {
    let digits_end = text.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits_end..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    text[..digits_end].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(
            (bytes_of("12"), bytes_of("1k"), bytes_of("2KB"), bytes_of("1gb")),
            (Some(12), Some(1000), Some(2048), Some(1 << 30))
        );
        assert_eq!((bytes_of("x"), bytes_of("1x"), bytes_of("")), (None, None, None));
    }
}
