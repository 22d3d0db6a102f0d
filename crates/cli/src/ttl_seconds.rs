//! Times to live, as commands and files of operations give them.

use std::time::Duration;

use hikv::Clock;

/// The time of so many seconds, decimals too. One that a store could not note would let the key stay.
pub(crate) fn of_number(number: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(number).map_err(|error| error.to_string())?;
    match Clock::default().after(time).is_never() {
        true => Err(format!("{number} seconds are more than a store can note; a key without an expiry stays")),
        false => Ok(time),
    }
}

/// As [`of_number`], from text.
pub(crate) fn of_text(text: &str) -> Result<Duration, String> {
    of_number(text.parse().map_err(|_| "a number of seconds is wanted".to_owned())?)
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
    }
}
