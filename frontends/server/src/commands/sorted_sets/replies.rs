//! Replies with members and scores, and the replacement of keys by them.

use resp::Reply;

use super::super::members;
use crate::errors::Refusal;
use crate::execution::call::Call;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::sorted_set::{Scored, SortedSetEdit};
use crate::observers::events::ZSET;

/// Replies with members, or with pairs: in version 3 of the protocol each pair is an array.
pub(super) fn answer(call: &mut Call<'_>, members: &[Scored], has_scores: bool) {
    begin(&mut call.reply, members.len(), has_scores);
    members.iter().for_each(|(member, score)| write(&mut call.reply, member, *score, has_scores));
}

fn is_nested(reply: &Reply<'_>, has_scores: bool) -> bool {
    has_scores && reply.protocol() == resp::Protocol::Resp3
}

/// Begins such a reply with this number of members.
pub(super) fn begin(reply: &mut Reply<'_>, count: usize, has_scores: bool) {
    reply.array(if has_scores && !is_nested(reply, has_scores) { 2 * count } else { count });
}

/// Writes one of its members.
pub(super) fn write(reply: &mut Reply<'_>, member: &[u8], score: f64, has_scores: bool) {
    if is_nested(reply, has_scores) {
        reply.array(2);
    }
    reply.bulk(member);
    if has_scores {
        reply.double(score);
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
