//! XCLAIM and XAUTOCLAIM.

use std::ops::ControlFlow;

use super::arguments::{self, group};
use super::deliver::consumer;
use super::replies::{write_entry, write_id};
use crate::errors::{Refusal, StreamError};
use crate::execution::call::{Call, Function};
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{
    Delivery, Group, Ids, Stream, StreamEdit, StreamEntry, StreamId, StreamParts, texts,
};
use crate::observers::events::STREAM;

pub(in crate::commands) const FUNCTIONS: &[(&str, Function)] = functions![xautoclaim, xclaim];

/// XAUTOCLAIM looks at as many entries for each one that it may claim.
const ATTEMPT_COUNT: u64 = 10;
const COUNT_MAX: i64 = i64::MAX / 16;
const COUNT_DEFAULT: u64 = 100;

/// How entries are claimed.
struct Terms {
    idle_ms_min: u64,
    /// The time of the delivery, in milliseconds since the Unix epoch.
    time_ms: u64,
    /// RETRYCOUNT.
    count: Option<u64>,
    /// FORCE: entries may be claimed that are not pending.
    forces: bool,
    /// JUSTID: only ids are returned, and deliveries are not counted.
    only_ids: bool,
}

/// Entries that a consumer claims.
struct Claim<'c, 'a> {
    stream: &'c Stream<'a>,
    edit: StreamEdit<'a>,
    group: Group,
    terms: Terms,
    now_ms: u64,
    name: &'a [u8],
    /// The number of the consumer, once it has claimed an entry.
    consumer: Option<u64>,
    is_made: bool,
    gathered: Gathered,
    claimed: Vec<StreamEntry>,
}

/// What became of an entry.
#[derive(PartialEq, Eq)]
enum Outcome {
    Claimed,
    /// It is not pending any more, because the stream does not hold it.
    Deleted,
    Left,
}

impl<'c, 'a> Claim<'c, 'a> {
    fn of(call: &Call<'a>, stream: &'c Stream<'a>, group: Group, terms: Terms, now_ms: u64) -> Claim<'c, 'a> {
        let (edit, gathered) = (stream.edit(), Gathered::of(call));
        let name = call.argument(3);
        Claim {
            stream,
            edit,
            group,
            terms,
            now_ms,
            name,
            consumer: None,
            is_made: false,
            gathered,
            claimed: Vec::new(),
        }
    }

    /// Claims an entry if the terms allow it.
    fn claim(&mut self, id: StreamId) -> Result<Outcome, Refusal> {
        let group = self.group.number;
        let old = self.edit.delivery(group, id)?;
        let Some(value) = self.stream.entry(id)? else {
            return match old {
                Some(old) => self.edit.acknowledge(group, id, old).map(|()| Outcome::Deleted),
                None => Ok(Outcome::Left),
            };
        };
        let is_allowed = match old {
            Some(old) => self.terms.idle_ms_min == 0 || old.idle_ms(self.now_ms) >= self.terms.idle_ms_min,
            None => self.terms.forces,
        };
        if !is_allowed {
            return Ok(Outcome::Left);
        }
        self.gathered.read_and_add(value.len())?;
        let consumer = self.consumer()?;
        // As in Redis, a delivery by FORCE counts before it is claimed.
        let old_count = old.map_or(1, |old| old.count);
        let counted = if self.terms.only_ids { old_count } else { old_count.saturating_add(1) };
        let count = self.terms.count.unwrap_or(counted);
        self.edit.deliver(group, id, old, Delivery { consumer, time_ms: self.terms.time_ms, count })?;
        self.claimed.push((id, value));
        Ok(Outcome::Claimed)
    }

    fn consumer(&mut self) -> Result<u64, Refusal> {
        if let Some(known) = self.consumer {
            return Ok(known);
        }
        let is_made = &mut self.is_made;
        let found = consumer(&mut self.edit, &self.group, self.name, self.now_ms, || *is_made = true)?;
        self.consumer = Some(found.number);
        Ok(found.number)
    }

    /// Writes all claims in one step.
    fn write(self, call: &Call<'_>) -> Result<Claimed, Refusal> {
        self.edit.write()?;
        if self.is_made {
            call.changed(STREAM, "xgroup-createconsumer", 1);
        }
        Ok(Claimed { entries: self.claimed, only_ids: self.terms.only_ids })
    }
}

/// Claimed entries, for a reply.
struct Claimed {
    entries: Vec<StreamEntry>,
    only_ids: bool,
}

