//! ZPOPMIN, ZPOPMAX and ZMPOP.

use super::arguments::sorted_set;
use super::range::{Limit, Range};
use super::remove::remove;
use super::{arguments, replies};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::sorted_set::{Scored, SortedSet};

pub(super) const FUNCTIONS: &[(&str, Function)] = functions![zmpop, zpopmax, zpopmin];

/// An end of a sorted set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

impl End {
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
    let count = if has_count { arguments::count(call.argument(2), 0, Refusal::Negative)? } else { 1 };
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
    let key_count = arguments::count(call.argument(1), 1, FixedError::KeyCount)?;
    let option = usize::try_from(key_count).ok().and_then(|count| count.checked_add(2));
    let option = option.filter(|option| *option < call.request.len()).ok_or(Refusal::Syntax)?;
    let end = match call.argument(option).to_ascii_lowercase().as_slice() {
        b"min" => End::Min,
        b"max" => End::Max,
        _ => return Err(Refusal::Syntax),
    };
    let count = match call.request.len() - option - 1 {
        0 => 1,
        2 if call.argument(option + 1).eq_ignore_ascii_case(b"count") => {
            arguments::count(call.argument(option + 2), 1, FixedError::ElementCount)?
        }
        _ => return Err(Refusal::Syntax),
    };
    for key in 2..option {
        let Some(set) = sorted_set(call, key)? else { continue };
        let members = pop(call, key, set, end, count)?;
        call.reply.array(2);
        call.reply.bulk(call.argument(key));
        call.reply.array(members.len());
        for (member, score) in &members {
            call.reply.array(2);
            call.reply.bulk(member);
            call.reply.double(*score);
        }
        return Ok(());
    }
    call.reply.null_array();
    Ok(())
}
