//! XGROUP and XACK.

use std::ops::ControlFlow;

use super::arguments::{self, group, stream};
use crate::errors::{Refusal, StreamError};
use crate::execution::call::{Call, Function};
use crate::execution::collections::view_to_make;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::CollectionType;
use crate::keyspace::collections::stream::{Consumer, Group, Ids, Stream, StreamEdit, StreamId, StreamParts};
use crate::observers::events::STREAM;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![
    "": [xack],
    "xgroup|": [create, createconsumer, delconsumer, destroy, setid],
];

/// The options of XGROUP CREATE and SETID.
#[derive(Default)]
struct GroupOptions {
    /// MKSTREAM.
    makes: bool,
    read_count: Option<u64>,
}

impl GroupOptions {
    fn of(call: &Call<'_>, may_make: bool) -> Result<GroupOptions, Refusal> {
        let (mut options, mut index) = (GroupOptions::default(), 5);
        while index < call.request.len() {
            match call.argument(index).to_ascii_lowercase().as_slice() {
                b"mkstream" if may_make => {
                    options.makes = true;
                    index += 1;
                }
                b"entriesread" if index + 1 < call.request.len() => {
                    options.read_count = match call.integer(index + 1)? {
                        -1 => None,
                        count => Some(count.try_into().map_err(|_| StreamError::NegativeReadCount)?),
                    };
                    index += 2;
                }
                _ => return Err(wrong_arguments(call)),
            }
        }
        Ok(options)
    }
}

fn wrong_arguments(call: &Call<'_>) -> Refusal {
    Refusal::subcommand_arguments("xgroup", call.argument(1))
}

/// Returns the id in argument number 4, which may be the last one of the stream.
fn id_of(
    call: &Call<'_>,
    stream: Option<&Stream<'_>>,
    parse: fn(&[u8]) -> Result<StreamId, Refusal>,
) -> Result<StreamId, Refusal> {
    match call.argument(4) {
        b"$" => Ok(stream.map_or(StreamId::ZERO, |stream| stream.state().last)),
        text => parse(text),
    }
}

/// Returns the stream of argument number 2, which must exist.
fn existing<'a>(call: &Call<'a>) -> Result<Stream<'a>, Refusal> {
    Ok(stream(call, 2)?.ok_or(StreamError::NoKey)?)
}

/// Returns the stream and its group, which must exist.
fn existing_group<'a>(call: &Call<'a>) -> Result<(Stream<'a>, Group), Refusal> {
    let stream = existing(call)?;
    let group = arguments::group_of(call, &stream)?;
    Ok((stream, group))
}

fn create(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = GroupOptions::of(call, true)?;
    let found = stream(call, 2)?;
    if found.is_none() && !options.makes {
        return Err(StreamError::NoKey.into());
    }
    if call.request.len() > 8 {
        return Err(wrong_arguments(call));
    }
    let last = id_of(call, found.as_ref(), arguments::id)?;
    let mut edit = match found {
        Some(stream) => stream.edit(),
        None => StreamEdit::of(view_to_make(call)?.make(call.argument(2), CollectionType::Stream)?),
    };
    if edit.group(call.argument(3))?.is_some() {
        return Err(StreamError::BusyGroup.into());
    }
    edit.make_group(call.argument(3), last, options.read_count)?;
    edit.write()?;
    call.changed(STREAM, "xgroup-create", 2);
    call.ok();
    Ok(())
}

fn setid(call: &mut Call<'_>) -> Result<(), Refusal> {
    let options = GroupOptions::of(call, false)?;
    let (stream, group) = existing_group(call)?;
    if !matches!(call.request.len(), 5 | 7) {
        return Err(wrong_arguments(call));
    }
    let last = id_of(call, Some(&stream), arguments::any_id)?;
    let mut edit = stream.edit();
    edit.put_group(call.argument(3), &Group { last, read_count: options.read_count, ..group })?;
    edit.write()?;
    call.changed(STREAM, "xgroup-setid", 2);
    call.ok();
    Ok(())
}

fn destroy(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stream = existing(call)?;
    let Some(group) = stream.group(call.argument(3))? else {
        call.reply.integer(0);
        return Ok(());
    };
    let (mut edit, mut gathered) = (stream.edit(), Gathered::of(call));
    for consumer in stream.consumers(group.number)? {
        remove(&stream, &mut edit, group.number, &consumer, &mut gathered)?;
    }
    edit.remove_group(call.argument(3));
    edit.write()?;
    call.changed(STREAM, "xgroup-destroy", 2);
    call.reply.integer(1);
    Ok(())
}

/// Removes a consumer and its pending entries.
fn remove(
    stream: &Stream<'_>,
    edit: &mut StreamEdit<'_>,
    group: u64,
    consumer: &Consumer,
    gathered: &mut Gathered,
) -> Result<(), Refusal> {
    let owner = (group, consumer.number);
    stream.each_owned(owner, Ids::ALL, |id| {
        gathered.read(StreamId::BYTES)?;
        edit.forget(owner, id);
        Ok(ControlFlow::Continue(()))
    })?;
    edit.remove_consumer(group, consumer);
    Ok(())
}

fn createconsumer(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (stream, group) = existing_group(call)?;
    let is_new = stream.consumer(group.number, call.argument(4))?.is_none();
    if is_new {
        let mut edit = stream.edit();
        edit.make_consumer(group.number, call.argument(4), arguments::now_ms())?;
        edit.write()?;
        call.changed(STREAM, "xgroup-createconsumer", 2);
    }
    call.reply.integer(is_new.into());
    Ok(())
}

fn delconsumer(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (stream, group) = existing_group(call)?;
    let found = stream.consumer(group.number, call.argument(4))?;
    if let Some(consumer) = &found {
        let mut edit = stream.edit();
        remove(&stream, &mut edit, group.number, consumer, &mut Gathered::of(call))?;
        edit.write()?;
        call.changed(STREAM, "xgroup-delconsumer", 2);
    }
    call.reply.integer(found.map_or(0, |consumer| consumer.pending_count as i64));
    Ok(())
}

fn xack(call: &mut Call<'_>) -> Result<(), Refusal> {
    let mut count = 0;
    if let Some((stream, group)) = group(call)? {
        let mut edit = stream.edit();
        for id in arguments::ids(call, 3)? {
            if let Some(delivery) = edit.delivery(group.number, id)? {
                edit.acknowledge(group.number, id, delivery)?;
                count += 1;
            }
        }
        edit.write()?;
    }
    call.reply.integer(count);
    Ok(())
}
