//! Parses times to live in commands and files of operations.

use std::time::Duration;

use hikv::Clock;

/// Converts seconds, also with decimals, to a time to live.
///
/// # Errors
/// The number is negative, or longer than a store can record: such a key would never expire.
pub(crate) fn of_number(number: f64) -> Result<Duration, String> {
    if number.is_nan() || number < 0.0 {
        return Err("expected a number of seconds, 0 or more".to_owned());
    }
    let time = Duration::try_from_secs_f64(number).ok().filter(|time| !Clock::default().after(*time).is_never());
    time.ok_or_else(|| format!("{number} seconds are more than a store can record; to keep the key, set no expiry"))
}

/// Like [`of_number`], from text.
pub(crate) fn of_text(text: &str) -> Result<Duration, String> {
    of_number(text.parse().map_err(|_| "expected a number of seconds".to_owned())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_counting_are_named() {
        assert_eq!(of_text("1.5"), Ok(Duration::from_millis(1500)));
        assert!(of_text("1e15").is_ok());
        for text in ["1e17", "1e18", "1.8e19", "1e300", "inf", "NaN", "-1", "soon", ""] {
            let error = of_text(text).unwrap_err();
            assert!(!error.is_empty(), "{text}");
        }
        assert!(of_text("1e18").unwrap_err().contains("1000000000000000000 seconds"));
        assert!(of_text("1e300").unwrap_err().contains("more than a store can record"));
        assert!(of_text("-1").unwrap_err().contains("0 or more"));
    }
}
