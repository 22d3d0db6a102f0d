//! Replies with members and scores, and the replacement of keys by them.

use super::super::members;
use crate::errors::Refusal;
use crate::execution::call::Call;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::{Scored, SortedSetEdit};
use crate::observers::events::ZSET;

/// Replies with members, or with pairs: in version 3 of the protocol each pair is an array.
pub(super) fn answer(call: &mut Call<'_>, members: &[Scored], has_scores: bool) {
    let is_nested = has_scores && call.reply.protocol() == resp::Protocol::Resp3;
    call.reply.array(if has_scores && !is_nested { 2 * members.len() } else { members.len() });
    for (member, score) in members {
        if is_nested {
            call.reply.array(2);
        }
        call.reply.bulk(member);
        if has_scores {
            call.reply.double(*score);
        }
    }
}

/// Puts a sorted set with these members as the first key, which replaces a value of any type, and replies with their
/// number.
pub(super) fn store(call: &mut Call<'_>, members: &[Scored], event: &'static str) -> Result<(), Refusal> {
    members::store(call, 1, (CollectionType::SortedSet, members.len()), (ZSET, event), |edit, changes| {
        let mut edit = SortedSetEdit::of(edit);
        members.iter().try_for_each(|(member, score)| edit.put(member, None, *score))?;
        edit.finish(changes)
    })
}
