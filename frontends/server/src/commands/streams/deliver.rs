//! Deliveries of entries to a consumer of a group.

use std::cmp::Ordering::{Equal, Greater, Less};

use super::{arguments, replies};
use crate::errors::{FixedError, Refusal};
use crate::execution::call::Call;
use crate::execution::gathered::Gathered;
use crate::keyspace::collections::stream::{Consumer, Delivery, Group, Ids, Stream, StreamEdit, StreamId, StreamParts};
use crate::keyspace::collections::{Changes, StreamState};

/// An entry for a reply. One that was deleted has no value.
pub(super) type Delivered = (StreamId, Option<Vec<u8>>);

/// What XREADGROUP delivers to a consumer.
pub(super) struct Terms<'a> {
    pub(super) group: &'a [u8],
    pub(super) consumer: &'a [u8],
    /// 0 if there is no limit.
    pub(super) count_max: u64,
    /// The entries are not pending.
    pub(super) is_acknowledged: bool,
}

/// Deliveries of several streams, which are written in one step.
pub(super) struct Deliveries<'a> {
    terms: Terms<'a>,
    /// The streams that change, by their keys.
    edits: Vec<(&'a [u8], StreamEdit<'a>)>,
    /// The keys of the streams in which the consumer is new.
    made: Vec<usize>,
    gathered: Gathered,
    now_ms: u64,
}

