//! Sorted sets: each member is stored twice, by its hash with the score as the value, and by its score.
//!
//! Both elements of a member are always put and deleted in one batch, so the order by score never differs from the
//! members.

use std::ops::{Bound, ControlFlow};

use super::layout::hashed;
use super::view::Changes;
use super::{Collection, Edit};
use crate::errors::{FixedError, Refusal};

const BY_MEMBER: u8 = 0;
const BY_SCORE: u8 = 1;
const SCORE_BYTES: usize = 8;
const SIGN: u64 = 1 << 63;

/// A member with its score.
pub(crate) type Scored = (Vec<u8>, f64);

/// Elements between two bounds in the order of scores.
pub(crate) type Span = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A sorted set as a command sees it.
pub(crate) struct SortedSet<'a>(Collection<'a>);

impl<'a> SortedSet<'a> {
    /// Wraps a collection of this type.
    pub(crate) fn of(collection: Collection<'a>) -> SortedSet<'a> {
        SortedSet(collection)
    }

    /// Returns all members in the order of scores.
    pub(crate) fn all(&self) -> Result<impl Iterator<Item = Result<Scored, Refusal>> + use<'a>, Refusal> {
        self.range(&everything(), false)
    }

    /// Returns the number of members.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns the score of a member.
    pub(crate) fn score(&self, member: &[u8]) -> Result<Option<f64>, Refusal> {
        self.0.get(&by_member(member))?.map(|value| score_of(&value)).transpose()
    }

    /// Returns the members of a span in the order of scores, or in reverse.
    pub(crate) fn range(
        &self,
        (low, high): &Span,
        is_reverse: bool,
    ) -> Result<impl Iterator<Item = Result<Scored, Refusal>> + use<'a>, Refusal> {
        let items = self.0.range((borrowed(low), borrowed(high)), is_reverse)?;
        Ok(items.map(|item| {
            let (element, _) = item?;
            let (member, score) = scored_of(&element)?;
            Ok((member.to_vec(), score))
        }))
    }

    /// Calls `each` with the members of a span in the order of scores, or in reverse, until it breaks.
    pub(crate) fn each(
        &self,
        (low, high): &Span,
        is_reverse: bool,
        mut each: impl FnMut(&[u8], f64) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        self.0.each((borrowed(low), borrowed(high)), is_reverse, |element, _| {
            let (member, score) = scored_of(element)?;
            each(member, score)
        })
    }

    /// Counts the members of a span, leaf by leaf of the index.
    pub(crate) fn count(&self, (low, high): &Span) -> Result<u64, Refusal> {
        self.0.count((borrowed(low), borrowed(high)))
    }

    /// Returns the number of members before one of them in the order of scores.
    pub(crate) fn rank(&self, member: &[u8]) -> Result<Option<u64>, Refusal> {
        let Some(score) = self.score(member)? else { return Ok(None) };
        self.count(&(everything().0, Bound::Excluded(by_score(score, member)))).map(Some)
    }

    /// Begins a change.
    pub(crate) fn edit(self) -> SortedSetEdit<'a> {
        SortedSetEdit(self.0.edit())
    }

    /// Deletes the sorted set.
    pub(crate) fn delete(&self, changes: &mut Changes) {
        self.0.delete(changes);
    }
}

/// A change of a sorted set, which may be a new one.
pub(crate) struct SortedSetEdit<'a>(Edit<'a>);

impl<'a> SortedSetEdit<'a> {
    /// Wraps a change of a collection of this type.
    pub(crate) fn of(edit: Edit<'a>) -> SortedSetEdit<'a> {
        SortedSetEdit(edit)
    }

    pub(super) fn inner(&mut self) -> &mut Edit<'a> {
        &mut self.0
    }

    pub(super) fn into_inner(self) -> Edit<'a> {
        self.0
    }

    /// Returns the score of a member after the changes so far.
    pub(crate) fn score(&self, member: &[u8]) -> Result<Option<f64>, Refusal> {
        self.0.get(&by_member(member))?.map(|value| score_of(&value)).transpose()
    }

    /// Gives a member a score instead of its old one; `None` adds the member. A negative zero becomes zero.
    pub(crate) fn put(&mut self, member: &[u8], old: Option<f64>, new: f64) -> Result<(), Refusal> {
        let new = new + 0.0;
        match old {
            Some(old) => self.0.unset(by_score(old, member)),
            None => self.0.record().count += 1,
        }
        self.0.set(by_score(new, member), Vec::new())?;
        self.0.set(by_member(member), new.to_le_bytes().to_vec())
    }

    /// Removes a member that has this score.
    pub(crate) fn remove(&mut self, member: &[u8], score: f64) {
        self.0.unset(by_score(score, member));
        self.0.unset(by_member(member));
        self.0.record().count -= 1;
    }

    /// Returns the number of members after the changes so far.
    pub(crate) fn len(&mut self) -> u64 {
        self.0.record().count
    }

    /// Writes the change in one step.
    pub(crate) fn write(self) -> Result<(), Refusal> {
        self.0.write()
    }

    /// Adds the change to others, which are written in one step.
    pub(crate) fn finish(self, changes: &mut Changes) -> Result<(), Refusal> {
        self.0.finish(changes)
    }
}

