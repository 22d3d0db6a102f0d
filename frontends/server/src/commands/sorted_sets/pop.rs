//! ZPOPMIN, ZPOPMAX and ZMPOP, and those that wait for a member.

use super::super::blocking::{deadline_of, first_source, wait};
use super::super::counts::{self, Pops};
use super::arguments::sorted_set;
use super::range::{Limit, Range};
use super::remove::remove;
use super::replies;
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::{Scored, SortedSet};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions![bzmpop, bzpopmax, bzpopmin, zmpop, zpopmax, zpopmin];

/// An end of a sorted set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
    /// Parses `MIN` or `MAX`.
    fn of(argument: &[u8]) -> Option<End> {
        match argument.to_ascii_lowercase().as_slice() {
            b"min" => Some(End::Min),
            b"max" => Some(End::Max),
            _ => None,
        }
    }

    fn event(self) -> &'static str {
        if self == End::Min { "zpopmin" } else { "zpopmax" }
    }
}

/// Removes and returns the first members at an end of the sorted set whose key is argument number `key`.
fn pop(call: &Call<'_>, key: usize, set: SortedSet<'_>, end: End, count: u64) -> Result<Vec<Scored>, Refusal> {
    let Some(last) = count.min(set.len()).checked_sub(1) else { return Ok(Vec::new()) };
    let members = Range::Ranks(0, last as i64).read(call, &set, Limit::NONE, end == End::Max)?;
    remove(call, key, set, &members, end.event())?;
    Ok(members)
}

fn zpopmin(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop_from_one(call, End::Min)
}

fn zpopmax(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop_from_one(call, End::Max)
}

fn pop_from_one(call: &mut Call<'_>, end: End) -> Result<(), Refusal> {
    if call.request.len() > 3 {
        return Err(Refusal::Syntax);
    }
    let has_count = call.request.len() == 3;
    let count = if has_count { counts::at_least(0, call.argument(2), Refusal::Negative)? } else { 1 };
    let members = sorted_set(call, 1)?.map_or(Ok(Vec::new()), |set| pop(call, 1, set, end, count))?;
    match members.first() {
        // Without a count the only pair is not an array of its own in either version of the protocol.
        Some((member, score)) if !has_count => {
            call.reply.array(2);
            call.reply.bulk(member);
            call.reply.double(*score);
        }
        _ => replies::answer(call, &members, true),
    }
    Ok(())
}

fn zmpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pops = Pops::of(call, 1, End::of)?;
    for key in pops.keys {
        let Some(set) = sorted_set(call, key)? else { continue };
        let members = pop(call, key, set, pops.end, pops.count)?;
        answer_nested(call, key, &members);
        return Ok(());
    }
    call.reply.null_array();
    Ok(())
}

/// Replies with a key and its members, each in an array with its score.
fn answer_nested(call: &mut Call<'_>, key: usize, members: &[Scored]) {
    call.reply.array(2);
    call.reply.bulk(call.argument(key));
    call.reply.array(members.len());
    for (member, score) in members {
        call.reply.array(2);
        call.reply.bulk(member);
        call.reply.double(*score);
    }
}

fn bzpopmin(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop_or_wait(call, End::Min)
}

fn bzpopmax(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop_or_wait(call, End::Max)
}

fn pop_or_wait(call: &mut Call<'_>, end: End) -> Result<(), Refusal> {
    let last = call.request.len() - 1;
    let deadline = deadline_of(call.argument(last))?;
    match first_source(call, 1..last, CollectionType::SortedSet)? {
        Some((key, found)) => {
            let members = pop(call, key, SortedSet::of(found), end, 1)?;
            call.reply.array(1 + 2 * members.len());
            call.reply.bulk(call.argument(key));
            for (member, score) in &members {
                call.reply.bulk(member);
                call.reply.double(*score);
            }
        }
        None => wait(call, CollectionType::SortedSet, 1..last, deadline),
    }
    Ok(())
}

fn bzmpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pops = Pops::of(call, 2, End::of)?;
    let deadline = deadline_of(call.argument(1))?;
    match first_source(call, pops.keys.clone(), CollectionType::SortedSet)? {
        Some((key, found)) => {
            let members = pop(call, key, SortedSet::of(found), pops.end, pops.count)?;
            answer_nested(call, key, &members);
        }
        None => wait(call, CollectionType::SortedSet, pops.keys, deadline),
    }
    Ok(())
}