impl<'a> Deliveries<'a> {
    pub(super) fn of(call: &Call<'a>, terms: Terms<'a>) -> Deliveries<'a> {
        let (gathered, now_ms) = (Gathered::of(call), arguments::now_ms());
        Deliveries { terms, edits: Vec::new(), made: Vec::new(), gathered, now_ms }
    }

    /// Returns the change of a stream, its group, and the consumer, which is made if it is new.
    fn begin(
        &mut self,
        key: (usize, &'a [u8]),
        stream: &Stream<'a>,
    ) -> Result<(&mut StreamEdit<'a>, Group, Consumer), Refusal> {
        let at = self.edits.iter().position(|(other, _)| *other == key.1).unwrap_or_else(|| {
            self.edits.push((key.1, stream.edit()));
            self.edits.len() - 1
        });
        let (edit, made) = (&mut self.edits[at].1, &mut self.made);
        let group = edit.group(self.terms.group)?.ok_or(FixedError::DamagedCollection)?;
        let consumer = consumer(edit, &group, self.terms.consumer, self.now_ms, || made.push(key.0))?;
        Ok((edit, group, consumer))
    }

    /// Delivers the entries after the last one that the group has; `None` if there is none.
    pub(super) fn deliver_new(
        &mut self,
        key: (usize, &'a [u8]),
        stream: &Stream<'a>,
    ) -> Result<Option<Vec<Delivered>>, Refusal> {
        let edited = self.edits.iter().find(|(other, _)| *other == key.1);
        let group = match edited {
            Some((_, edit)) => edit.group(self.terms.group)?,
            None => stream.group(self.terms.group)?,
        };
        let group = group.ok_or(FixedError::DamagedCollection)?;
        let first = group.last.next().filter(|first| *first <= stream.state().last);
        let Some(first) = first else { return Ok(None) };
        let entries = replies::read(&mut self.gathered, stream, Ids::from(first), self.terms.count_max, false)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let (is_acknowledged, now_ms) = (self.terms.is_acknowledged, self.now_ms);
        let name = self.terms.group;
        let progress = Progress::of(stream, &group)?;
        let (edit, mut group, consumer) = self.begin(key, stream)?;
        for (id, _) in &entries {
            progress.advance(&mut group, *id);
            if !is_acknowledged {
                let new = Delivery { consumer: consumer.number, time_ms: now_ms, count: 1 };
                let old = edit.delivery(group.number, *id)?;
                edit.deliver(group.number, *id, old, new)?;
            }
        }
        edit.put_group(name, &group)?;
        Ok(Some(entries.into_iter().map(|(id, value)| (id, Some(value))).collect()))
    }

    /// Delivers entries again that are pending for the consumer.
    pub(super) fn deliver_again(
        &mut self,
        key: (usize, &'a [u8]),
        stream: &Stream<'a>,
        after: StreamId,
    ) -> Result<Vec<Delivered>, Refusal> {
        let (count_max, now_ms) = (self.terms.count_max, self.now_ms);
        let (_, group, consumer) = self.begin(key, stream)?;
        let mut ids = Vec::new();
        if let Some(first) = after.next() {
            stream.each_owned((group.number, consumer.number), Ids::from(first), |id| {
                ids.push(id);
                Ok(replies::until(ids.len(), count_max))
            })?;
        }
        let mut entries = Vec::new();
        for id in ids {
            let value = stream.entry(id)?;
            self.gathered.read_and_add(value.as_ref().map_or(0, Vec::len))?;
            entries.push((id, value));
        }
        let (edit, ..) = self.begin(key, stream)?;
        for (id, _) in entries.iter().filter(|(_, value)| value.is_some()) {
            let old = edit.delivery(group.number, *id)?.ok_or(FixedError::DamagedCollection)?;
            let new = Delivery { time_ms: now_ms, count: old.count.saturating_add(1), ..old };
            edit.deliver(group.number, *id, Some(old), new)?;
        }
        Ok(entries)
    }

    /// Writes all deliveries, and returns the keys of the streams in which the consumer is new.
    pub(super) fn write(self, call: &Call<'_>) -> Result<Vec<usize>, Refusal> {
        let mut changes = Changes::default();
        self.edits.into_iter().try_for_each(|(_, edit)| edit.finish(&mut changes))?;
        changes.write(call.store())?;
        Ok(self.made)
    }
}

/// Returns the consumer of this name, which has been seen now. Makes it if it is new, and calls `on_made`.
pub(super) fn consumer(
    edit: &mut StreamEdit<'_>,
    group: &Group,
    name: &[u8],
    now_ms: u64,
    on_made: impl FnOnce(),
) -> Result<Consumer, Refusal> {
    match edit.consumer(group.number, name)? {
        Some(found) => {
            let seen = Consumer { seen_ms: now_ms, ..found };
            edit.put_consumer(group.number, &seen)?;
            Ok(seen)
        }
        None => {
            on_made();
            edit.make_consumer(group.number, name, now_ms)
        }
    }
}

/// How far a group has come: the number of entries that it has read, as Redis computes it.
pub(super) struct Progress {
    state: StreamState,
    len: u64,
    /// The id of the first entry, zero if there is none.
    first: StreamId,
}

impl Progress {
    pub(super) fn of(stream: &Stream<'_>, group: &Group) -> Result<Progress, Refusal> {
        let (state, len) = (stream.state(), stream.len());
        // Otherwise it does not matter.
        let needs_first = state.max_deleted != StreamId::ZERO || group.read_count.is_none();
        Ok(Progress { state, len, first: if needs_first { stream.first_id()? } else { StreamId::ZERO } })
    }

    /// Returns whether an entry from `start` on was deleted.
    fn has_gap_from(&self, start: StreamId) -> bool {
        let deleted = self.state.max_deleted;
        self.len > 0 && deleted != StreamId::ZERO && self.first <= deleted && start <= deleted
    }

    /// Returns the number of entries up to this one; `None` if it is not known.
    fn count_up_to(&self, id: StreamId) -> Option<u64> {
        let StreamState { last, max_deleted, added_count, .. } = self.state;
        if added_count == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= last || id == last {
            return Some(added_count);
        }
        if id > last || max_deleted != StreamId::ZERO && max_deleted >= self.first {
            return None;
        }
        match id.cmp(&self.first) {
            Less => Some(added_count.saturating_sub(self.len)),
            Equal => Some(added_count.saturating_sub(self.len) + 1),
            Greater => None,
        }
    }

    /// Notes that the group has got an entry, in the order of ids.
    fn advance(&self, group: &mut Group, id: StreamId) {
        if id <= group.last {
            return;
        }
        match group.read_count {
            Some(count) if !self.has_gap_from(id) => group.read_count = Some(count.saturating_add(1)),
            _ if self.state.added_count > 0 => group.read_count = self.count_up_to(id),
            _ => {}
        }
        group.last = id;
    }

    /// Returns the number of entries that the group has not got; `None` if it is not known.
    pub(super) fn lag(&self, group: &Group) -> Option<i64> {
        if self.state.added_count == 0 {
            return Some(0);
        }
        let known = group.read_count.filter(|_| !self.has_gap_from(group.last));
        let read_count = known.or_else(|| self.count_up_to(group.last))?;
        Some(self.state.added_count.wrapping_sub(read_count) as i64)
    }
}
