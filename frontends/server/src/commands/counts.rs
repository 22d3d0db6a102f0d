//! Counts in requests, and the arguments of commands that take some elements of the first of several keys.

use std::ops::Range;

use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;

/// Parses a number of at least `min`; `refusal` refuses any other.
pub(super) fn at_least(min: i64, text: &[u8], refusal: impl Into<Refusal>) -> Result<u64, Refusal> {
    let number = resp::parse_integer(text).filter(|number| *number >= min);
    number.map(|number| number as u64).ok_or_else(|| refusal.into())
}

/// The arguments of LMPOP or ZMPOP from the number of keys on.
pub(super) struct Pops<E> {
    /// The arguments that are keys.
    pub(super) keys: Range<usize>,
    pub(super) end: E,
    pub(super) count: u64,
}

impl<E> Pops<E> {
    /// Parses the arguments from number `index` on; `end_of` parses the end of a collection.
    pub(super) fn of(
        call: &Call<'_>,
        index: usize,
        end_of: impl FnOnce(&[u8]) -> Option<E>,
    ) -> Result<Pops<E>, Refusal> {
        let key_count = at_least(1, call.argument(index), FixedError::KeyCount)?;
        let keys_end = (index as u64 + 1).saturating_add(key_count);
        if keys_end >= call.request.len() as u64 {
            return Err(Refusal::Syntax);
        }
        let keys = index + 1..keys_end as usize;
        let (end, mut count) = (end_of(call.argument(keys.end)).ok_or(Refusal::Syntax)?, None);
        let mut options = call.request.arguments().skip(keys.end);
        while let Some(option) = options.next() {
            let value = options.next().ok_or(Refusal::Syntax)?;
            if !option.eq_ignore_ascii_case(b"count") || count.is_some() {
                return Err(Refusal::Syntax);
            }
            // As in Redis, a wrong count is reported before any argument after it.
            count = Some(at_least(1, value, FixedError::ElementCount)?);
        }
        Ok(Pops { keys, end, count: count.unwrap_or(1) })
    }
}
