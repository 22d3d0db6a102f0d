//! XPENDING.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::arguments::{self, group};
use super::replies::{self, write_id};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{Delivery, Ids, Stream, StreamId, StreamParts};

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![xpending];

/// The pending entries that a request wants.
struct Wanted {
    ids: Ids,
    count_max: u64,
    idle_ms_min: u64,
    /// The index of the consumer's name.
    consumer: Option<usize>,
}

impl Wanted {
    /// `None` for a summary.
    fn of(call: &Call<'_>) -> Result<Option<Wanted>, Refusal> {
        let count = call.request.len();
        if count == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&count) {
            return Err(Refusal::Syntax);
        }
        let (mut start, mut idle_ms_min) = (3, 0);
        if call.argument(3).eq_ignore_ascii_case(b"idle") {
            idle_ms_min = call.integer(4)?.max(0) as u64;
            if count < 8 {
                return Err(Refusal::Syntax);
            }
            start = 5;
        }
        let count_max = call.integer(start + 2)?.max(0) as u64;
        let ids = arguments::interval(call.argument(start), call.argument(start + 1))?;
        let consumer = Some(start + 3).filter(|index| *index < count);
        Ok(Some(Wanted { ids, count_max, idle_ms_min, consumer }))
    }
}

fn xpending(call: &mut Call<'_>) -> Result<(), Refusal> {
    let wanted = Wanted::of(call)?;
    let (stream, group) = group(call)?.ok_or_else(|| arguments::no_group(call, 1, 2))?;
    match wanted {
        None => answer_summary(call, &stream, group.number),
        Some(wanted) => answer_entries(call, &stream, group.number, &wanted),
    }
}

fn answer_summary(call: &mut Call<'_>, stream: &Stream<'_>, group: u64) -> Result<(), Refusal> {
    let mut consumers = stream.consumers(group)?;
    consumers.retain(|consumer| consumer.pending_count > 0);
    let (first, last) = (end_of(stream, group, false)?, end_of(stream, group, true)?);
    call.reply.array(4);
    call.reply.integer(consumers.iter().map(|consumer| consumer.pending_count as i64).sum());
    let (Some(first), Some(last)) = (first, last) else {
        call.reply.null_bulk();
        call.reply.null_bulk();
        call.reply.null_array();
        return Ok(());
    };
    write_id(&mut call.reply, first);
    write_id(&mut call.reply, last);
    call.reply.array(consumers.len());
    for consumer in consumers {
        call.reply.array(2);
        call.reply.bulk(&consumer.name);
        call.reply.bulk(consumer.pending_count.to_string().as_bytes());
    }
    Ok(())
}

/// Returns the id of the first or the last pending entry.
fn end_of(stream: &Stream<'_>, group: u64, is_last: bool) -> Result<Option<StreamId>, Refusal> {
    let mut found = None;
    stream.each_pending(group, Ids::ALL, is_last, |id, _| {
        found = Some(id);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

fn answer_entries(call: &mut Call<'_>, stream: &Stream<'_>, group: u64, wanted: &Wanted) -> Result<(), Refusal> {
    let now_ms = arguments::now_ms();
    let (mut gathered, mut names) = (Gathered::of(call), Names::of(stream, group));
    let mut found: Vec<(StreamId, Delivery)> = Vec::new();
    let mut add = |id, delivery: Delivery| {
        if delivery.idle_ms(now_ms) >= wanted.idle_ms_min {
            found.push((id, delivery));
        }
        Ok(replies::until(found.len(), wanted.count_max))
    };
    let consumer = match wanted.consumer {
        Some(index) => match stream.consumer(group, call.argument(index))? {
            Some(consumer) => Some(consumer.number),
            None => {
                call.reply.array(0);
                return Ok(());
            }
        },
        None => None,
    };
    match consumer {
        _ if wanted.count_max == 0 => {}
        Some(consumer) => stream.each_owned((group, consumer), wanted.ids, |id| {
            gathered.read(StreamId::BYTES)?;
            add(id, stream.delivery(group, id)?.ok_or(FixedError::DamagedCollection)?)
        })?,
        None => stream.each_pending(group, wanted.ids, false, |id, delivery| {
            gathered.read(StreamId::BYTES)?;
            add(id, delivery)
        })?,
    }
    found.iter().try_for_each(|(_, delivery)| names.load(delivery.consumer))?;
    call.reply.array(found.len());
    for (id, delivery) in found {
        call.reply.array(4);
        write_id(&mut call.reply, id);
        call.reply.bulk(names.get(delivery.consumer));
        call.reply.integer(delivery.idle_ms(now_ms) as i64);
        call.reply.integer(delivery.count as i64);
    }
    Ok(())
}

/// The names of consumers, by their numbers.
pub(super) struct Names<'s, 'a> {
    stream: &'s Stream<'a>,
    group: u64,
    loaded: HashMap<u64, Vec<u8>>,
}

impl<'s, 'a> Names<'s, 'a> {
    pub(super) fn of(stream: &'s Stream<'a>, group: u64) -> Names<'s, 'a> {
        Names { stream, group, loaded: HashMap::new() }
    }

    pub(super) fn load(&mut self, consumer: u64) -> Result<(), Refusal> {
        if !self.loaded.contains_key(&consumer) {
            let found = self.stream.numbered_consumer(self.group, consumer)?;
            self.loaded.insert(consumer, found.name);
        }
        Ok(())
    }

    /// Returns the name of a consumer that was loaded.
    pub(super) fn get(&self, consumer: u64) -> &[u8] {
        self.loaded.get(&consumer).map_or(b"", |name| name)
    }
}
