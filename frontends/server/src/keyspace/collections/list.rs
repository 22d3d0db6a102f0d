//! Lists: elements at consecutive positions, which grow in both directions.
//!
//! The position of each element is known, so elements are read by their keys and not by the order of keys. An element
//! in the middle is inserted or removed by moving the elements between it and the nearer end.

use std::ops::{ControlFlow, Range};

use hikv::{Expiry, Limits};

use super::view::Changes;
use super::{Collection, Edit, Record};
use crate::errors::{FixedError, Refusal};

/// The number of elements that are read together.
const GROUP_COUNT: u64 = 64;
/// A list that is removed with more elements than this is deleted as a whole; its elements go in the background.
const REMOVED_COUNT_MAX: u64 = 128;

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Left,
    Right,
}

impl End {
    /// Parses `LEFT` or `RIGHT`.
    pub(crate) fn of(argument: &[u8]) -> Option<End> {
        match () {
            () if argument.eq_ignore_ascii_case(b"left") => Some(End::Left),
            () if argument.eq_ignore_ascii_case(b"right") => Some(End::Right),
            () => None,
        }
    }
}

/// A list as a command reads it.
pub(crate) struct List<'a>(Collection<'a>);

impl<'a> List<'a> {
    pub(crate) fn of(collection: Collection<'a>) -> List<'a> {
        List(collection)
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    /// Returns the index that a client means: a negative one counts from the end. It may be outside.
    pub(crate) fn index_of(&self, number: i64) -> i64 {
        if number < 0 { number.saturating_add_unsigned(self.len()) } else { number }
    }

    /// Returns the indices from one to another that a client gives, both included, as far as they are inside.
    pub(crate) fn span(&self, first: i64, last: i64) -> Range<u64> {
        let (first, last) = (self.index_of(first).max(0) as u64, self.index_of(last));
        let end = if last < 0 { 0 } else { (last as u64).saturating_add(1).min(self.len()) };
        if first >= end { 0..0 } else { first..end }
    }

    /// Returns the element at an index that a client gives; `None` if it is outside.
    pub(crate) fn get(&self, number: i64) -> Result<Option<Vec<u8>>, Refusal> {
        let Ok(index) = u64::try_from(self.index_of(number)) else { return Ok(None) };
        if index >= self.len() { Ok(None) } else { self.0.get(&position(self.0.record.first.wrapping_add(index))) }
    }

    /// Calls `each` with the elements at these indices and their indices, in their order or from the last one on, until
    /// it breaks.
    pub(crate) fn each(
        &self,
        indices: Range<u64>,
        is_reverse: bool,
        mut each: impl FnMut(u64, &[u8]) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        let Range { mut start, mut end } = indices;
        while start < end {
            let group: Vec<u64> = if is_reverse {
                let from = end.saturating_sub(GROUP_COUNT).max(start);
                (from..std::mem::replace(&mut end, from)).rev().collect()
            } else {
                let to = end.min(start + GROUP_COUNT);
                (std::mem::replace(&mut start, to)..to).collect()
            };
            let first = self.0.record.first;
            let keys: Vec<_> =
                group.iter().map(|index| self.0.element_key(&position(first.wrapping_add(*index)))).collect();
            let (mut indices, mut flow, mut has_all) = (group.iter(), Ok(ControlFlow::Continue(())), true);
            self.0.view.items.multi_get_with(&keys, |value| match (indices.next(), value) {
                _ if !matches!(flow, Ok(ControlFlow::Continue(()))) => {}
                (Some(index), Some(value)) => flow = each(*index, value),
                _ => has_all = false,
            })?;
            if flow?.is_break() {
                return Ok(());
            }
            if !has_all {
                return Err(FixedError::DamagedCollection.into());
            }
        }
        Ok(())
    }

    /// Returns the elements at these indices.
    pub(crate) fn values(&self, indices: Range<u64>) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut values = Vec::new();
        self.each(indices, false, |_, value| {
            values.push(value.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(values)
    }

    /// Returns the elements at these indices unless they have more bytes than this.
    fn values_up_to(&self, indices: Range<u64>, len_bytes_max: u64) -> Result<Option<Vec<Vec<u8>>>, Refusal> {
        let (mut values, mut len_bytes) = (Vec::new(), 0);
        self.each(indices, false, |_, value| {
            len_bytes += value.len() as u64;
            if len_bytes > len_bytes_max {
                return Ok(ControlFlow::Break(()));
            }
            values.push(value.to_vec());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((len_bytes <= len_bytes_max).then_some(values))
    }

    /// Begins a change.
    pub(crate) fn edit(&self) -> ListEdit<'a> {
        ListEdit::of(self.0.clone().edit())
    }

    /// Keeps only the elements at these indices.
    pub(crate) fn keep(&self, kept: Range<u64>) -> Result<(), Refusal> {
        let mut changes = Changes::default();
        let (kept_count, removed_count) = (kept.end - kept.start, self.len() - (kept.end - kept.start));
        let is_rewritten = removed_count > REMOVED_COUNT_MAX.max(kept_count);
        let removal_bytes = removed_count.saturating_mul(Limits::BATCH_OP_BYTES);
        let rewritten = if is_rewritten { self.values_up_to(kept.clone(), removal_bytes)? } else { None };
        match rewritten {
            None => {
                let mut edit = self.edit();
                (0..kept.start).for_each(|_| edit.cut(End::Left));
                (kept.end..self.len()).for_each(|_| edit.cut(End::Right));
                edit.finish(&mut changes)?;
            }
            // The elements that stay are fewer, and not long: they are written again.
            Some(values) => {
                self.0.delete(&mut changes);
                if !values.is_empty() {
                    let record = Record { id: self.0.view.new_id()?, count: 0, ..self.0.record };
                    let mut renewed = Collection { record, ..self.0.clone() };
                    for value in values {
                        let at = position(record.first.wrapping_add(renewed.record.count));
                        changes.put(renewed.element_key(&at), value, Expiry::NEVER);
                        renewed.record.count += 1;
                    }
                    renewed.record.end = record.first.wrapping_add(renewed.record.count);
                    renewed.put_record(&mut changes);
                }
            }
        }
        changes.write(self.0.view.items)
    }

    /// Inserts a value before the element at an index.
    pub(crate) fn insert(&self, index: u64, value: &[u8]) -> Result<(), Refusal> {
        let mut edit = self.edit();
        if index < self.len() / 2 {
            let moved = self.values(0..index)?;
            edit.push(End::Left, value.to_vec())?;
            moved.into_iter().chain([value.to_vec()]).zip(0..).try_for_each(|(value, to)| edit.replace(to, value))?;
        } else {
            let moved = self.values(index..self.len())?;
            edit.push(End::Right, value.to_vec())?;
            let values = [value.to_vec()].into_iter().chain(moved);
            values.zip(index..).try_for_each(|(value, to)| edit.replace(to, value))?;
        }
        edit.write()
    }

    /// Removes the elements at these indices, which are in ascending order.
    pub(crate) fn remove(&self, indices: &[u64]) -> Result<(), Refusal> {
        let (Some(&first), Some(&last)) = (indices.first(), indices.last()) else { return Ok(()) };
        let count = indices.len() as u64;
        if count == self.len() {
            return self.keep(0..0);
        }
        let mut edit = self.edit();
        let stays = |index: &u64| indices.binary_search(index).is_err();
        if last < self.len() - first {
            let values = self.values(0..last + 1)?;
            let moved = values.into_iter().zip(0..).filter(|(_, index)| stays(index)).map(|(value, _)| value);
            // From `count` on, so that the last of them replaces the last removed element.
            moved.zip(count..).try_for_each(|(value, to)| edit.replace(to, value))?;
            (0..count).for_each(|_| edit.cut(End::Left));
        } else {
            let values = self.values(first..self.len())?;
            let moved = values.into_iter().zip(first..).filter(|(_, index)| stays(index)).map(|(value, _)| value);
            moved.zip(first..).try_for_each(|(value, to)| edit.replace(to, value))?;
            (0..count).for_each(|_| edit.cut(End::Right));
        }
        edit.write()
    }
}

/// A change of a list, which may be a new one.
pub(crate) struct ListEdit<'a>(Edit<'a>);

impl<'a> ListEdit<'a> {
    pub(crate) fn of(edit: Edit<'a>) -> ListEdit<'a> {
        ListEdit(edit)
    }

    pub(super) fn inner(&mut self) -> &mut Edit<'a> {
        &mut self.0
    }

    pub(super) fn into_inner(self) -> Edit<'a> {
        self.0
    }

    pub(crate) fn len(&mut self) -> u64 {
        self.0.record().count
    }

    /// Adds an element at an end.
    pub(crate) fn push(&mut self, end: End, value: Vec<u8>) -> Result<(), Refusal> {
        let record = self.0.record();
        record.count += 1;
        let at = match end {
            End::Left => {
                record.first = record.first.wrapping_sub(1);
                record.first
            }
            End::Right => {
                record.end = record.end.wrapping_add(1);
                record.end.wrapping_sub(1)
            }
        };
        self.0.set(position(at), value)
    }

    /// Removes the element at an end of the list, which is not empty.
    pub(crate) fn cut(&mut self, end: End) {
        let record = self.0.record();
        record.count -= 1;
        let at = match end {
            End::Left => {
                record.first = record.first.wrapping_add(1);
                record.first.wrapping_sub(1)
            }
            End::Right => {
                record.end = record.end.wrapping_sub(1);
                record.end
            }
        };
        self.0.unset(position(at));
    }

    /// Removes and returns the element at an end of the list, which is not empty.
    pub(crate) fn pop(&mut self, end: End) -> Result<Vec<u8>, Refusal> {
        let record = *self.0.record();
        let at = if end == End::Left { record.first } else { record.end.wrapping_sub(1) };
        let value = self.0.get(&position(at))?.ok_or(FixedError::DamagedCollection)?;
        self.cut(end);
        Ok(value)
    }

    /// Replaces the element at an index of the changed list.
    pub(crate) fn replace(&mut self, index: u64, value: Vec<u8>) -> Result<(), Refusal> {
        let at = self.0.record().first.wrapping_add(index);
        self.0.set(position(at), value)
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

fn position(at: u64) -> Vec<u8> {
    at.to_be_bytes().to_vec()
}
