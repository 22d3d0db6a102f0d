//! What hashes, sets and sorted sets have in common: members with a random order, which SCAN goes through and random
//! ones are taken from.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::{Bound, ControlFlow};

use hikv::Item;
use resp::Reply;

use super::scan::{self, Options};
use crate::connections::output::FULL_BYTES;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;
use crate::execution::collections::view_to_make;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::layout::member_of;
use crate::keyspace::collections::{Changes, Collection, CollectionType, Edit, sorted_set};
use crate::observers::events::{Class, GENERIC};

/// Collections of at most this many members are read entirely by SCAN, as in Redis, and for random members.
const SMALL_COUNT_MAX: u64 = 128;
/// The number of members among which a random one is chosen.
const NEIGHBOR_COUNT: usize = 16;
/// The number of attempts for each of several different random members. If these are a third of all, two are enough.
const ATTEMPT_COUNT: u64 = 8;

const EVERYTHING: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// Calls `each` with all members and their values, and counts them as read.
pub(super) fn each(
    collection: &Collection<'_>,
    gathered: &mut Gathered,
    mut each: impl FnMut(&[u8], &[u8], &mut Gathered) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let is_sorted = collection.collection_type() == CollectionType::SortedSet;
    let (start, end) = sorted_set::members_from(0);
    let bounds = if is_sorted { (Bound::Included(&start[..]), Bound::Excluded(&end[..])) } else { EVERYTHING };
    collection.each(bounds, false, |element, value| {
        gathered.read(element.len() + value.len())?;
        let hashed = if is_sorted { element.get(1..).unwrap_or_default() } else { element };
        each(member_of(hashed).1, value, gathered)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Replies with all members: `begin` writes their number, and `write` a member with its value.
pub(super) fn answer(
    call: &mut Call<'_>,
    collection: Option<&Collection<'_>>,
    begin: impl FnOnce(&mut Reply<'_>, usize),
    mut write: impl FnMut(&mut Reply<'_>, &[u8], &[u8]),
) -> Result<(), Refusal> {
    let (mut gathered, mut count) = (Gathered::of(call), 0);
    let Some(collection) = collection else {
        begin(&mut call.reply, 0);
        return Ok(());
    };
    begin(&mut call.reply, collection.len() as usize);
    each(collection, &mut gathered, |member, value, gathered| {
        gathered.add(member.len() + value.len())?;
        count += 1;
        write(&mut call.reply, member, value);
        Ok(())
    })?;
    if count == collection.len() { Ok(()) } else { Err(FixedError::DamagedCollection.into()) }
}

/// Returns all members, with their values, for a reply.
pub(super) fn all(call: &Call<'_>, collection: &Collection<'_>) -> Result<Vec<Item>, Refusal> {
    let mut members = Vec::with_capacity(collection.len().min(1 << 20) as usize);
    each(collection, &mut Gathered::of(call), |member, value, gathered| {
        gathered.add(member.len() + value.len())?;
        members.push((member.to_vec(), value.to_vec()));
        Ok(())
    })?;
    Ok(members)
}

/// Answers HSCAN, SSCAN and ZSCAN: the cursor is the hash of the next member.
pub(super) fn scan(call: &mut Call<'_>, collection_type: CollectionType) -> Result<(), Refusal> {
    let cursor = scan::cursor_of(call.request.argument(2))?;
    let (mut next, mut shown, mut shown_bytes) = (0, Vec::new(), 0);
    if let Some(collection) = call.collection(1, collection_type)? {
        // As in Redis, they may be wrong if there is no such key.
        let options = Options::of(call.request.arguments().skip(2), false)?;
        let count = if collection.len() <= SMALL_COUNT_MAX { u64::MAX } else { options.count() };
        // No member has a greater hash.
        let start = u32::try_from(cursor).ok();
        let (mut seen, mut gathered) = ((0, None), Gathered::of(call));
        for item in start.map(|start| from(&collection, start)).transpose()?.into_iter().flatten() {
            let (element, value) = item?;
            let (hash, member) = member_of(&element);
            if (seen.0 >= count || shown_bytes >= FULL_BYTES) && seen.1 != Some(hash) {
                next = hash;
                break;
            }
            seen = (seen.0 + 1, Some(hash));
            gathered.read(element.len() + value.len())?;
            if options.matches(member) {
                gathered.add(member.len() + value.len())?;
                shown_bytes += member.len() + value.len();
                shown.push((member.to_vec(), value));
            }
        }
    }
    let has_values = collection_type != CollectionType::Set;
    let is_sorted = collection_type == CollectionType::SortedSet;
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(if has_values { 2 * shown.len() } else { shown.len() });
    for (member, value) in shown {
        call.reply.bulk(&member);
        if has_values {
            match is_sorted {
                true => call.reply.bulk(resp::double_text(sorted_set::score_of(&value)?).as_bytes()),
                false => call.reply.bulk(&value),
            }
        }
    }
    Ok(())
}

/// Returns the members from a hash on, as elements that begin with the hash.
fn from<'a>(
    collection: &Collection<'a>,
    hash: u32,
) -> Result<impl Iterator<Item = Result<Item, Refusal>> + use<'a>, Refusal> {
    let is_sorted = collection.collection_type() == CollectionType::SortedSet;
    let (start, end) = sorted_set::members_from(hash);
    let bounds = match is_sorted {
        true => (Bound::Included(&start[..]), Bound::Excluded(&end[..])),
        false => (Bound::Included(&start[1..]), Bound::Unbounded),
    };
    let items = collection.range(bounds, false)?;
    Ok(items.map(move |item| {
        let (element, value) = item?;
        Ok((if is_sorted { sorted_set::hashed_of(element) } else { element }, value))
    }))
}

/// Returns a random member with its value. In a large collection the probabilities differ by a little.
pub(super) fn random(collection: &Collection<'_>) -> Result<Option<Item>, Refusal> {
    let is_small = collection.len() <= SMALL_COUNT_MAX;
    let (hash, number) = match is_small {
        true => (0, fastrand::u64(..collection.len().max(1)) as usize),
        false => (fastrand::u32(..), fastrand::usize(..NEIGHBOR_COUNT)),
    };
    let (mut near, mut chosen) = (from(collection, hash)?, None);
    for _ in 0..=number {
        chosen = near.next();
        if chosen.is_none() {
            near = from(collection, 0)?;
            chosen = near.next();
        }
    }
    Ok(chosen.transpose()?.map(|(element, value)| (member_of(&element).1.to_vec(), value)))
}

/// Returns different random members with their values, in a random order.
pub(super) fn random_different(call: &Call<'_>, collection: &Collection<'_>, count: u64) -> Result<Vec<Item>, Refusal> {
    let (mut chosen, mut gathered) = (BTreeMap::new(), Gathered::of(call));
    let is_most = count.saturating_mul(3) >= collection.len() || collection.len() <= SMALL_COUNT_MAX;
    for _ in 0..if is_most { 0 } else { count.saturating_mul(ATTEMPT_COUNT) } {
        if chosen.len() as u64 == count {
            break;
        }
        let Some((member, value)) = random(collection)? else { break };
        gathered.read(member.len() + value.len())?;
        if let Entry::Vacant(entry) = chosen.entry(member) {
            gathered.add(entry.key().len() + value.len())?;
            entry.insert(value);
        }
    }
    // If there are too few, many members have the same hash, which only a client can have chosen.
    let has_all = !is_most && chosen.len() as u64 == count;
    let mut members = if has_all { chosen.into_iter().collect() } else { all(call, collection)? };
    fastrand::shuffle(&mut members);
    members.truncate(count as usize);
    Ok(members)
}

/// Returns random members with their values, which may be equal.
fn random_equal(call: &Call<'_>, collection: &Collection<'_>, count: u64) -> Result<Vec<Item>, Refusal> {
    let is_most = collection.len() <= SMALL_COUNT_MAX.max(count);
    let all = if is_most { all(call, collection)? } else { Vec::new() };
    let (mut members, mut gathered) = (Vec::new(), Gathered::of(call));
    for _ in 0..count {
        let chosen = if is_most { all.get(fastrand::usize(..all.len().max(1))).cloned() } else { random(collection)? };
        let Some(item) = chosen else { break };
        gathered.read_and_add(item.0.len() + item.1.len() + size_of_val(&item))?;
        members.push(item);
    }
    Ok(members)
}

/// Returns random members with their values: different ones, or if `count` is negative perhaps equal ones.
pub(super) fn some(call: &Call<'_>, collection: &Collection<'_>, count: i64) -> Result<Vec<Item>, Refusal> {
    match u64::try_from(count) {
        Ok(count) => random_different(call, collection, count),
        Err(_) => random_equal(call, collection, count.unsigned_abs()),
    }
}

/// Parses the number of random members, of which `of_each` values are returned: negative if they may be equal.
pub(super) fn random_count(call: &Call<'_>, of_each: i64) -> Result<i64, Refusal> {
    let count = call.integer(2)?;
    if count == i64::MIN {
        return Err(FixedError::OutOfCounts.into());
    }
    let count_max = i64::MAX / of_each;
    if (-count_max..=count_max).contains(&count) { Ok(count) } else { Err(FixedError::OutOfRange.into()) }
}

/// Puts a new collection of this type and with this number of members as the key that is argument number `index`, which
/// replaces a value of any type, in one step, and replies with the number. `fill` adds the members. Without members the
/// key is deleted.
pub(super) fn store<'a>(
    call: &mut Call<'a>,
    index: usize,
    (collection_type, count): (CollectionType, usize),
    (class, event): (Class, &'static str),
    fill: impl FnOnce(Edit<'a>, &mut Changes) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let (is_string, replaced) = (call.store().contains(call.key(index))?, call.found(index)?);
    let mut changes = Changes::default();
    if is_string {
        changes.delete(call.key(index).into_owned());
    }
    replaced.iter().for_each(|replaced| replaced.delete(&mut changes));
    if count > 0 {
        fill(view_to_make(call)?.make(call.argument(index), collection_type)?, &mut changes)?;
    }
    if changes != Changes::default() {
        changes.write(call.store())?;
        match count {
            0 => call.changed(GENERIC, "del", index),
            _ => call.changed(class, event, index),
        }
    }
    call.reply.integer(count as i64);
    Ok(())
}