/// Returns the range of elements by member from a hash on.
pub(crate) fn members_from(hash: u32) -> (Vec<u8>, [u8; 1]) {
    ([&[BY_MEMBER][..], &hash.to_be_bytes()].concat(), [BY_SCORE])
}

/// Returns the element of a member without the byte before its hash.
pub(crate) fn hashed_of(mut element: Vec<u8>) -> Vec<u8> {
    element.drain(..1);
    element
}

/// Parses the stored score of a member.
pub(crate) fn score_of(value: &[u8]) -> Result<f64, Refusal> {
    Ok(f64::from_le_bytes(value.try_into().map_err(|_| FixedError::DamagedCollection)?))
}

/// Returns the span of all members.
pub(crate) fn everything() -> Span {
    (Bound::Included(vec![BY_SCORE]), Bound::Excluded(vec![BY_SCORE + 1]))
}

/// Returns the span of the scores between two; `None` if there is none.
pub(crate) fn scores(low: Bound<f64>, high: Bound<f64>) -> Option<Span> {
    let at = |bits: u64| [&[BY_SCORE][..], &bits.to_be_bytes()].concat();
    let start = match low {
        Bound::Included(score) => at(order_of(score)),
        Bound::Excluded(score) => at(order_of(score) + 1),
        Bound::Unbounded => vec![BY_SCORE],
    };
    let end = match high {
        Bound::Included(score) => at(order_of(score) + 1),
        Bound::Excluded(score) => at(order_of(score)),
        Bound::Unbounded => vec![BY_SCORE + 1],
    };
    (start < end).then_some((Bound::Included(start), Bound::Excluded(end)))
}

/// Returns the span of the members between two that all have this score; `None` if there is none.
pub(crate) fn members(score: f64, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Option<Span> {
    let (first, end) = scores(Bound::Included(score), Bound::Included(score))?;
    let low = low.map(|member| by_score(score, member));
    let high = high.map(|member| by_score(score, member));
    let is_empty = match (&low, &high) {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        _ => false,
    };
    let or = |bound: Bound<Vec<u8>>, other| if bound == Bound::Unbounded { other } else { bound };
    (!is_empty).then(|| (or(low, first), or(high, end)))
}

/// Returns the member of an element by score, and the score.
fn scored_of(element: &[u8]) -> Result<(&[u8], f64), Refusal> {
    let scored = element.get(1..).and_then(<[u8]>::split_first_chunk::<SCORE_BYTES>);
    let (bits, member) = scored.ok_or(FixedError::DamagedCollection)?;
    Ok((member, score_of_order(u64::from_be_bytes(*bits))))
}

fn by_member(member: &[u8]) -> Vec<u8> {
    [&[BY_MEMBER][..], &hashed(member)].concat()
}

fn by_score(score: f64, member: &[u8]) -> Vec<u8> {
    [&[BY_SCORE][..], &order_of(score).to_be_bytes(), member].concat()
}

/// Returns a number whose order is that of scores. Both zeros have the same; no score has the greatest.
fn order_of(score: f64) -> u64 {
    let bits = (score + 0.0).to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn score_of_order(order: u64) -> f64 {
    f64::from_bits(if order & SIGN == 0 { !order } else { order & !SIGN })
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(|element| &element[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_bytes_is_order_of_scores() {
        let scores =
            [f64::NEG_INFINITY, f64::MIN, -1.5, -1.0, -f64::MIN_POSITIVE, -5e-324, 0.0, 5e-324, 0.5, 1.0, f64::MAX];
        for pair in scores.windows(2) {
            assert!(order_of(pair[0]) < order_of(pair[1]), "{pair:?}");
            assert!(by_score(pair[0], b"z") < by_score(pair[1], b"a"), "{pair:?}");
        }
        for score in scores.into_iter().chain([f64::INFINITY]) {
            assert_eq!(score_of_order(order_of(score)), score);
        }
        assert_eq!(order_of(-0.0), order_of(0.0));
        assert!(order_of(f64::INFINITY) < u64::MAX);
    }

    #[test]
    fn spans_that_hold_nothing_are_none() {
        use Bound::{Excluded, Included, Unbounded};
        assert!(scores(Included(1.0), Included(1.0)).is_some());
        assert_eq!(scores(Excluded(1.0), Included(1.0)), None);
        assert_eq!(scores(Included(2.0), Included(1.0)), None);
        assert!(scores(Excluded(f64::INFINITY), Unbounded).is_some());
        assert!(members(0.0, Included(b"a"), Included(b"a")).is_some());
        assert_eq!(members(0.0, Included(b"a"), Excluded(b"a")), None);
        assert_eq!(members(0.0, Excluded(b"b"), Included(b"a")), None);
    }
}
