//! Lists.

use std::ops::ControlFlow;

use super::counts::{self, Pops};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::list::{End, List, ListEdit};
use crate::keyspace::collections::{Changes, CollectionType};
use crate::observers::events::{GENERIC, LIST};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions![
    lindex, linsert, llen, lmove, lmpop, lpop, lpush, lpushx, lrange, lrem, lset, ltrim, rpop, rpoplpush, rpush,
    rpushx,
];

/// Returns the list whose key is argument number `index`; `None` if the key does not exist.
pub(super) fn list<'a>(call: &Call<'a>, index: usize) -> Result<Option<List<'a>>, Refusal> {
    Ok(call.collection(index, CollectionType::List)?.map(List::of))
}

fn edit<'a>(call: &Call<'a>, index: usize) -> Result<ListEdit<'a>, Refusal> {
    call.edit(index, CollectionType::List).map(ListEdit::of)
}

/// Returns the event of a push.
fn pushed(end: End) -> &'static str {
    if end == End::Left { "lpush" } else { "rpush" }
}

/// Returns the event of a pop.
fn popped(end: End) -> &'static str {
    if end == End::Left { "lpop" } else { "rpop" }
}

fn lpush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let edit = edit(call, 1)?;
    push(call, Some(edit), End::Left)
}

fn rpush(call: &mut Call<'_>) -> Result<(), Refusal> {
    let edit = edit(call, 1)?;
    push(call, Some(edit), End::Right)
}

fn lpushx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let edit = list(call, 1)?.map(|list| list.edit());
    push(call, edit, End::Left)
}

fn rpushx(call: &mut Call<'_>) -> Result<(), Refusal> {
    let edit = list(call, 1)?.map(|list| list.edit());
    push(call, edit, End::Right)
}

/// Pushes all values to the list of `edit`, if there is one.
fn push(call: &mut Call<'_>, edit: Option<ListEdit<'_>>, end: End) -> Result<(), Refusal> {
    let Some(mut edit) = edit else {
        call.reply.integer(0);
        return Ok(());
    };
    for value in call.request.arguments().skip(1) {
        edit.push(end, value.to_vec())?;
    }
    let count = edit.len();
    edit.write()?;
    call.changed_key(call.request.len() as u64 - 2, LIST, pushed(end), call.session.db, call.argument(1));
    call.reply.integer(count as i64);
    Ok(())
}

/// Reports that elements were removed from the list whose key is argument number `index`, and perhaps the list itself.
fn report_removed(call: &Call<'_>, index: usize, (event, count): (&'static str, u64), is_empty: bool) {
    call.changed_key(count, LIST, event, call.session.db, call.argument(index));
    if is_empty {
        call.report(GENERIC, "del", index);
    }
}

/// Removes and returns elements at an end of a list whose key is argument number `index`.
pub(super) fn take(
    call: &Call<'_>,
    index: usize,
    list: &List<'_>,
    end: End,
    count: u64,
) -> Result<Vec<Vec<u8>>, Refusal> {
    let (len, count) = (list.len(), count.min(list.len()));
    let values = if count == 1 {
        let mut edit = list.edit();
        let value = edit.pop(end)?;
        edit.write()?;
        vec![value]
    } else {
        let (taken, kept) = match end {
            End::Left => (0..count, count..len),
            End::Right => (len - count..len, 0..len - count),
        };
        let mut values = values_for_reply(call, list, taken)?;
        if end == End::Right {
            values.reverse();
        }
        list.keep(kept)?;
        values
    };
    report_removed(call, index, (popped(end), count), count == len);
    Ok(values)
}

