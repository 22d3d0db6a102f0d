//! XADD, XDEL, XTRIM, XSETID and XLEN.

use super::arguments::{self, NewId, stream};
use super::trim::TrimOptions;
use crate::errors::{FixedError, Refusal, StreamError};
use crate::execution::call::{Call, Function};
use crate::execution::collections::view_to_make;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::stream::{StreamEdit, StreamId};
use crate::observers::events::STREAM;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![xadd, xdel, xlen, xsetid, xtrim];

fn xlen(call: &mut Call<'_>) -> Result<(), Refusal> {
    let count = stream(call, 1)?.map_or(0, |stream| stream.len());
    call.reply.integer(count as i64);
    Ok(())
}

fn xadd(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = TrimOptions::of(call, true)?;
    let text_count = call.request.len() - options.end;
    let wanted = options.id.filter(|_| text_count > 0 && text_count.is_multiple_of(2));
    let wanted = wanted.ok_or(Refusal::ArgumentCount { command: "xadd" })?;
    if wanted == NewId::Given(StreamId::ZERO) {
        return Err(StreamError::ZeroId.into());
    }
    let found = stream(call, 1)?;
    let mut edit = match &found {
        Some(stream) => stream.edit(),
        None if options.only_existing => {
            call.reply.null_bulk();
            return Ok(());
        }
        None => StreamEdit::of(view_to_make(call)?.make(call.argument(1), CollectionType::Stream)?),
    };
    let id = next_id(edit.state().last, wanted)?;
    edit.add(id, call.request.arguments().skip(options.end - 1))?;
    let trimmed_count = match options.trim {
        Some(trim) => trim.apply(call, found.as_ref(), Some(id), &mut edit)?,
        None => 0,
    };
    edit.write()?;
    call.changed(STREAM, "xadd", 1);
    if trimmed_count > 0 {
        call.report(STREAM, "xtrim", 1);
    }
    call.reply.bulk(id.to_string().as_bytes());
    Ok(())
}

/// Returns the id of a new entry after the last one.
fn next_id(last: StreamId, wanted: NewId) -> Result<StreamId, Refusal> {
    let next = last.next().ok_or(StreamError::Exhausted)?;
    let id = match wanted {
        NewId::Given(id) => id,
        NewId::Now => next.max(StreamId::of(arguments::now_ms(), 0)),
        // Not in the next millisecond.
        NewId::Within(ms) if ms == last.ms() && next.ms() > ms => return Err(StreamError::SmallId.into()),
        NewId::Within(ms) if ms == last.ms() => next,
        NewId::Within(ms) => StreamId::of(ms, 0),
    };
    if id > last { Ok(id) } else { Err(StreamError::SmallId.into()) }
}

fn xdel(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    if let Some(stream) = stream(call, 1)? {
        let mut edit = stream.edit();
        for id in arguments::ids(call, 2)? {
            if edit.delete(id)? {
                count += 1;
                let max_deleted = &mut edit.state().max_deleted;
                *max_deleted = id.max(*max_deleted);
            }
        }
        edit.write()?;
    }
    if count > 0 {
        call.changed_key(count, STREAM, "xdel", call.session.db, call.argument(1));
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn xtrim(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = TrimOptions::of(call, false)?;
    let mut count = 0;
    if let (Some(trim), Some(stream)) = (options.trim, stream(call, 1)?) {
        let mut edit = stream.edit();
        count = trim.apply(call, Some(&stream), None, &mut edit)?;
        edit.write()?;
    }
    if count > 0 {
        call.changed_key(count, STREAM, "xtrim", call.session.db, call.argument(1));
    }
    call.reply.integer(count as i64);
    Ok(())
}

fn xsetid(call: &mut Call<'_>) -> Result<(), Refusal> {
    let id = arguments::id(call.argument(2))?;
    let (mut added_count, mut max_deleted, mut index) = (None, StreamId::ZERO, 3);
    while index < call.request.len() {
        match call.argument(index).to_ascii_lowercase().as_slice() {
            b"entriesadded" if index + 1 < call.request.len() => {
                let count = u64::try_from(call.integer(index + 1)?);
                added_count = Some(count.map_err(|_| StreamError::NegativeAddedCount)?);
            }
            b"maxdeletedid" if index + 1 < call.request.len() => {
                max_deleted = arguments::id(call.argument(index + 1))?;
                if id < max_deleted {
                    return Err(StreamError::SmallerThanDeleted.into());
                }
            }
            _ => return Err(Refusal::Syntax),
        }
        index += 2;
    }
    let stream = stream(call, 1)?.ok_or(FixedError::NoSuchKey)?;
    if let Some((last, _)) = stream.end(true)? {
        if id < last {
            return Err(StreamError::SmallerThanLast.into());
        }
        if added_count.is_some_and(|count| count < stream.len()) {
            return Err(StreamError::FewerThanEntries.into());
        }
    }
    let mut edit = stream.edit();
    let state = edit.state();
    state.last = id;
    state.added_count = added_count.unwrap_or(state.added_count);
    if max_deleted != StreamId::ZERO {
        state.max_deleted = max_deleted;
    }
    edit.write()?;
    call.changed(STREAM, "xsetid", 1);
    call.ok();
    Ok(())
}