impl Claimed {
    fn answer(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        call.reply.array(self.entries.len());
        for (id, value) in &self.entries {
            match self.only_ids {
                true => write_id(&mut call.reply, *id),
                false => write_entry(&mut call.reply, *id, Some(&texts(value)?)),
            }
        }
        Ok(())
    }
}

fn number(call: &Call<'_>, index: usize, what: &'static str, command: &'static str) -> Result<i64, Refusal> {
    Ok(resp::parse_integer(call.argument(index)).ok_or(StreamError::NotANumber { what, command })?)
}

fn xclaim(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (stream, mut group) = group(call)?.ok_or_else(|| arguments::no_group(call, 1, 2))?;
    let now_ms = arguments::now_ms();
    let idle_ms_min = number(call, 4, "min-idle-time", "XCLAIM")?.max(0) as u64;
    let mut terms = Terms { idle_ms_min, time_ms: now_ms, count: None, forces: false, only_ids: false };
    let ids: Vec<StreamId> =
        (5..call.request.len()).map_while(|index| arguments::id(call.argument(index)).ok()).collect();
    let (mut index, mut last, mut time_ms) = (5 + ids.len(), StreamId::ZERO, None);
    while index < call.request.len() {
        let has_more = index + 1 < call.request.len();
        let option = call.argument(index);
        index += 1;
        match option.to_ascii_lowercase().as_slice() {
            b"force" => terms.forces = true,
            b"justid" => terms.only_ids = true,
            b"idle" if has_more => {
                time_ms = Some((now_ms as i64).saturating_sub(number(call, index, "IDLE option", "XCLAIM")?));
                index += 1;
            }
            b"time" if has_more => {
                time_ms = Some(number(call, index, "TIME option", "XCLAIM")?);
                index += 1;
            }
            b"retrycount" if has_more => {
                terms.count = number(call, index, "RETRYCOUNT option", "XCLAIM")?.try_into().ok();
                index += 1;
            }
            b"lastid" if has_more => {
                last = arguments::id(call.argument(index))?;
                index += 1;
            }
            _ => return Err(StreamError::claim_option(option).into()),
        }
    }
    // As in Redis, a time in the future is now.
    terms.time_ms = time_ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms <= now_ms).unwrap_or(now_ms);
    let is_later = last > group.last;
    group.last = group.last.max(last);
    let mut claim = Claim::of(call, &stream, group, terms, now_ms);
    if is_later {
        claim.edit.put_group(call.argument(2), &claim.group)?;
    }
    for id in ids {
        claim.claim(id)?;
    }
    claim.write(call)?.answer(call)
}

fn xautoclaim(call: &mut Call<'_>) -> Result<(), Refusal> {
    let now_ms = arguments::now_ms();
    let idle_ms_min = number(call, 4, "min-idle-time", "XAUTOCLAIM")?.max(0) as u64;
    let mut terms = Terms { idle_ms_min, time_ms: now_ms, count: None, forces: false, only_ids: false };
    let first = arguments::interval_start(call.argument(5))?;
    let (mut count_max, mut index) = (COUNT_DEFAULT, 6);
    while index < call.request.len() {
        match call.argument(index).to_ascii_lowercase().as_slice() {
            b"count" if index + 1 < call.request.len() => {
                let count =
                    resp::parse_integer(call.argument(index + 1)).filter(|count| (1..=COUNT_MAX).contains(count));
                count_max = count.ok_or(StreamError::ClaimCount)? as u64;
                index += 1;
            }
            b"justid" => terms.only_ids = true,
            _ => return Err(Refusal::Syntax),
        }
        index += 1;
    }
    let (stream, group) = group(call)?.ok_or_else(|| arguments::no_group(call, 1, 2))?;
    let number = group.number;
    let mut claim = Claim::of(call, &stream, group, terms, now_ms);
    let (mut attempt_count, mut done_count) = (count_max.saturating_mul(ATTEMPT_COUNT), 0);
    let (mut next, mut deleted) = (StreamId::ZERO, Vec::new());
    let mut gathered = Gathered::of(call);
    stream.each_pending(number, Ids::from(first), false, |id, _| {
        gathered.read(StreamId::BYTES)?;
        if attempt_count == 0 || done_count == count_max {
            next = id;
            return Ok(ControlFlow::Break(()));
        }
        attempt_count -= 1;
        let outcome = claim.claim(id)?;
        done_count += u64::from(outcome != Outcome::Left);
        if outcome == Outcome::Deleted {
            deleted.push(id);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let claimed = claim.write(call)?;
    call.reply.array(3);
    write_id(&mut call.reply, next);
    claimed.answer(call)?;
    call.reply.array(deleted.len());
    deleted.into_iter().for_each(|id| write_id(&mut call.reply, id));
    Ok(())
}
