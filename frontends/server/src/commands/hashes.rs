//! Hashes.

use super::decimal::Number;
use super::members;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::layout::hashed;
use crate::keyspace::collections::{Collection, CollectionType, Edit};
use crate::observers::events::{GENERIC, HASH};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    hdel,
    hexists,
    hget,
    hgetall,
    hincrby,
    hincrbyfloat,
    hkeys,
    hlen,
    hmget,
    hmset,
    hrandfield,
    hscan,
    hset,
    hsetnx,
    hstrlen,
    hvals,
];

fn hash<'a>(call: &Call<'a>) -> Result<Option<Collection<'a>>, Refusal> {
    call.collection(1, CollectionType::Hash)
}

fn edit<'a>(call: &Call<'a>) -> Result<Edit<'a>, Refusal> {
    call.edit(1, CollectionType::Hash)
}

/// Puts all fields in one step; returns how many are new.
fn put_fields(call: &mut Call<'_>) -> Result<i64, Refusal> {
    let command = call.entry.command.name;
    if !call.request.len().is_multiple_of(2) {
        return Err(Refusal::ArgumentCount { command });
    }
    let (mut edit, mut count) = (edit(call)?, 0);
    for index in (2..call.request.len()).step_by(2) {
        let is_new = edit.put(hashed(call.argument(index)), call.argument(index + 1).to_vec())?;
        count += i64::from(is_new);
    }
    edit.write()?;
    call.changed(HASH, "hset", 1);
    Ok(count)
}

fn hset(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = put_fields(call)?;
    call.reply.integer(count);
    Ok(())
}

fn hmset(call: &mut Call<'_>) -> Result<(), Refusal> {
    put_fields(call)?;
    call.ok();
    Ok(())
}

fn hsetnx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut edit = edit(call)?;
    let is_new = edit.put_if_absent(hashed(call.argument(2)), call.argument(3).to_vec())?;
    if is_new {
        edit.write()?;
        call.changed(HASH, "hset", 1);
    }
    call.reply.integer(is_new.into());
    Ok(())
}

fn hget(call: &mut Call<'_>) -> Result<(), Refusal> {
    let value = field(call, 2)?;
    super::values::answer_value(value.as_deref(), &mut call.reply, call.event_counts);
    Ok(())
}

/// Returns the value of the field that is argument number `index`.
fn field(call: &Call<'_>, index: usize) -> Result<Option<Vec<u8>>, Refusal> {
    hash(call)?.map_or(Ok(None), |hash| hash.get(&hashed(call.argument(index))))
}

fn hexists(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_there = hash(call)?.map_or(Ok(false), |hash| hash.contains(&hashed(call.argument(2))))?;
    call.reply.integer(is_there.into());
    Ok(())
}

fn hstrlen(call: &mut Call<'_>) -> Result<(), Refusal> {
    let value = field(call, 2)?;
    call.reply.integer(value.map_or(0, |value| value.len()) as i64);
    Ok(())
}

fn hlen(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = hash(call)?.map_or(0, |hash| hash.len());
    call.reply.integer(count as i64);
    Ok(())
}

fn hmget(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (hash, mut gathered) = (hash(call)?, Gathered::of(call));
    call.reply.array(call.request.len() - 2);
    for index in 2..call.request.len() {
        match hash.as_ref().map_or(Ok(None), |hash| hash.get(&hashed(call.argument(index))))? {
            Some(value) => {
                gathered.read_and_add(value.len())?;
                call.reply.bulk(&value);
            }
            None => call.reply.null_bulk(),
        }
    }
    Ok(())
}

fn hdel(call: &mut Call<'_>) -> Result<(), Refusal> {
    let Some(hash) = hash(call)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (mut edit, mut count) = (hash.edit(), 0);
    for index in 2..call.request.len() {
        count += i64::from(edit.remove(hashed(call.argument(index)))?);
    }
    let is_empty = edit.record().count == 0;
    edit.write()?;
    if count > 0 {
        call.changed_key(count as u64, HASH, "hdel", call.session.db, call.argument(1));
    }
    if is_empty {
        call.report(GENERIC, "del", 1);
    }
    call.reply.integer(count);
    Ok(())
}

