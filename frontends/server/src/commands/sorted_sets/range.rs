//! Ranges of members: by rank, by score, or by the members themselves.

use std::ops::{Bound, ControlFlow};

use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::sorted_set::{self, Scored, SortedSet, Span};

/// A range of a sorted set.
pub(super) enum Range {
    /// From one rank to another, the last one included. Negative ranks count from the end.
    Ranks(i64, i64),
    Scores(Bound<f64>, Bound<f64>),
    /// By the bytes of members, which should all have the same score.
    Members(Text, Text),
}

/// An end of a range of members.
pub(super) enum Text {
    Least,
    Greatest,
    Included(Vec<u8>),
    Excluded(Vec<u8>),
}

/// The part of a range that is wanted, as in `LIMIT`.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// Negative if nothing is wanted.
    pub(super) offset: i64,
    /// Negative if there is no limit.
    pub(super) count: i64,
}

impl Limit {
    pub(super) const NONE: Limit = Limit { offset: 0, count: -1 };
}

impl Text {
    fn bound(&self) -> Bound<&[u8]> {
        match self {
            Text::Included(member) => Bound::Included(member),
            Text::Excluded(member) => Bound::Excluded(member),
            Text::Least | Text::Greatest => Bound::Unbounded,
        }
    }

    /// Returns whether a range that begins here may hold a member.
    fn is_below(&self, member: &[u8]) -> bool {
        match self {
            Text::Least => true,
            Text::Greatest => false,
            Text::Included(end) => member >= &end[..],
            Text::Excluded(end) => member > &end[..],
        }
    }

    /// Returns whether a range that ends here may hold a member.
    fn is_above(&self, member: &[u8]) -> bool {
        match self {
            Text::Least => false,
            Text::Greatest => true,
            Text::Included(end) => member <= &end[..],
            Text::Excluded(end) => member < &end[..],
        }
    }
}

impl Range {
    /// Returns the members in their order, or in reverse.
    pub(super) fn read(
        &self,
        call: &Call<'_>,
        set: &SortedSet<'_>,
        limit: Limit,
        is_reverse: bool,
    ) -> Result<Vec<Scored>, Refusal> {
        let mut gathered = Gathered::of(call);
        if let Range::Ranks(start, stop) = self {
            return read_ranks(&mut gathered, set, (*start, *stop), is_reverse);
        }
        let Ok(offset) = usize::try_from(limit.offset) else { return Ok(Vec::new()) };
        let count = usize::try_from(limit.count).unwrap_or(usize::MAX);
        match (self, self.span(set)?) {
            (_, Spanned::None) => Ok(Vec::new()),
            (_, Spanned::Whole(span)) => {
                collected(&mut gathered, set.range(&span, is_reverse)?.skip(offset).take(count))
            }
            (Range::Members(low, high), Spanned::Mixed) => {
                let begins = |member: &[u8]| if is_reverse { high.is_above(member) } else { low.is_below(member) };
                let goes_on = |member: &[u8]| if is_reverse { low.is_below(member) } else { high.is_above(member) };
                // Any number of members may be before the range.
                let mut before = Gathered::of(call);
                let read = |item: Result<Scored, Refusal>| {
                    let scored = item?;
                    before.read(scored.0.len())?;
                    Ok(scored)
                };
                let all = set.range(&sorted_set::everything(), is_reverse)?.map(read);
                let all = all.skip_while(|item| item.as_ref().is_ok_and(|(member, _)| !begins(member)));
                let some = all.take_while(|item| item.as_ref().map_or(true, |(member, _)| goes_on(member)));
                collected(&mut gathered, some.skip(offset).take(count))
            }
            (_, Spanned::Mixed) => Ok(Vec::new()),
        }
    }

    /// Counts the members.
    pub(super) fn count(&self, call: &Call<'_>, set: &SortedSet<'_>) -> Result<u64, Refusal> {
        match self.span(set)? {
            Spanned::None => Ok(0),
            Spanned::Whole(span) => set.count(&span),
            Spanned::Mixed => Ok(self.read(call, set, Limit::NONE, false)?.len() as u64),
        }
    }

