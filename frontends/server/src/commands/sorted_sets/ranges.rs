//! ZRANGE and its older forms, and ZRANGESTORE.

use super::arguments::sorted_set;
use super::range::{Limit, Range, Ranks};
use super::{arguments, replies};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::sorted_set::SortedSet;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions![zrange, zrangebylex, zrangebyscore, zrangestore, zrevrange, zrevrangebylex, zrevrangebyscore,];

/// How the ends of a range are given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// A request for a range.
struct Query {
    /// The index of the key, which the ends follow.
    key: usize,
    /// `None` if options may say so.
    by: Option<By>,
    /// `None` if an option may say so.
    is_reverse: Option<bool>,
    accepts_scores: bool,
}

/// The parsed request.
struct Wanted {
    range: Range,
    limit: Limit,
    is_reverse: bool,
    has_scores: bool,
}

impl Query {
    fn parse(mut self, call: &Call<'_>) -> Result<Wanted, Refusal> {
        let (mut limit, mut has_scores) = (Limit::NONE, false);
        let mut index = self.key + 3;
        while index < call.request.len() {
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"withscores" if self.accepts_scores => has_scores = true,
                b"limit" if index + 2 < call.request.len() => {
                    limit = Limit { offset: call.integer(index + 1)?, count: call.integer(index + 2)? };
                    index += 2;
                }
                b"rev" if self.is_reverse.is_none() => self.is_reverse = Some(true),
                b"bylex" if self.by.is_none() => self.by = Some(By::Member),
                b"byscore" if self.by.is_none() => self.by = Some(By::Score),
                _ => return Err(Refusal::Syntax),
            }
            index += 1;
        }
        let (by, is_reverse) = (self.by.unwrap_or(By::Rank), self.is_reverse.unwrap_or(false));
        if limit.count != -1 && by == By::Rank {
            return Err(FixedError::LimitOfRanks.into());
        }
        if has_scores && by == By::Member {
            return Err(FixedError::ScoresByLex.into());
        }
        let (first, second) = (call.argument(self.key + 1), call.argument(self.key + 2));
        let (min, max) = if is_reverse { (second, first) } else { (first, second) };
        let range = match by {
            By::Rank => Range::Ranks(call.integer(self.key + 1)?, call.integer(self.key + 2)?),
            By::Score => arguments::scores(min, max)?,
            By::Member => arguments::members(min, max)?,
        };
        Ok(Wanted { range, limit, is_reverse, has_scores })
    }
}

fn answer(call: &mut Call<'_>, by: Option<By>, is_reverse: Option<bool>) -> Result<(), Refusal> {
    let wanted = Query { key: 1, by, is_reverse, accepts_scores: true }.parse(call)?;
    let set = sorted_set(call, 1)?;
    if let (Some(set), Range::Ranks(start, stop)) = (&set, &wanted.range)
        && let Some(ranks) = Ranks::of(set, (*start, *stop)).filter(|ranks| !ranks.is_from_end)
    {
        return answer_ranks(call, set, &ranks, &wanted);
    }
    let read = |set| wanted.range.read(call, &set, wanted.limit, wanted.is_reverse);
    let members = set.map_or(Ok(Vec::new()), read)?;
    replies::answer(call, &members, wanted.has_scores);
    Ok(())
}

/// Replies with members as they are read.
fn answer_ranks(call: &mut Call<'_>, set: &SortedSet<'_>, ranks: &Ranks, wanted: &Wanted) -> Result<(), Refusal> {
    let mut gathered = Gathered::of(call);
    replies::begin(&mut call.reply, ranks.count, wanted.has_scores);
    ranks.each(set, wanted.is_reverse, |member, score| {
        gathered.read_and_add(member.len() + size_of::<f64>())?;
        replies::write(&mut call.reply, member, score, wanted.has_scores);
        Ok(())
    })
}

fn zrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, None, None)
}

fn zrevrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Some(By::Rank), Some(true))
}

fn zrangebyscore(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Some(By::Score), Some(false))
}

fn zrevrangebyscore(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Some(By::Score), Some(true))
}

fn zrangebylex(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Some(By::Member), Some(false))
}

fn zrevrangebylex(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Some(By::Member), Some(true))
}

fn zrangestore(call: &mut Call<'_>) -> Result<(), Refusal> {
    let wanted = Query { key: 2, by: None, is_reverse: None, accepts_scores: false }.parse(call)?;
    let read = |set| wanted.range.read(call, &set, wanted.limit, wanted.is_reverse);
    let members = sorted_set(call, 2)?.map_or(Ok(Vec::new()), read)?;
    replies::store(call, &members, "zrangestore")
}
