//! A change of a stream.

use super::{Consumer, Delivery, Group, StreamId, StreamParts, rows};
use crate::errors::{FixedError, Refusal};
use crate::keyspace::collections::record::StreamState;
use crate::keyspace::collections::{Changes, Edit};

/// A change of a stream, which may be a new one.
pub(crate) struct StreamEdit<'a>(pub(super) Edit<'a>);

impl<'a> StreamEdit<'a> {
    /// Wraps a change of a collection of this type.
    pub(crate) fn of(edit: Edit<'a>) -> StreamEdit<'a> {
        StreamEdit(edit)
    }

    /// Returns the state after the changes so far, which may be changed.
    pub(crate) fn state(&mut self) -> &mut StreamState {
        &mut self.0.record().stream
    }

    /// Returns the number of entries after the changes so far.
    pub(crate) fn len(&mut self) -> u64 {
        self.0.record().count
    }

    /// Adds an entry, whose id is greater than all before it.
    pub(crate) fn add<'t>(&mut self, id: StreamId, texts: impl Iterator<Item = &'t [u8]>) -> Result<(), Refusal> {
        let mut value = Vec::new();
        texts.for_each(|text| rows::put_text(&mut value, text));
        self.0.set(rows::entry(id), value)?;
        let record = self.0.record();
        record.count += 1;
        record.stream.last = id;
        record.stream.added_count += 1;
        Ok(())
    }

    /// Deletes an entry; returns false if there is none.
    pub(crate) fn delete(&mut self, id: StreamId) -> Result<bool, Refusal> {
        self.0.remove(rows::entry(id))
    }

    /// Deletes an entry that exists.
    pub(crate) fn cut(&mut self, id: StreamId) {
        self.0.unset(rows::entry(id));
        self.0.record().count -= 1;
    }

    pub(crate) fn put_group(&mut self, name: &[u8], group: &Group) -> Result<(), Refusal> {
        self.0.set(rows::group(name), group.value())
    }

    /// Makes a group.
    pub(crate) fn make_group(
        &mut self,
        name: &[u8],
        last: StreamId,
        read_count: Option<u64>,
    ) -> Result<Group, Refusal> {
        let group = Group { number: self.new_number(), last, read_count };
        self.put_group(name, &group)?;
        Ok(group)
    }

    /// Removes a group that has no consumers any more.
    pub(crate) fn remove_group(&mut self, name: &[u8]) {
        self.0.unset(rows::group(name));
    }

    fn new_number(&mut self) -> u64 {
        let next = &mut self.state().next_number;
        *next += 1;
        *next
    }

    pub(crate) fn put_consumer(&mut self, group: u64, consumer: &Consumer) -> Result<(), Refusal> {
        self.0.set(rows::consumer(group, consumer.number), consumer.value())
    }

    /// Makes a consumer.
    pub(crate) fn make_consumer(&mut self, group: u64, name: &[u8], seen_ms: u64) -> Result<Consumer, Refusal> {
        let consumer = Consumer { number: self.new_number(), seen_ms, pending_count: 0, name: name.to_vec() };
        self.0.set(rows::consumer_name(group, name), rows::number_value(consumer.number))?;
        self.put_consumer(group, &consumer)?;
        Ok(consumer)
    }

    /// Removes a consumer whose pending entries are removed as well.
    pub(crate) fn remove_consumer(&mut self, group: u64, consumer: &Consumer) {
        self.0.unset(rows::consumer_name(group, &consumer.name));
        self.0.unset(rows::consumer(group, consumer.number));
    }

    /// Makes an entry pending for a consumer, with its old delivery if there was one.
    pub(crate) fn deliver(
        &mut self,
        group: u64,
        id: StreamId,
        old: Option<Delivery>,
        new: Delivery,
    ) -> Result<(), Refusal> {
        let old_owner = old.map(|old| old.consumer);
        if old_owner != Some(new.consumer) {
            if let Some(old_owner) = old_owner {
                self.disown(group, old_owner, id)?;
            }
            let mut owner = self.numbered_consumer(group, new.consumer)?;
            owner.pending_count += 1;
            self.put_consumer(group, &owner)?;
            self.0.set(rows::owned(group, new.consumer, id), Vec::new())?;
        }
        self.0.set(rows::pending(group, id), new.value())
    }

    fn disown(&mut self, group: u64, consumer: u64, id: StreamId) -> Result<(), Refusal> {
        self.0.unset(rows::owned(group, consumer, id));
        let mut owner = self.numbered_consumer(group, consumer)?;
        owner.pending_count = owner.pending_count.checked_sub(1).ok_or(FixedError::DamagedCollection)?;
        self.put_consumer(group, &owner)
    }

    /// Removes an entry that is pending for a consumer, which is removed as well.
    pub(crate) fn forget(&mut self, (group, consumer): (u64, u64), id: StreamId) {
        self.0.unset(rows::owned(group, consumer, id));
        self.0.unset(rows::pending(group, id));
    }

    /// Ends the delivery of an entry.
    pub(crate) fn acknowledge(&mut self, group: u64, id: StreamId, delivery: Delivery) -> Result<(), Refusal> {
        self.disown(group, delivery.consumer, id)?;
        self.0.unset(rows::pending(group, id));
        Ok(())
    }

    /// Writes the change in one step.
    pub(crate) fn write(self) -> Result<(), Refusal> {
        self.0.write()
    }

    /// Adds the change to others, which are written in one step.
    pub(crate) fn finish(self, changes: &mut Changes) -> Result<(), Refusal> {
        self.0.finish(changes)
    }
}
