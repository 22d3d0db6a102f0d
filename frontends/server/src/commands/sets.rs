//! Sets.

use std::collections::BTreeSet;

use super::{counts, members};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::layout::hashed;
use crate::keyspace::collections::{Changes, Collection, CollectionType, Edit};
use crate::observers::events::{GENERIC, SET};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    sadd,
    scard,
    sdiff,
    sdiffstore,
    sinter,
    sintercard,
    sinterstore,
    sismember,
    smembers,
    smismember,
    smove,
    spop,
    srandmember,
    srem,
    sscan,
    sunion,
    sunionstore,
];

fn set<'a>(call: &Call<'a>, index: usize) -> Result<Option<Collection<'a>>, Refusal> {
    call.collection(index, CollectionType::Set)
}

fn sadd(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (mut edit, mut count) = (call.edit(1, CollectionType::Set)?, 0);
    for index in 2..call.request.len() {
        count += u64::from(edit.put_if_absent(hashed(call.argument(index)), Vec::new())?);
    }
    if count > 0 {
        edit.write()?;
        call.changed_key(count, SET, "sadd", call.session.db, call.argument(1));
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn srem(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(set) = set(call, 1)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (mut edit, mut count) = (set.edit(), 0);
    for index in 2..call.request.len() {
        count += u64::from(edit.remove(hashed(call.argument(index)))?);
    }
    write_removal(call, edit, count, "srem")?;
    call.reply.integer(count as i64);
    Ok(())
}

/// Writes the removal of `count` members, and reports it.
fn write_removal(call: &Call<'_>, mut edit: Edit<'_>, count: u64, event: &'static str) -> Result<(), Refusal> {
    if count == 0 {
        return Ok(());
    }
    let is_empty = edit.record().count == 0;
    edit.write()?;
    call.changed_key(count, SET, event, call.session.db, call.argument(1));
    if is_empty {
        call.report(GENERIC, "del", 1);
    }
    Ok(())
}

fn scard(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = set(call, 1)?.map_or(0, |set| set.len());
    call.reply.integer(count as i64);
    Ok(())
}

fn sismember(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_there = set(call, 1)?.map_or(Ok(false), |set| set.contains(&hashed(call.argument(2))))?;
    call.reply.integer(is_there.into());
    Ok(())
}

fn smismember(call: &mut Call<'_>) -> Result<(), Refusal> {
    let set = set(call, 1)?;
    call.reply.array(call.request.len() - 2);
    for index in 2..call.request.len() {
        let is_there = set.as_ref().map_or(Ok(false), |set| set.contains(&hashed(call.argument(index))))?;
        call.reply.integer(is_there.into());
    }
    Ok(())
}

fn smembers(call: &mut Call<'_>) -> Result<(), Refusal> {
    let set = set(call, 1)?;
    members::answer(call, set.as_ref(), |reply, count| reply.set(count), |reply, member, _| reply.bulk(member))
}

fn sscan(call: &mut Call<'_>) -> Result<(), Refusal> {
    members::scan(call, CollectionType::Set)
}

fn srandmember(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 2 {
        match set(call, 1)?.map_or(Ok(None), |set| members::random(&set))? {
            Some((member, _)) => call.reply.bulk(&member),
            None => call.reply.null_bulk(),
        }
        return Ok(());
    }
    if call.request.len() > 3 {
        return Err(Refusal::Syntax);
    }
    let count = members::random_count(call, 1)?;
    let members = set(call, 1)?.map_or(Ok(Vec::new()), |set| members::some(call, &set, count))?;
    call.reply.array(members.len());
    members.iter().for_each(|(member, _)| call.reply.bulk(member));
    Ok(())
}

fn spop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = match call.request.len() {
        2 => None,
        3 => Some(counts::at_least(0, call.argument(2), Refusal::Negative)?),
        _ => return Err(Refusal::Syntax),
    };
    let set = set(call, 1)?;
    let members = match (&set, count) {
        (None, _) => Vec::new(),
        (Some(set), None) => members::random(set)?.into_iter().collect(),
        (Some(set), Some(count)) => members::random_different(call, set, count)?,
    };
    if let Some(set) = set {
        let mut edit = set.edit();
        for (member, _) in &members {
            edit.remove(hashed(member))?;
        }
        write_removal(call, edit, members.len() as u64, "spop")?;
    }
    match count {
        Some(_) => call.reply.set(members.len()),
        None if members.is_empty() => call.reply.null_bulk(),
        None => {}
    }
    members.iter().for_each(|(member, _)| call.reply.bulk(member));
    Ok(())
}

/// Moves a member in one step.
fn smove(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(from) = set(call, 1)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (member, to) = (hashed(call.argument(3)), set(call, 2)?);
    let is_there = from.contains(&member)?;
    if !is_there || call.argument(1) == call.argument(2) {
        call.reply.integer(is_there.into());
        return Ok(());
    }
    let mut to = match to {
        Some(to) => to.edit(),
        None => call.edit(2, CollectionType::Set)?,
    };
    let (mut from, mut changes) = (from.edit(), Changes::default());
    from.remove(member.clone())?;
    let is_added = to.put_if_absent(member, Vec::new())?;
    let is_empty = from.record().count == 0;
    from.finish(&mut changes)?;
    to.finish(&mut changes)?;
    changes.write(call.store())?;
    call.changed(SET, "srem", 1);
    if is_empty {
        call.report(GENERIC, "del", 1);
    }
    if is_added {
        call.changed(SET, "sadd", 2);
    }
    call.reply.integer(1);
    Ok(())
}

/// An operation on several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Union,
    Difference,
}