fn hincrby(call: &mut Call<'_>) -> Result<(), Refusal> {
    let by = call.integer(3)?;
    let (mut edit, field) = (edit(call)?, hashed(call.argument(2)));
    let old = edit.get(&field)?.map_or(Some(0), |old| resp::parse_integer(&old)).ok_or(FixedError::HashNotANumber)?;
    let sum = old.checked_add(by).ok_or(FixedError::Overflow)?;
    edit.put(field, sum.to_string().into_bytes())?;
    edit.write()?;
    call.changed(HASH, "hincrby", 1);
    call.reply.integer(sum);
    Ok(())
}

fn hincrbyfloat(call: &mut Call<'_>) -> Result<(), Refusal> {
    let by = Number::parse(call.argument(3)).ok_or(FixedError::NotAFloat)?;
    if !by.float().is_finite() {
        return Err(FixedError::NotFinite.into());
    }
    let (mut edit, field) = (edit(call)?, hashed(call.argument(2)));
    let old = edit.get(&field)?.unwrap_or_else(|| b"0".to_vec());
    let old = Number::parse(&old).ok_or(FixedError::HashNotAFloat)?;
    let sum = old.plus(by).ok_or(FixedError::NanOrInfinity)?.to_string();
    edit.put(field, sum.clone().into_bytes())?;
    edit.write()?;
    call.changed(HASH, "hincrbyfloat", 1);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}

fn hgetall(call: &mut Call<'_>) -> Result<(), Refusal> {
    let hash = hash(call)?;
    members::answer(
        call,
        hash.as_ref(),
        |reply, count| reply.map(count),
        |reply, field, value| {
            reply.bulk(field);
            reply.bulk(value);
        },
    )
}

fn hkeys(call: &mut Call<'_>) -> Result<(), Refusal> {
    let hash = hash(call)?;
    members::answer(call, hash.as_ref(), |reply, count| reply.array(count), |reply, field, _| reply.bulk(field))
}

fn hvals(call: &mut Call<'_>) -> Result<(), Refusal> {
    let hash = hash(call)?;
    members::answer(call, hash.as_ref(), |reply, count| reply.array(count), |reply, _, value| reply.bulk(value))
}

fn hscan(call: &mut Call<'_>) -> Result<(), Refusal> {
    members::scan(call, CollectionType::Hash)
}

fn hrandfield(call: &mut Call<'_>) -> Result<(), Refusal> {
    if call.request.len() == 2 {
        match hash(call)?.map_or(Ok(None), |hash| members::random(&hash))? {
            Some((field, _)) => call.reply.bulk(&field),
            None => call.reply.null_bulk(),
        }
        return Ok(());
    }
    let has_values = call.request.len() == 4 && call.argument(3).eq_ignore_ascii_case(b"withvalues");
    let count = members::random_count(call, if has_values { 2 } else { 1 })?;
    if call.request.len() > 3 && !has_values {
        return Err(Refusal::Syntax);
    }
    let fields = hash(call)?.map_or(Ok(Vec::new()), |hash| members::some(call, &hash, count))?;
    answer_pairs(call, &fields, has_values);
    Ok(())
}

/// Replies with fields, or with pairs: in version 3 of the protocol each pair is an array.
fn answer_pairs(call: &mut Call<'_>, fields: &[hikv::Item], has_values: bool) {
    let is_nested = has_values && call.reply.protocol() == resp::Protocol::Resp3;
    call.reply.array(if has_values && !is_nested { 2 * fields.len() } else { fields.len() });
    for (field, value) in fields {
        if is_nested {
            call.reply.array(2);
        }
        call.reply.bulk(field);
        if has_values {
            call.reply.bulk(value);
        }
    }
}
