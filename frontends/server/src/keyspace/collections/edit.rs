//! A change of a collection's elements, as one batch.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hikv::Expiry;

use super::view::Changes;
use super::{Collection, Record};
use crate::errors::Refusal;

/// A change of a collection, which may be a new one. Nothing is stored before [`Edit::write`].
pub(crate) struct Edit<'a> {
    collection: Collection<'a>,
    /// As stored; `None` if the collection is new.
    before: Option<Record>,
    /// The new values; `None` for a removed element.
    elements: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// Elements of a new collection are stored already.
    is_ahead: bool,
}

impl<'a> Edit<'a> {
    pub(super) fn of(collection: Collection<'a>, is_new: bool) -> Edit<'a> {
        let before = (!is_new).then_some(collection.record);
        Edit { collection, before, elements: BTreeMap::new(), is_ahead: false }
    }

    /// Returns the record after the changes so far, whose count and ends may be changed.
    pub(crate) fn record(&mut self) -> &mut Record {
        &mut self.collection.record
    }

    /// Returns the value of an element after the changes so far.
    pub(crate) fn get(&self, element: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        match (self.elements.get(element), self.before) {
            (Some(changed), _) => Ok(changed.clone()),
            (None, None) if !self.is_ahead => Ok(None),
            (None, _) => self.collection.get(element),
        }
    }

    /// Returns whether there is such an element after the changes so far.
    pub(crate) fn contains(&self, element: &[u8]) -> Result<bool, Refusal> {
        match (self.elements.get(element), self.before) {
            (Some(changed), _) => Ok(changed.is_some()),
            (None, None) if !self.is_ahead => Ok(false),
            (None, _) => self.collection.contains(element),
        }
    }

    /// Puts an element, and counts it if it is new; returns whether it is.
    pub(crate) fn put(&mut self, element: Vec<u8>, value: Vec<u8>) -> Result<bool, Refusal> {
        let is_new = !self.contains(&element)?;
        self.collection.record.count += u64::from(is_new);
        self.set(element, value)?;
        Ok(is_new)
    }

    /// Puts and counts an element unless there is one; returns false if there is.
    pub(crate) fn put_if_absent(&mut self, element: Vec<u8>, value: Vec<u8>) -> Result<bool, Refusal> {
        let is_new = !self.contains(&element)?;
        if is_new {
            self.collection.record.count += 1;
            self.set(element, value)?;
        }
        Ok(is_new)
    }

    /// Removes an element, and counts it; returns false if there is none.
    pub(crate) fn remove(&mut self, element: Vec<u8>) -> Result<bool, Refusal> {
        let is_there = self.contains(&element)?;
        if is_there {
            self.collection.record.count -= 1;
            self.unset(element);
        }
        Ok(is_there)
    }

    /// Puts an element that the caller counts.
    pub(crate) fn set(&mut self, element: Vec<u8>, value: Vec<u8>) -> Result<(), Refusal> {
        self.collection.view.layout.check_element(&element)?;
        self.elements.insert(element, Some(value));
        Ok(())
    }

    /// Removes an element that the caller counts.
    pub(crate) fn unset(&mut self, element: Vec<u8>) {
        match self.elements.entry(element) {
            // It was never stored.
            Entry::Occupied(entry) if self.before.is_none() => _ = entry.remove(),
            Entry::Occupied(mut entry) => _ = entry.insert(None),
            Entry::Vacant(entry) => _ = entry.insert(None),
        }
    }

    /// Writes the change in one step. A collection without elements goes.
    pub(crate) fn write(self) -> Result<(), Refusal> {
        let (items, mut changes) = (self.collection.view.items, Changes::default());
        self.finish(&mut changes)?;
        changes.write(items)
    }

    /// Step 7: writes the elements so far of a new collection, with a row that calls them dead until the record is
    /// written. The background does not run.
    pub(super) fn write_ahead(&mut self) -> Result<(), Refusal> {
        let (view, mut changes) = (self.collection.view, Changes::default());
        if !self.is_ahead {
            changes.put(view.layout.dead(self.collection.record.id), Vec::new(), Expiry::NEVER);
        }
        for (element, value) in std::mem::take(&mut self.elements) {
            changes.put(self.collection.element_key(&element), value.unwrap_or_default(), Expiry::NEVER);
        }
        changes.write(view.items)?;
        self.is_ahead = true;
        Ok(())
    }

    /// Gives a new collection an expiry.
    pub(crate) fn expire(&mut self, expiry: Expiry) {
        self.collection.expiry = expiry;
    }

    /// Adds the change to others, which are written in one step.
    pub(crate) fn finish(self, changes: &mut Changes) -> Result<(), Refusal> {
        let Edit { collection, before, elements, is_ahead } = self;
        let (record, view) = (collection.record, collection.view);
        if before.is_none() && record.is_over() {
            return Ok(());
        }
        for (element, value) in elements {
            let key = collection.element_key(&element);
            match value {
                Some(value) => changes.put(key, value, Expiry::NEVER),
                None => changes.delete(key),
            }
        }
        if record.is_over() {
            changes.delete(collection.record_key());
            collection.forget_due(changes);
        } else if before.is_none() {
            view.note_use()?;
            collection.put_record(changes);
            if is_ahead {
                changes.delete(view.layout.dead(record.id));
            }
        } else if before != Some(record) {
            changes.put(collection.record_key(), record.bytes(), collection.expiry);
        }
        Ok(())
    }
}