    fn span(&self, set: &SortedSet<'_>) -> Result<Spanned, Refusal> {
        let span = match self {
            Range::Ranks(..) => Some(sorted_set::everything()),
            Range::Scores(low, high) => sorted_set::scores(*low, *high),
            Range::Members(Text::Greatest, _) | Range::Members(_, Text::Least) => None,
            Range::Members(low, high) => {
                let (first, last) = (end_of(set, false)?, end_of(set, true)?);
                let (Some((first, lowest)), Some((last, highest))) = (first, last) else { return Ok(Spanned::None) };
                if lowest != highest {
                    // The order is then that of scores, and the reply that of Redis, as far as it is defined.
                    let is_in = low.is_below(&last) && high.is_above(&first);
                    return Ok(if is_in { Spanned::Mixed } else { Spanned::None });
                }
                sorted_set::members(lowest, low.bound(), high.bound())
            }
        };
        Ok(span.map_or(Spanned::None, Spanned::Whole))
    }
}

/// The elements of a range.
enum Spanned {
    None,
    Whole(Span),
    /// The range is one of members, and these have several scores.
    Mixed,
}

/// Returns the first or last member.
fn end_of(set: &SortedSet<'_>, is_last: bool) -> Result<Option<Scored>, Refusal> {
    set.range(&sorted_set::everything(), is_last)?.next().transpose()
}

/// Reads from the nearer end.
fn read_ranks(
    gathered: &mut Gathered,
    set: &SortedSet<'_>,
    (start, stop): (i64, i64),
    is_reverse: bool,
) -> Result<Vec<Scored>, Refusal> {
    let Some(ranks) = Ranks::of(set, (start, stop)) else { return Ok(Vec::new()) };
    let all = set.range(&sorted_set::everything(), is_reverse != ranks.is_from_end)?;
    let mut read = collected(gathered, all.skip(ranks.skipped).take(ranks.count))?;
    if ranks.is_from_end {
        read.reverse();
    }
    Ok(read)
}

/// The members between two ranks that a set has.
pub(super) struct Ranks {
    /// They are nearer to the end, from which they are read.
    pub(super) is_from_end: bool,
    /// The members before them.
    skipped: usize,
    pub(super) count: usize,
}

impl Ranks {
    /// Returns those that a client means, if there are any.
    pub(super) fn of(set: &SortedSet<'_>, (start, stop): (i64, i64)) -> Option<Ranks> {
        let count = set.len() as i64;
        let from_start = |rank: i64| if rank < 0 { rank.saturating_add(count) } else { rank };
        let (start, stop) = (from_start(start).max(0), from_start(stop).min(count - 1));
        let after = count - 1 - stop;
        let (skipped, is_from_end) = (start.min(after) as usize, after < start);
        (start <= stop).then(|| Ranks { is_from_end, skipped, count: (stop - start + 1) as usize })
    }

    /// Calls `write` with each of them in the order in which they are read.
    pub(super) fn each(
        &self,
        set: &SortedSet<'_>,
        is_reverse: bool,
        mut write: impl FnMut(&[u8], f64) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut number = 0;
        set.each(&sorted_set::everything(), is_reverse != self.is_from_end, |member, score| {
            number += 1;
            if number > self.skipped {
                write(member, score)?;
            }
            Ok(if number < self.skipped + self.count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        if number == self.skipped + self.count { Ok(()) } else { Err(FixedError::DamagedCollection.into()) }
    }
}

/// Collects members for a reply.
fn collected(
    gathered: &mut Gathered,
    members: impl Iterator<Item = Result<Scored, Refusal>>,
) -> Result<Vec<Scored>, Refusal> {
    let mut all = Vec::new();
    for item in members {
        let scored = item?;
        gathered.read_and_add(scored.0.len() + size_of::<Scored>())?;
        all.push(scored);
    }
    Ok(all)
}
