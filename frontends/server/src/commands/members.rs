//! What hashes, sets and sorted sets have in common: members with a random order, which SCAN goes through and random
//! ones are taken from.

use std::collections::BTreeMap;
use std::ops::Bound;

use hikv::Item;

use super::scan::{self, Options};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, REPLY_BYTES_MAX};
use crate::keyspace::collections::layout::member_of;
use crate::keyspace::collections::{Collection, CollectionType, sorted_set};

/// Collections of at most this many members are read entirely by SCAN, as in Redis, and for random members.
const SMALL_COUNT_MAX: u64 = 128;
/// The number of members among which a random one is chosen.
const NEIGHBOR_COUNT: usize = 16;
/// The number of attempts for each of several different random members. If these are a third of all, two are enough.
const ATTEMPT_COUNT: u64 = 8;

/// Returns all members, with their values.
pub(super) fn all(collection: &Collection<'_>) -> Result<Vec<Item>, Refusal> {
    let (mut members, mut len_bytes) = (Vec::with_capacity(collection.len().min(1 << 20) as usize), 0);
    for item in from(collection, 0)? {
        let (element, value) = item?;
        len_bytes += element.len() + value.len();
        if len_bytes > REPLY_BYTES_MAX {
            return Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, accepts_limit: false });
        }
        members.push((member_of(&element).1.to_vec(), value));
    }
    Ok(members)
}

/// Answers HSCAN, SSCAN and ZSCAN: the cursor is the hash of the next member.
pub(super) fn scan(call: &mut Call<'_>, collection_type: CollectionType) -> Result<(), Refusal> {
    let cursor = scan::cursor_of(call.request.argument(2))?;
    let (mut next, mut shown) = (0, Vec::new());
    if let Some(collection) = call.collection(1, collection_type)? {
        // As in Redis, they may be wrong if there is no such key.
        let options = Options::of(call.request.arguments().skip(2), false)?;
        let count = if collection.len() <= SMALL_COUNT_MAX { u64::MAX } else { options.count() };
        // No member has a greater hash.
        let start = u32::try_from(cursor).ok();
        let mut seen = (0, None);
        for item in start.map(|start| from(&collection, start)).transpose()?.into_iter().flatten() {
            let (element, value) = item?;
            let (hash, member) = member_of(&element);
            if seen.0 >= count && seen.1 != Some(hash) {
                next = hash;
                break;
            }
            seen = (seen.0 + 1, Some(hash));
            if options.matches(member) {
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
    let shown = |(element, value): Item| (member_of(&element).1.to_vec(), value);
    if collection.len() <= SMALL_COUNT_MAX {
        let index = fastrand::u64(..collection.len().max(1));
        return Ok(from(collection, 0)?.nth(index as usize).transpose()?.map(shown));
    }
    let mut near = from(collection, fastrand::u32(..))?.take(NEIGHBOR_COUNT).collect::<Result<Vec<_>, _>>()?;
    let missing = NEIGHBOR_COUNT - near.len();
    near.extend(from(collection, 0)?.take(missing).collect::<Result<Vec<_>, _>>()?);
    Ok((!near.is_empty()).then(|| shown(near.swap_remove(fastrand::usize(..near.len())))))
}

/// Returns different random members with their values, in a random order.
pub(super) fn random_different(collection: &Collection<'_>, count: u64) -> Result<Vec<Item>, Refusal> {
    let mut members = Vec::new();
    if count.saturating_mul(3) >= collection.len() || collection.len() <= SMALL_COUNT_MAX {
        members = all(collection)?;
        fastrand::shuffle(&mut members);
        members.truncate(count as usize);
        return Ok(members);
    }
    let mut chosen = BTreeMap::new();
    for _ in 0..count.saturating_mul(ATTEMPT_COUNT) {
        if chosen.len() as u64 == count {
            break;
        }
        let Some((member, value)) = random(collection)? else { break };
        chosen.insert(member, value);
    }
    if (chosen.len() as u64) < count {
        // Many members have the same hash, which only a client can have chosen.
        members = all(collection)?;
    } else {
        members.extend(chosen);
    }
    fastrand::shuffle(&mut members);
    members.truncate(count as usize);
    Ok(members)
}

/// Calls `each` with random members, which may be equal, with their values, until it returns false.
fn random_equal(collection: &Collection<'_>, count: u64, mut each: impl FnMut(&Item) -> bool) -> Result<(), Refusal> {
    let members = if collection.len() <= SMALL_COUNT_MAX.max(count) { all(collection)? } else { Vec::new() };
    for _ in 0..count {
        let chosen = match members.is_empty() {
            true => random(collection)?,
            false => Some(members[fastrand::usize(..members.len())].clone()),
        };
        if !chosen.is_some_and(|item| each(&item)) {
            break;
        }
    }
    Ok(())
}

/// Returns random members with their values: different ones, or if `count` is negative perhaps equal ones.
pub(super) fn some(collection: &Collection<'_>, count: i64) -> Result<Vec<Item>, Refusal> {
    if count >= 0 {
        return random_different(collection, count as u64);
    }
    let (mut members, mut len_bytes) = (Vec::new(), 0);
    random_equal(collection, count.unsigned_abs(), |item| {
        len_bytes += item.0.len() + item.1.len() + size_of_val(item);
        members.push(item.clone());
        len_bytes <= REPLY_BYTES_MAX
    })?;
    if len_bytes > REPLY_BYTES_MAX {
        return Err(Refusal::ReplyLength { len_bytes_max: REPLY_BYTES_MAX, accepts_limit: false });
    }
    Ok(members)
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
