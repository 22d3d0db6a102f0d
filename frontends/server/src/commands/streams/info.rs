//! XINFO.

use super::arguments;
use super::deliver::Progress;
use super::pending::Names;
use super::replies::{self, write_entry, write_id};
use super::trim::node_entries;
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{
    Consumer, Delivery, Group, Ids, Stream, StreamEntry, StreamId, StreamParts, texts,
};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] =
    functions!["xinfo|": [consumers, groups, "stream" => describe]];

/// The number of entries in XINFO STREAM FULL.
const FULL_COUNT: u64 = 10;

fn existing<'a>(call: &Call<'a>) -> Result<Stream<'a>, Refusal> {
    Ok(arguments::stream(call, 2)?.ok_or(FixedError::NoSuchKey)?)
}

fn consumers(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stream = existing(call)?;
    let group = arguments::group_of(call, &stream)?;
    let (consumers, now_ms) = (stream.consumers(group.number)?, arguments::now_ms());
    call.reply.array(consumers.len());
    for consumer in consumers {
        call.reply.map(3);
        call.reply.bulk(b"name");
        call.reply.bulk(&consumer.name);
        number(call, "pending", consumer.pending_count);
        number(call, "idle", now_ms.saturating_sub(consumer.seen_ms));
    }
    Ok(())
}

fn groups(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stream = existing(call)?;
    let mut groups = Vec::new();
    for (name, group) in stream.groups()? {
        let (consumers, lag) = (stream.consumers(group.number)?, Progress::of(&stream, &group)?.lag(&group));
        groups.push((name, group, consumers, lag));
    }
    call.reply.array(groups.len());
    for (name, group, consumers, lag) in groups {
        call.reply.map(6);
        call.reply.bulk(b"name");
        call.reply.bulk(&name);
        number(call, "consumers", consumers.len() as u64);
        number(call, "pending", pending_count(&consumers));
        write_progress(call, &group, lag);
    }
    Ok(())
}

fn number(call: &mut Call<'_>, name: &str, number: u64) {
    call.reply.bulk(name.as_bytes());
    call.reply.integer(number as i64);
}

fn pending_count(consumers: &[Consumer]) -> u64 {
    consumers.iter().map(|consumer| consumer.pending_count).sum()
}

/// Writes the last id of a group and how many entries it has got, and has not.
fn write_progress(call: &mut Call<'_>, group: &Group, lag: Option<i64>) {
    call.reply.bulk(b"last-delivered-id");
    write_id(&mut call.reply, group.last);
    for (name, count) in [("entries-read", group.read_count.map(|count| count as i64)), ("lag", lag)] {
        call.reply.bulk(name.as_bytes());
        match count {
            Some(count) => call.reply.integer(count),
            None => call.reply.null_bulk(),
        }
    }
}

/// Returns the number of entries that are wanted in full, 0 for all; `None` without FULL.
fn full_count(call: &Call<'_>) -> Result<Option<u64>, Refusal> {
    let is_word = |index: usize, word: &[u8]| call.argument(index).eq_ignore_ascii_case(word);
    match call.request.len() {
        3 => Ok(None),
        4 if is_word(3, b"full") => Ok(Some(FULL_COUNT)),
        6 if is_word(3, b"full") && is_word(4, b"count") => {
            Ok(Some(u64::try_from(call.integer(5)?).unwrap_or(FULL_COUNT)))
        }
        _ => Err(Refusal::subcommand_arguments("xinfo", call.argument(1))),
    }
}

fn describe(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stream = existing(call)?;
    match full_count(call)? {
        None => describe_briefly(call, &stream),
        Some(count_max) => describe_fully(call, &stream, count_max),
    }
}

/// Writes the part that both forms begin with.
fn begin(call: &mut Call<'_>, stream: &Stream<'_>, field_count: usize) -> Result<(), Refusal> {
    let (state, first) = (stream.state(), stream.first_id()?);
    call.reply.map(field_count);
    number(call, "length", stream.len());
    // As a stream of Redis would have that has lost no entry.
    let node_count = stream.len().div_ceil(node_entries(call));
    number(call, "radix-tree-keys", node_count);
    number(call, "radix-tree-nodes", node_count + 1);
    let ids = [("last-generated-id", state.last), ("max-deleted-entry-id", state.max_deleted)];
    for (name, id) in ids {
        call.reply.bulk(name.as_bytes());
        write_id(&mut call.reply, id);
    }
    number(call, "entries-added", state.added_count);
    call.reply.bulk(b"recorded-first-entry-id");
    write_id(&mut call.reply, first);
    Ok(())
}

