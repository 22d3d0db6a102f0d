//! Streams: entries by their ids, and groups of consumers with the entries that are pending for them.
//!
//! A group and a consumer have numbers, which are the prefixes of their elements. A pending entry is stored twice, by
//! the group and by the consumer that owns it, always in one batch; the consumer's element counts its pending entries.

mod edit;
mod id;
mod rows;

use std::ops::{Bound, ControlFlow};

use super::Collection;
use super::record::StreamState;
use crate::errors::{FixedError, Refusal};
pub(crate) use edit::StreamEdit;
pub(crate) use id::StreamId;
pub(crate) use rows::{Consumer, Delivery, Group, texts};

/// Ids from one to another, both included.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) first: StreamId,
    pub(crate) last: StreamId,
}

impl Ids {
    pub(crate) const ALL: Ids = Ids { first: StreamId::ZERO, last: StreamId::MAX };

    pub(crate) fn from(first: StreamId) -> Ids {
        Ids { first, ..Ids::ALL }
    }
}

/// An entry: its id, and its fields and values, which [`texts`] parses.
pub(crate) type StreamEntry = (StreamId, Vec<u8>);

/// A stream as a command sees it.
#[derive(Clone)]
pub(crate) struct Stream<'a>(Collection<'a>);

impl<'a> Stream<'a> {
    /// Wraps a collection of this type.
    pub(crate) fn of(collection: Collection<'a>) -> Stream<'a> {
        Stream(collection)
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn state(&self) -> StreamState {
        self.0.record.stream
    }

    /// Begins a change.
    pub(crate) fn edit(&self) -> StreamEdit<'a> {
        StreamEdit::of(self.0.clone().edit())
    }

    /// Returns the value of an entry.
    pub(crate) fn entry(&self, id: StreamId) -> Result<Option<Vec<u8>>, Refusal> {
        self.0.get(&rows::entry(id))
    }

    /// Calls `each` with the id and the value of each entry, in the order of ids or in reverse, until it breaks.
    pub(crate) fn each(
        &self,
        ids: Ids,
        is_reverse: bool,
        mut each: impl FnMut(StreamId, &[u8]) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        let each = |element: &[u8], value: &[u8]| each(rows::id_of(element)?, value);
        self.each_between((rows::entry(ids.first), rows::entry(ids.last)), is_reverse, each)
    }

    fn each_between(
        &self,
        (first, last): (Vec<u8>, Vec<u8>),
        is_reverse: bool,
        each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        if first > last {
            return Ok(());
        }
        self.0.each((Bound::Included(&first), Bound::Included(&last)), is_reverse, each)
    }

    /// Returns the first entry, or the last one.
    pub(crate) fn end(&self, is_last: bool) -> Result<Option<StreamEntry>, Refusal> {
        let mut found = None;
        if self.len() > 0 {
            self.each(Ids::ALL, is_last, |id, value| {
                found = Some((id, value.to_vec()));
                Ok(ControlFlow::Break(()))
            })?;
        }
        Ok(found)
    }

    /// Returns the id of the first entry, zero if there is none.
    pub(crate) fn first_id(&self) -> Result<StreamId, Refusal> {
        Ok(self.end(false)?.map_or(StreamId::ZERO, |(id, _)| id))
    }

    /// Returns all groups with their names, in the order of these.
    pub(crate) fn groups(&self) -> Result<Vec<(Vec<u8>, Group)>, Refusal> {
        let ((first, end), mut groups) = (rows::GROUPS, Vec::new());
        self.0.each((Bound::Included(&first), Bound::Excluded(&end)), false, |element, value| {
            groups.push((rows::group_name(element).to_vec(), Group::of(value)?));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(groups)
    }

    /// Returns all consumers of a group, in the order of their names.
    pub(crate) fn consumers(&self, group: u64) -> Result<Vec<Consumer>, Refusal> {
        let (all, mut consumers) = ((rows::consumer(group, 0), rows::consumer(group, u64::MAX)), Vec::new());
        self.each_between(all, false, |element, value| {
            consumers.push(Consumer::of(rows::number_of(element)?, value)?);
            Ok(ControlFlow::Continue(()))
        })?;
        consumers.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(consumers)
    }

    /// Calls `each` with the pending entries of a group, in the order of ids or in reverse, until it breaks.
    pub(crate) fn each_pending(
        &self,
        group: u64,
        ids: Ids,
        is_reverse: bool,
        mut each: impl FnMut(StreamId, Delivery) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        let each = |element: &[u8], value: &[u8]| each(rows::id_of(element)?, Delivery::of(value)?);
        self.each_between((rows::pending(group, ids.first), rows::pending(group, ids.last)), is_reverse, each)
    }

    /// Calls `each` with the ids of the entries that are pending for a consumer, until it breaks.
    pub(crate) fn each_owned(
        &self,
        (group, consumer): (u64, u64),
        ids: Ids,
        mut each: impl FnMut(StreamId) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        let between = (rows::owned(group, consumer, ids.first), rows::owned(group, consumer, ids.last));
        self.each_between(between, false, |element, _| each(rows::id_of(element)?))
    }
}

/// Finds groups, consumers and deliveries, in a stream or after the changes of an edit.
pub(crate) trait StreamParts {
    /// Returns the value of an element.
    fn value_of(&self, element: &[u8]) -> Result<Option<Vec<u8>>, Refusal>;

    /// Returns the group of this name.
    fn group(&self, name: &[u8]) -> Result<Option<Group>, Refusal> {
        self.value_of(&rows::group(name))?.map(|value| Group::of(&value)).transpose()
    }

    /// Returns the consumer of this name.
    fn consumer(&self, group: u64, name: &[u8]) -> Result<Option<Consumer>, Refusal> {
        let Some(number) = self.value_of(&rows::consumer_name(group, name))? else { return Ok(None) };
        self.numbered_consumer(group, rows::stored_number(&number)?).map(Some)
    }

    /// Returns the consumer of a number that is stored elsewhere in the stream.
    fn numbered_consumer(&self, group: u64, number: u64) -> Result<Consumer, Refusal> {
        let value = self.value_of(&rows::consumer(group, number))?.ok_or(FixedError::DamagedCollection)?;
        Consumer::of(number, &value)
    }

    /// Returns the delivery of a pending entry.
    fn delivery(&self, group: u64, id: StreamId) -> Result<Option<Delivery>, Refusal> {
        self.value_of(&rows::pending(group, id))?.map(|value| Delivery::of(&value)).transpose()
    }
}

impl StreamParts for Stream<'_> {
    fn value_of(&self, element: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        self.0.get(element)
    }
}

impl StreamParts for StreamEdit<'_> {
    fn value_of(&self, element: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        self.0.get(element)
    }
}
