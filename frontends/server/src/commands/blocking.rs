//! Commands that wait for an element of a list (`execution::waiting`). Those that wait for a member of a sorted set
//! share its functions.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::counts::Pops;
use super::decimal::Number;
use super::lists::{answer_array, end_of, moved, take};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::keyspace::collections::list::{End, List};
use crate::keyspace::collections::{Collection, CollectionType};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![blmove, blmpop, blpop, brpop, brpoplpush];

/// Parses a time to wait in seconds, and returns when it ends; `None` for 0, which means never.
pub(super) fn deadline_of(argument: &[u8]) -> Result<Option<Instant>, Refusal> {
    let seconds = Number::parse(argument).ok_or(FixedError::TimeoutNotAFloat)?.float();
    let ms = (seconds * 1000.0).ceil();
    // Redis takes a number that is too large for a negative one.
    if !(0.0..i64::MAX as f64).contains(&ms) {
        return Err(FixedError::Timeout.into());
    }
    // A time that the clock cannot represent never comes.
    Ok(if ms == 0.0 { None } else { Instant::now().checked_add(Duration::from_millis(ms as u64)) })
}

fn blpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop(call, End::Left)
}

fn brpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop(call, End::Right)
}

fn pop(call: &mut Call<'_>, end: End) -> Result<(), Refusal> {
    let last = call.request.len() - 1;
    let deadline = deadline_of(call.argument(last))?;
    match take_first(call, 1..last, end, 1)? {
        Some((index, values)) => {
            call.reply.array(2);
            call.reply.bulk(call.argument(index));
            call.reply.bulk(&values[0]);
        }
        None => wait(call, CollectionType::List, 1..last, deadline),
    }
    Ok(())
}

fn blmpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pops = Pops::of(call, 2, End::of)?;
    let deadline = deadline_of(call.argument(1))?;
    match take_first(call, pops.keys.clone(), pops.end, pops.count)? {
        Some((index, values)) => {
            call.reply.array(2);
            call.reply.bulk(call.argument(index));
            answer_array(call, &values);
        }
        None => wait(call, CollectionType::List, pops.keys, deadline),
    }
    Ok(())
}

/// Returns the collection whose key is argument number `index`; `None` if the key does not exist. A client that waits
/// goes on waiting if another client has just given the key another type.
fn source<'a>(call: &Call<'a>, index: usize, awaited: CollectionType) -> Result<Option<Collection<'a>>, Refusal> {
    match call.collection(index, awaited) {
        Err(Refusal::Fixed(FixedError::WrongType)) if call.is_repeated() => Ok(None),
        found => found,
    }
}

/// Returns the first existing collection whose key is among these arguments, with the number of the argument.
pub(super) fn first_source<'a>(
    call: &Call<'a>,
    indices: Range<usize>,
    awaited: CollectionType,
) -> Result<Option<(usize, Collection<'a>)>, Refusal> {
    for index in indices {
        if call.is_tried(call.argument(index))
            && let Some(found) = source(call, index, awaited)?
        {
            return Ok(Some((index, found)));
        }
    }
    Ok(None)
}

/// Has the client wait for a collection with one of these keys, or answers that there is none if it must not wait.
pub(super) fn wait(call: &mut Call<'_>, awaited: CollectionType, indices: Range<usize>, deadline: Option<Instant>) {
    if !call.wait(None, awaited, indices, deadline) {
        call.reply.null_array();
    }
}

/// The index of a key, and elements of its list.
type Taken = (usize, Vec<Vec<u8>>);

/// Removes and returns elements of the first list among these keys, with the index of its key.
fn take_first(call: &Call<'_>, indices: Range<usize>, end: End, count: u64) -> Result<Option<Taken>, Refusal> {
    let Some((index, found)) = first_source(call, indices, CollectionType::List)? else { return Ok(None) };
    Ok(Some((index, take(call, index, &List::of(found), end, count)?)))
}

fn blmove(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (from, to) = (end_of(call, 3)?, end_of(call, 4)?);
    move_element(call, (from, to), 5)
}

fn brpoplpush(call: &mut Call<'_>) -> Result<(), Refusal> {
    move_element(call, (End::Right, End::Left), 3)
}

fn move_element(call: &mut Call<'_>, (from, to): (End, End), timeout_index: usize) -> Result<(), Refusal> {
    let deadline = deadline_of(call.argument(timeout_index))?;
    match source(call, 1, CollectionType::List)? {
        Some(source) => {
            let value = moved(call, &List::of(source), from, to)?;
            call.reply.bulk(&value);
        }
        None if call.wait(None, CollectionType::List, 1..2, deadline) => {}
        None => call.reply.null_bulk(),
    }
    Ok(())
}
