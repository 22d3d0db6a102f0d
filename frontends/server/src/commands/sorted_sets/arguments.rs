//! Sets, scores and bounds in requests.

use std::ops::Bound;

use super::range::{Range, Text};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::SortedSet;

/// Parses a number as C's `strtod` does, except hexadecimal ones; `None` if it is not a number.
fn float(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.parse().ok().filter(|number: &f64| !number.is_nan())
}

/// Parses a number. One that is too great or too small for a score is refused.
pub(in crate::commands) fn number(text: &[u8]) -> Option<f64> {
    let number = float(text)?;
    let (is_word, mantissa) =
        (text.iter().any(|byte| matches!(byte, b'n' | b'N')), text.split(|byte| matches!(byte, b'e' | b'E')).next());
    let is_nothing = || mantissa.unwrap_or_default().iter().all(|byte| !matches!(byte, b'1'..=b'9'));
    (number.is_finite() || is_word).then_some(number).filter(|number| *number != 0.0 || is_nothing())
}

/// Parses a score.
pub(super) fn score(text: &[u8]) -> Result<f64, Refusal> {
    number(text).ok_or(FixedError::NotAFloat.into())
}

/// Parses the ends of a range of scores.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<Range, Refusal> {
    match (score_bound(min), score_bound(max)) {
        (Some(min), Some(max)) => Ok(Range::Scores(min, max)),
        _ => Err(FixedError::MinMaxScore.into()),
    }
}

/// As in Redis, white space before a number and everything after a zero byte are ignored, and an empty text is zero.
fn score_bound(text: &[u8]) -> Option<Bound<f64>> {
    let (is_open, text) = text.strip_prefix(b"(").map_or((false, text), |rest| (true, rest));
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let number = if text.is_empty() { 0.0 } else { float(text.trim_ascii_start())? };
    Some(if is_open { Bound::Excluded(number) } else { Bound::Included(number) })
}

/// Parses the ends of a range of members.
pub(super) fn members(min: &[u8], max: &[u8]) -> Result<Range, Refusal> {
    match (text_bound(min), text_bound(max)) {
        (Some(min), Some(max)) => Ok(Range::Members(min, max)),
        _ => Err(FixedError::MinMaxText.into()),
    }
}

fn text_bound(text: &[u8]) -> Option<Text> {
    Some(match text {
        b"-" => Text::Least,
        b"+" => Text::Greatest,
        [b'[', member @ ..] => Text::Included(member.to_vec()),
        [b'(', member @ ..] => Text::Excluded(member.to_vec()),
        _ => return None,
    })
}

/// Returns the sorted set whose key is argument number `index`; `None` if the key does not exist.
pub(super) fn sorted_set<'a>(call: &Call<'a>, index: usize) -> Result<Option<SortedSet<'a>>, Refusal> {
    Ok(call.collection(index, CollectionType::SortedSet)?.map(SortedSet::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_c() {
        for (text, wanted) in [
            ("1", Some(1.0)),
            ("-1.5e3", Some(-1500.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0e99999", Some(0.0)),
            ("0.000", Some(0.0)),
            ("1e400", None),
            ("1e-400", None),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1x", None),
        ] {
            assert_eq!(number(text.as_bytes()), wanted, "{text:?}");
        }
    }

    #[test]
    fn bounds_are_those_of_redis() {
        for (text, wanted) in [
            ("1", Some(Bound::Included(1.0))),
            ("(1", Some(Bound::Excluded(1.0))),
            ("(-inf", Some(Bound::Excluded(f64::NEG_INFINITY))),
            ("1e400", Some(Bound::Included(f64::INFINITY))),
            ("", Some(Bound::Included(0.0))),
            ("(", Some(Bound::Excluded(0.0))),
            (" 1", Some(Bound::Included(1.0))),
            ("1\0x", Some(Bound::Included(1.0))),
            ("1 ", None),
            ("(nan", None),
            ("((1", None),
            ("[1", None),
        ] {
            assert_eq!(score_bound(text.as_bytes()), wanted, "{text:?}");
        }
    }
}
