//! One collection: its elements, and changes of its key.

use std::ops::{Bound, ControlFlow};

use hikv::{Expiry, Item, Limits};

use super::view::Changes;
use super::{CollectionType, Edit, Record, View};
use crate::errors::Refusal;

/// A collection as a command sees it.
#[derive(Clone)]
pub(crate) struct Collection<'a> {
    pub(super) view: View<'a>,
    pub(super) key: Vec<u8>,
    pub(crate) record: Record,
    pub(crate) expiry: Expiry,
}

impl<'a> Collection<'a> {
    pub(crate) fn collection_type(&self) -> CollectionType {
        self.record.collection_type
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.record.count
    }

    /// Returns the value of an element.
    pub(crate) fn get(&self, element: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        self.view.items.get(self.element_key(element))
    }

    /// Returns whether it has this element.
    pub(crate) fn contains(&self, element: &[u8]) -> Result<bool, Refusal> {
        self.view.items.contains(self.element_key(element))
    }

    /// Returns the elements between two in their order, with their values.
    pub(crate) fn range(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_reverse: bool,
    ) -> Result<impl Iterator<Item = Result<Item, Refusal>> + use<'a>, Refusal> {
        let range = self.view.layout.elements(self.record.id, bounds);
        let items = self.view.items.range(self.view.ordered_soon()?, range, is_reverse)?;
        let offset = self.view.layout.element_offset();
        Ok(items.map(move |item| {
            let (mut raw, value) = item?;
            raw.drain(..offset);
            Ok((raw, value))
        }))
    }

    /// Calls `each` with the elements between two in their order, and their values, until it breaks.
    pub(crate) fn each(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_reverse: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        let range = self.view.layout.elements(self.record.id, bounds);
        let offset = self.view.layout.element_offset();
        let each = |raw: &[u8], value: &[u8]| each(raw.get(offset..).unwrap_or_default(), value);
        self.view.items.each_of_range(self.view.ordered_soon()?, range, is_reverse, each)
    }

    /// Counts the elements between two in their order.
    pub(crate) fn count(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<u64, Refusal> {
        let range = self.view.layout.elements(self.record.id, bounds);
        self.view.items.count(self.view.ordered_soon()?, range)
    }

    /// Returns all elements in their order, with their values.
    pub(crate) fn elements(&self) -> Result<impl Iterator<Item = Result<Item, Refusal>> + use<'a>, Refusal> {
        self.range((Bound::Unbounded, Bound::Unbounded), false)
    }

    /// Returns the mean size of the first elements and their values.
    pub(crate) fn sample_bytes(&self, count: usize) -> Result<usize, Refusal> {
        let (mut bytes, mut number) = (0, 0);
        for item in self.elements()?.take(count) {
            let (element, value) = item?;
            (bytes, number) = (bytes + element.len() + value.len(), number + 1);
        }
        Ok(bytes.checked_div(number).unwrap_or(0))
    }

    /// Begins a change of elements.
    pub(crate) fn edit(self) -> Edit<'a> {
        Edit::of(self, false)
    }

    /// Deletes the collection. Its elements are deleted in the background.
    pub(crate) fn delete(&self, changes: &mut Changes) {
        changes.delete(self.record_key());
        changes.put(self.view.layout.dead(self.record.id), Vec::new(), Expiry::NEVER);
        self.forget_due(changes);
        // With its row.
        self.view.collections.pace.note_dead(self.record.count + 1);
        self.view.collections.wake.wake();
    }

    /// Gives the collection another expiry.
    pub(crate) fn expire(&self, expiry: Expiry, changes: &mut Changes) {
        self.forget_due(changes);
        Collection { expiry, ..self.clone() }.put_record(changes);
    }

    /// Gives the collection another key, which is neither a collection nor a string, perhaps in another database.
    pub(crate) fn move_to(&self, view: View<'a>, key: &[u8], changes: &mut Changes) -> Result<(), Refusal> {
        view.layout.check_key(view.namespace, key)?;
        view.note_use()?;
        changes.delete(self.record_key());
        Collection { view, key: key.to_vec(), ..self.clone() }.put_record(changes);
        Ok(())
    }

    /// Copies the collection to another key, which is neither a collection nor a string, perhaps in another database.
    /// Calls `read` with the length of each element, which may refuse it.
    pub(crate) fn copy_to(
        &self,
        view: View<'a>,
        key: &[u8],
        changes: &mut Changes,
        mut read: impl FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        view.layout.check_key(view.namespace, key)?;
        view.note_use()?;
        let id = view.new_id()?;
        let copy = Collection { view, key: key.to_vec(), record: Record { id, ..self.record }, expiry: self.expiry };
        let mut len_bytes = 0;
        for item in self.elements()? {
            let (element, value) = item?;
            read(element.len() + value.len())?;
            let key = copy.element_key(&element);
            len_bytes += Limits::batch_op_bytes(&key, &value);
            if len_bytes > Limits::BATCH_BYTES_MAX {
                return Err(hikv::Error::BatchTooLong { len_bytes }.into());
            }
            changes.put(key, value, Expiry::NEVER);
        }
        copy.put_record(changes);
        Ok(())
    }

    /// Puts the record, and the row of its expiry if it expires.
    pub(super) fn put_record(&self, changes: &mut Changes) {
        changes.put(self.record_key(), self.record.bytes(), self.expiry);
        if !self.expiry.is_never() {
            let owner = [&self.view.namespace.id().number().to_be_bytes(), &self.key[..]].concat();
            changes.put(self.view.layout.due(self.expiry, self.record.id), owner, Expiry::NEVER);
        }
    }

    pub(super) fn forget_due(&self, changes: &mut Changes) {
        if !self.expiry.is_never() {
            changes.delete(self.view.layout.due(self.expiry, self.record.id));
        }
    }

    pub(super) fn record_key(&self) -> Vec<u8> {
        self.view.record_key(&self.key)
    }

    pub(super) fn element_key(&self, element: &[u8]) -> Vec<u8> {
        self.view.layout.element(self.record.id, element)
    }
}
