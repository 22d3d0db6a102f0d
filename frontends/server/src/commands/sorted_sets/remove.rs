//! ZREM and the removal of ranges.

use super::arguments::{self, sorted_set};
use super::range::{Limit, Range};
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::Changes;
use crate::keyspace::collections::sorted_set::{Scored, SortedSet};
use crate::observers::events::{GENERIC, ZSET};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions![zrem, zremrangebylex, zremrangebyrank, zremrangebyscore];

/// Removes these members of the sorted set whose key is argument number `key`, in one step. If none is left, the key is
/// deleted with all elements at once.
pub(super) fn remove(
    call: &Call<'_>,
    key: usize,
    set: SortedSet<'_>,
    members: &[Scored],
    event: &'static str,
) -> Result<(), Refusal> {
    let (count, mut changes) = (members.len() as u64, Changes::default());
    if count == 0 {
        return Ok(());
    }
    let is_emptied = count == set.len();
    if is_emptied {
        set.delete(&mut changes);
    } else {
        let mut edit = set.edit();
        members.iter().for_each(|(member, score)| edit.remove(member, *score));
        edit.finish(&mut changes)?;
    }
    changes.write(call.store())?;
    call.changed_key(count, ZSET, event, call.session.db, call.argument(key));
    if is_emptied {
        call.report(GENERIC, "del", key);
    }
    Ok(())
}

fn zrem(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(set) = sorted_set(call, 1)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (mut edit, mut count) = (set.edit(), 0);
    for member in call.request.arguments().skip(1) {
        if let Some(score) = edit.score(member)? {
            edit.remove(member, score);
            count += 1;
        }
    }
    let is_emptied = edit.len() == 0;
    edit.write()?;
    if count > 0 {
        call.changed_key(count, ZSET, "zrem", call.session.db, call.argument(1));
    }
    if is_emptied {
        call.report(GENERIC, "del", 1);
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn remove_range(call: &mut Call<'_>, range: &Range, event: &'static str) -> Result<(), Refusal> {
    let mut count = 0;
    if let Some(set) = sorted_set(call, 1)? {
        let members = range.read(call, &set, Limit::NONE, false)?;
        count = members.len();
        remove(call, 1, set, &members, event)?;
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn zremrangebyrank(call: &mut Call<'_>) -> Result<(), Refusal> {
    let range = Range::Ranks(call.integer(2)?, call.integer(3)?);
    remove_range(call, &range, "zremrangebyrank")
}

fn zremrangebyscore(call: &mut Call<'_>) -> Result<(), Refusal> {
    let range = arguments::scores(call.argument(2), call.argument(3))?;
    remove_range(call, &range, "zremrangebyscore")
}

fn zremrangebylex(call: &mut Call<'_>) -> Result<(), Refusal> {
    let range = arguments::members(call.argument(2), call.argument(3))?;
    remove_range(call, &range, "zremrangebylex")
}