/// Returns the sets with these argument numbers; `None` for a missing one.
fn sets<'a>(call: &Call<'a>, indices: impl Iterator<Item = usize>) -> Result<Vec<Option<Collection<'a>>>, Refusal> {
    indices.map(|index| set(call, index)).collect()
}

/// Returns the members of the result, at most `limit`.
fn result_of(
    call: &Call<'_>,
    operation: Operation,
    sets: Vec<Option<Collection<'_>>>,
    limit: usize,
) -> Result<BTreeSet<Vec<u8>>, Refusal> {
    let (mut result, mut gathered) = (BTreeSet::new(), Gathered::of(call));
    match operation {
        Operation::Union => {
            for set in sets.iter().flatten() {
                members::each(set, &mut gathered, |member, _, gathered| {
                    if !result.contains(member) {
                        gathered.add(member.len())?;
                        result.insert(member.to_vec());
                    }
                    Ok(())
                })?;
            }
        }
        Operation::Intersection => {
            let Some(mut sets) = sets.into_iter().collect::<Option<Vec<_>>>() else { return Ok(BTreeSet::new()) };
            sets.sort_by_key(Collection::len);
            let Some((least, others)) = sets.split_first() else { return Ok(BTreeSet::new()) };
            for item in least.elements()? {
                let (element, _) = item?;
                gathered.read(element.len())?;
                if is_in_all(&element, others)? {
                    gathered.add(element.len())?;
                    result.insert(member_of(&element));
                    if result.len() == limit {
                        break;
                    }
                }
            }
        }
        Operation::Difference => {
            let Some((Some(first), others)) = sets.split_first() else { return Ok(BTreeSet::new()) };
            for item in first.elements()? {
                let (element, _) = item?;
                gathered.read(element.len())?;
                if !is_in_any(&element, others)? {
                    gathered.add(element.len())?;
                    result.insert(member_of(&element));
                }
            }
        }
    }
    Ok(result)
}

fn member_of(element: &[u8]) -> Vec<u8> {
    crate::keyspace::collections::layout::member_of(element).1.to_vec()
}

fn is_in_all(element: &[u8], sets: &[Collection<'_>]) -> Result<bool, Refusal> {
    for set in sets {
        if !set.contains(element)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_in_any(element: &[u8], sets: &[Option<Collection<'_>>]) -> Result<bool, Refusal> {
    for set in sets.iter().flatten() {
        if set.contains(element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn answer(call: &mut Call<'_>, operation: Operation) -> Result<(), Refusal> {
    let result = result_of(call, operation, sets(call, 1..call.request.len())?, usize::MAX)?;
    call.reply.set(result.len());
    result.iter().for_each(|member| call.reply.bulk(member));
    Ok(())
}

fn sinter(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Intersection)
}

fn sunion(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Union)
}

fn sdiff(call: &mut Call<'_>) -> Result<(), Refusal> {
    answer(call, Operation::Difference)
}

fn store(call: &mut Call<'_>, operation: Operation, event: &'static str) -> Result<(), Refusal> {
    let result = result_of(call, operation, sets(call, 2..call.request.len())?, usize::MAX)?;
    members::store(call, 1, (CollectionType::Set, result.len()), (SET, event), |mut edit, changes| {
        for member in result {
            edit.put_if_absent(hashed(&member), Vec::new())?;
        }
        edit.finish(changes)
    })
}

fn sinterstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Intersection, "sinterstore")
}

fn sunionstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Union, "sunionstore")
}

fn sdiffstore(call: &mut Call<'_>) -> Result<(), Refusal> {
    store(call, Operation::Difference, "sdiffstore")
}

fn sintercard(call: &mut Call<'_>) -> Result<(), Refusal> {
    let key_count = counts::at_least(1, call.argument(1), FixedError::KeyCount)?;
    let end = key_count.saturating_add(2) as usize;
    if end > call.request.len() {
        return Err(Refusal::Message("Number of keys can't be greater than number of args".into()));
    }
    let (mut limit, mut options) = (usize::MAX, call.request.arguments().skip(end - 1));
    while let Some(name) = options.next() {
        let value = options.next().filter(|_| name.eq_ignore_ascii_case(b"limit")).ok_or(Refusal::Syntax)?;
        limit = match counts::at_least(0, value, FixedError::NegativeLimit)? {
            0 => usize::MAX,
            limit => limit as usize,
        };
    }
    let count = result_of(call, Operation::Intersection, sets(call, 2..end)?, limit)?.len();
    call.reply.integer(count as i64);
    Ok(())
}