fn describe_briefly(call: &mut Call<'_>, stream: &Stream<'_>) -> Result<(), Refusal> {
    begin(call, stream, 10)?;
    number(call, "groups", stream.groups()?.len() as u64);
    for (name, end) in [("first-entry", stream.end(false)?), ("last-entry", stream.end(true)?)] {
        call.reply.bulk(name.as_bytes());
        match end {
            Some((id, value)) => write_entry(&mut call.reply, id, Some(&texts(&value)?)),
            None => call.reply.null_bulk(),
        }
    }
    Ok(())
}

fn describe_fully(call: &mut Call<'_>, stream: &Stream<'_>, count_max: u64) -> Result<(), Refusal> {
    let mut gathered = Gathered::of(call);
    let entries: Vec<StreamEntry> = replies::read(&mut gathered, stream, Ids::ALL, count_max, false)?;
    begin(call, stream, 9)?;
    call.reply.bulk(b"entries");
    replies::answer(call, &entries)?;
    let groups = stream.groups()?;
    call.reply.bulk(b"groups");
    call.reply.array(groups.len());
    for (name, group) in groups {
        let consumers = stream.consumers(group.number)?;
        call.reply.map(7);
        call.reply.bulk(b"name");
        call.reply.bulk(&name);
        write_progress(call, &group, Progress::of(stream, &group)?.lag(&group));
        number(call, "pel-count", pending_count(&consumers));
        write_pending(call, stream, group.number, count_max, &mut gathered)?;
        call.reply.bulk(b"consumers");
        call.reply.array(consumers.len());
        for consumer in consumers {
            call.reply.map(4);
            call.reply.bulk(b"name");
            call.reply.bulk(&consumer.name);
            number(call, "seen-time", consumer.seen_ms);
            number(call, "pel-count", consumer.pending_count);
            write_owned(call, stream, (group.number, consumer.number), count_max, &mut gathered)?;
        }
    }
    Ok(())
}

fn write_pending(
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    group: u64,
    count_max: u64,
    gathered: &mut Gathered,
) -> Result<(), Refusal> {
    let (mut pending, mut names) = (Vec::<(StreamId, Delivery)>::new(), Names::of(stream, group));
    stream.each_pending(group, Ids::ALL, false, |id, delivery| {
        gathered.read_and_add(StreamId::BYTES)?;
        pending.push((id, delivery));
        Ok(replies::until(pending.len(), count_max))
    })?;
    pending.iter().try_for_each(|(_, delivery)| names.load(delivery.consumer))?;
    call.reply.bulk(b"pending");
    call.reply.array(pending.len());
    for (id, delivery) in pending {
        call.reply.array(4);
        write_id(&mut call.reply, id);
        call.reply.bulk(names.get(delivery.consumer));
        call.reply.integer(delivery.time_ms as i64);
        call.reply.integer(delivery.count as i64);
    }
    Ok(())
}

fn write_owned(
    call: &mut Call<'_>,
    stream: &Stream<'_>,
    owner: (u64, u64),
    count_max: u64,
    gathered: &mut Gathered,
) -> Result<(), Refusal> {
    let mut pending = Vec::<(StreamId, Delivery)>::new();
    stream.each_owned(owner, Ids::ALL, |id| {
        gathered.read_and_add(StreamId::BYTES)?;
        pending.push((id, stream.delivery(owner.0, id)?.ok_or(FixedError::DamagedCollection)?));
        Ok(replies::until(pending.len(), count_max))
    })?;
    call.reply.bulk(b"pending");
    call.reply.array(pending.len());
    for (id, delivery) in pending {
        call.reply.array(3);
        write_id(&mut call.reply, id);
        call.reply.integer(delivery.time_ms as i64);
        call.reply.integer(delivery.count as i64);
    }
    Ok(())
}
