//! Replies with members and scores, and the replacement of keys by them.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;
use crate::keyspace::collections::sorted_set::{Scored, SortedSetEdit};
use crate::keyspace::collections::{Changes, CollectionType};
use crate::observers::events::{GENERIC, ZSET};

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
/// number. Without members the key is deleted.
pub(super) fn store(call: &mut Call<'_>, members: &[Scored], event: &'static str) -> Result<(), Refusal> {
    let (is_string, replaced) = (call.store().contains(call.key(1))?, call.found(1)?);
    let mut changes = Changes::default();
    if is_string {
        changes.delete(call.key(1).into_owned());
    }
    replaced.iter().for_each(|replaced| replaced.delete(&mut changes));
    if !members.is_empty() {
        let view = call.view().ok_or(FixedError::NoCollectionsYet)?;
        let mut edit = SortedSetEdit::of(view.make(call.argument(1), CollectionType::SortedSet)?);
        members.iter().try_for_each(|(member, score)| edit.put(member, None, *score))?;
        edit.finish(&mut changes)?;
    }
    if changes != Changes::default() {
        changes.write(call.store())?;
        match members.is_empty() {
            true => call.changed(GENERIC, "del", 1),
            false => call.changed(ZSET, event, 1),
        }
    }
    call.reply.integer(members.len() as i64);
    Ok(())
}