/// Returns the elements at these indices for a reply.
fn values_for_reply(call: &Call<'_>, list: &List<'_>, indices: std::ops::Range<u64>) -> Result<Vec<Vec<u8>>, Refusal> {
    let (mut values, mut gathered) = (Vec::new(), Gathered::of(call));
    list.each(indices, false, |_, value| {
        gathered.read_and_add(value.len())?;
        values.push(value.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(values)
}

pub(super) fn answer_array(call: &mut Call<'_>, values: &[Vec<u8>]) {
    call.reply.array(values.len());
    values.iter().for_each(|value| call.reply.bulk(value));
}

fn lpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop(call, End::Left)
}

fn rpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    pop(call, End::Right)
}

fn pop(call: &mut Call<'_>, end: End) -> Result<(), Refusal> {
    if call.request.len() > 3 {
        return Err(Refusal::ArgumentCount { command: call.entry.command.name });
    }
    let has_count = call.request.len() == 3;
    let count = if has_count { counts::at_least(0, call.argument(2), Refusal::Negative)? } else { 1 };
    match list(call, 1)? {
        None if has_count => call.reply.null_array(),
        None => call.reply.null_bulk(),
        Some(_) if count == 0 => call.reply.array(0),
        Some(list) => {
            let values = take(call, 1, &list, end, count)?;
            match has_count {
                true => answer_array(call, &values),
                false => call.reply.bulk(&values[0]),
            }
        }
    }
    Ok(())
}

fn llen(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = list(call, 1)?.map_or(0, |list| list.len());
    call.reply.integer(count as i64);
    Ok(())
}

fn lindex(call: &mut Call<'_>) -> Result<(), Refusal> {
    let value = match list(call, 1)? {
        Some(list) => list.get(call.integer(2)?)?,
        None => None,
    };
    super::values::answer_value(value.as_deref(), &mut call.reply, call.event_counts);
    Ok(())
}

fn lrange(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    let values = match list(call, 1)? {
        Some(list) => values_for_reply(call, &list, list.span(first, last))?,
        None => Vec::new(),
    };
    answer_array(call, &values);
    Ok(())
}

fn lset(call: &mut Call<'_>) -> Result<(), Refusal> {
    let list = list(call, 1)?.ok_or(FixedError::NoSuchKey)?;
    let index = u64::try_from(list.index_of(call.integer(2)?)).ok().filter(|index| *index < list.len());
    let mut edit = list.edit();
    edit.replace(index.ok_or(FixedError::IndexOutOfRange)?, call.argument(3).to_vec())?;
    edit.write()?;
    call.changed(LIST, "lset", 1);
    call.ok();
    Ok(())
}

fn ltrim(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (first, last) = (call.integer(2)?, call.integer(3)?);
    if let Some(list) = list(call, 1)? {
        let (kept, len) = (list.span(first, last), list.len());
        let count = kept.end - kept.start;
        if count < len {
            list.keep(kept)?;
        }
        report_removed(call, 1, ("ltrim", len - count), count == 0);
    }
    call.ok();
    Ok(())
}

fn lrem(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (number, value) = (call.integer(2)?, call.argument(3));
    let (mut removed, mut gathered) = (Vec::new(), Gathered::of(call));
    if let Some(list) = list(call, 1)? {
        let count_max = if number == 0 { list.len() } else { number.unsigned_abs() };
        list.each(0..list.len(), number < 0, |index, element| {
            gathered.read(element.len())?;
            if element == value {
                removed.push(index);
            }
            let is_done = removed.len() as u64 == count_max;
            Ok(if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        removed.sort_unstable();
        list.remove(&removed)?;
        if !removed.is_empty() {
            let count = removed.len() as u64;
            report_removed(call, 1, ("lrem", count), count == list.len());
        }
    }
    call.reply.integer(removed.len() as i64);
    Ok(())
}

fn linsert(call: &mut Call<'_>) -> Result<(), Refusal> {
    let is_after = match call.argument(2).to_ascii_lowercase().as_slice() {
        b"after" => true,
        b"before" => false,
        _ => return Err(Refusal::Syntax),
    };
    let Some(list) = list(call, 1)? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (pivot, mut found, mut gathered) = (call.argument(3), None, Gathered::of(call));
    list.each(0..list.len(), false, |index, element| {
        gathered.read(element.len())?;
        if element == pivot {
            found = Some(index);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let Some(index) = found else {
        call.reply.integer(-1);
        return Ok(());
    };
    list.insert(index + u64::from(is_after), call.argument(4))?;
    call.changed(LIST, "linsert", 1);
    call.reply.integer(list.len() as i64 + 1);
    Ok(())
}

fn lmove(call: &mut Call<'_>) -> Result<(), Refusal> {
    let [from, to] = [end_of(call, 3)?, end_of(call, 4)?];
    move_element(call, from, to)
}

fn rpoplpush(call: &mut Call<'_>) -> Result<(), Refusal> {
    move_element(call, End::Right, End::Left)
}

pub(super) fn end_of(call: &Call<'_>, index: usize) -> Result<End, Refusal> {
    End::of(call.argument(index)).ok_or(Refusal::Syntax)
}

/// Moves an element from the first list to the second, and replies with it.
fn move_element(call: &mut Call<'_>, from: End, to: End) -> Result<(), Refusal> {
    match list(call, 1)? {
        Some(source) => {
            let value = moved(call, &source, from, to)?;
            call.reply.bulk(&value);
        }
        None => call.reply.null_bulk(),
    }
    Ok(())
}

pub(super) fn moved(call: &Call<'_>, source: &List<'_>, from: End, to: End) -> Result<Vec<u8>, Refusal> {
    let mut edit_source = source.edit();
    let value = edit_source.pop(from)?;
    if call.argument(1) == call.argument(2) {
        edit_source.push(to, value.clone())?;
        let is_same = source.len() == 1;
        if !is_same {
            edit_source.write()?;
        }
    } else {
        let (mut edit_target, mut changes) = (edit(call, 2)?, Changes::default());
        edit_target.push(to, value.clone())?;
        edit_source.finish(&mut changes)?;
        edit_target.finish(&mut changes)?;
        changes.write(call.store())?;
    }
    call.report(LIST, pushed(to), 2);
    report_removed(call, 1, (popped(from), 1), source.len() == 1 && call.argument(1) != call.argument(2));
    Ok(value)
}

fn lmpop(call: &mut Call<'_>) -> Result<(), Refusal> {
    let pops = Pops::of(call, 1, End::of)?;
    for index in pops.keys {
        if let Some(list) = list(call, index)? {
            let values = take(call, index, &list, pops.end, pops.count)?;
            call.reply.array(2);
            call.reply.bulk(call.argument(index));
            answer_array(call, &values);
            return Ok(());
        }
    }
    call.reply.null_array();
    Ok(())
}
