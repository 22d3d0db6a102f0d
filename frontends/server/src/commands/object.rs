//! OBJECT: the answers that Redis would give about its representation of a value.

use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::layout::member_of;
use crate::keyspace::collections::{Collection, CollectionType};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["object|": [encoding, freq, idletime, refcount]];

/// The longest value that Redis stores together with its header.
const EMBEDDED_BYTES_MAX: usize = 44;

/// Depends on the value only: all values are stored alike here.
pub(super) fn encoding_of(value: &[u8]) -> &'static str {
    match value {
        number if resp::parse_integer(number).is_some() => "int",
        short if short.len() <= EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

/// Depends on the elements and on the parameters of Redis' compact encodings: all collections of a type are stored
/// alike here.
pub(super) fn encoding_of_collection(call: &Call<'_>, found: &Collection<'_>) -> Result<&'static str, Refusal> {
    let limit = |name: &str| call.shared.administration.settings.named(name).parse().unwrap_or(u64::MAX);
    let all_are = |count_max: u64, is_so: &dyn Fn(&[u8], &[u8]) -> bool| {
        let is_one = |item: Result<hikv::Item, Refusal>| item.map(|(element, value)| is_so(&element, &value));
        let is_few = found.len() <= count_max;
        Ok::<_, Refusal>(is_few && found.elements()?.map(is_one).try_fold(true, |all, one| one.map(|one| all && one))?)
    };
    Ok(match found.collection_type() {
        CollectionType::List => "quicklist",
        CollectionType::Stream => "stream",
        CollectionType::Set => {
            let is_integer = |element: &[u8], _: &[u8]| resp::parse_integer(member_of(element).1).is_some();
            if all_are(limit("set-max-intset-entries"), &is_integer)? { "intset" } else { "hashtable" }
        }
        CollectionType::Hash => {
            let bytes_max = limit("hash-max-listpack-value") as usize;
            let is_short = |element: &[u8], value: &[u8]| member_of(element).1.len().max(value.len()) <= bytes_max;
            if all_are(limit("hash-max-listpack-entries"), &is_short)? { "listpack" } else { "hashtable" }
        }
        CollectionType::SortedSet => {
            // One of the two elements of a member has 5 bytes before it.
            let bytes_max = (limit("zset-max-listpack-value") as usize).saturating_add(5);
            let is_short = |element: &[u8], _: &[u8]| element.len() <= bytes_max;
            if all_are(limit("zset-max-listpack-entries"), &is_short)? { "listpack" } else { "skiplist" }
        }
    })
}

fn encoding(call: &mut Call<'_>) -> Result<(), Refusal> {
    let of_string = call.store().get_part_with(call.key(2), encoding_of)?;
    let of_collection = || call.found(2)?.map(|found| encoding_of_collection(call, &found)).transpose();
    match if of_string.is_some() { of_string } else { of_collection()? } {
        Some(name) => call.reply.bulk(name.as_bytes()),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

/// Redis shares one object for each of the numbers below 10,000, and shows that as the maximum count.
fn refcount(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_shared = call.store().get_part_with(call.key(2), |value| {
        resp::parse_integer(value).is_some_and(|number| (0..10_000).contains(&number))
    })?;
    reply_number(call, if is_shared == Some(true) { i32::MAX.into() } else { 1 })
}

/// The last use of a key is not recorded.
fn idletime(call: &mut Call<'_>) -> Result<(), Refusal> {
    reply_number(call, 0)
}

fn reply_number(call: &mut Call<'_>, number: i64) -> Result<(), Refusal> {
    match call.contains(2)? {
        true => call.reply.integer(number),
        false => call.reply.null_bulk(),
    }
    Ok(())
}

fn freq(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.contains(2)? {
        true => Err(FixedError::LfuOff.into()),
        false => {
            call.reply.null_bulk();
            Ok(())
        }
    }
}
