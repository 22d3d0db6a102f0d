//! The collections of a database, and changes of them.

use std::collections::BTreeMap;

use hikv::{Expiry, Ordered};

use super::layout::Layout;
use super::{Collection, CollectionType, Collections, Edit, Record};
use crate::errors::{FixedError, Refusal};
use crate::keyspace::items::{Change, Items};
use crate::keyspace::namespace::Namespace;
use crate::keyspace::order::Order;

/// The number of collections that are deleted together if all of them are too many.
const GROUP_COUNT: usize = 1 << 12;

/// The collections of a database as a command sees them, including the changes of its transaction.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(super) collections: &'a Collections,
    pub(super) order: &'a Order,
    pub(super) items: Items<'a>,
    pub(super) layout: Layout,
    pub(super) namespace: Namespace,
}

impl<'a> View<'a> {
    /// Returns the collections of a database; `None` while the store has none.
    #[inline]
    pub(crate) fn of(
        collections: &'a Collections,
        order: &'a Order,
        items: Items<'a>,
        namespace: Namespace,
    ) -> Option<View<'a>> {
        collections.layout().map(|layout| View { collections, order, items, layout, namespace })
    }

    /// Returns the ordered operations, waiting until keys are in order.
    pub(super) fn ordered(self) -> Result<&'a Ordered, Refusal> {
        Ok(&self.order.of(self.items.store())?.waiting)
    }

    /// Returns the ordered operations for a command that does not wait for long.
    pub(super) fn ordered_soon(self) -> Result<&'a Ordered, Refusal> {
        self.order.soon(self.items.store())
    }

    /// Returns an id for a collection.
    pub(super) fn new_id(self) -> Result<u64, Refusal> {
        self.collections.new_id(self.items.store(), self.layout)
    }

    /// Returns the collection of this key.
    pub(crate) fn find(self, key: &[u8]) -> Result<Option<Collection<'a>>, Refusal> {
        let Some((stored, expiry)) = self.items.held(&self.record_key(key))? else { return Ok(None) };
        let record = Record::of(&stored).ok_or(FixedError::DamagedCollection)?;
        Ok(Some(Collection { view: self, key: key.to_vec(), record, expiry }))
    }

    /// Returns whether a collection has this key.
    pub(crate) fn contains(self, key: &[u8]) -> Result<bool, Refusal> {
        self.items.contains(self.record_key(key))
    }

    /// Returns whether any of these keys is a collection.
    pub(crate) fn contain_any<'k>(self, keys: impl Iterator<Item = &'k [u8]>) -> Result<bool, Refusal> {
        let records: Vec<_> = keys.map(|key| self.record_key(key)).collect();
        let mut is_any = false;
        self.multi_get(&records, |record| is_any |= record.is_some())?;
        Ok(is_any)
    }

    /// Calls `found` with the record of each stored key, or `None`, in their order.
    pub(crate) fn multi_get(self, records: &[Vec<u8>], found: impl FnMut(Option<&[u8]>)) -> Result<(), Refusal> {
        self.items.multi_get_with(records, found)
    }

    /// Returns the stored key of the record of a client's key.
    pub(crate) fn record_key(self, key: &[u8]) -> Vec<u8> {
        self.layout.record(self.namespace, key)
    }

    /// Returns the client's key of a stored key, if it is that of a collection of this database.
    #[inline]
    pub(crate) fn key_of(self, raw: &[u8]) -> Option<&[u8]> {
        self.layout.key_of_record(self.namespace, raw)
    }

    /// Counts the collections.
    pub(crate) fn count(self) -> Result<u64, Refusal> {
        self.items.count(self.ordered()?, self.layout.records(self.namespace.id()))
    }

    /// Returns the keys of all collections in their order.
    pub(crate) fn keys(self) -> Result<impl Iterator<Item = Result<Vec<u8>, Refusal>> + use<'a>, Refusal> {
        let records = self.items.range(self.ordered()?, self.layout.records(self.namespace.id()), false)?;
        Ok(records.map(move |item| Ok(self.key_of(&item?.0).unwrap_or_default().to_vec())))
    }

    /// Deletes all collections, whose elements are deleted in the background.
    pub(crate) fn delete_all(self, changes: &mut Changes) -> Result<(), Refusal> {
        let records = self.layout.records(self.namespace.id());
        for item in self.items.range(self.ordered()?, records, false)? {
            let (raw, _) = item?;
            let found = self.find(self.key_of(&raw).unwrap_or_default())?;
            found.iter().for_each(|found| found.delete(changes));
        }
        Ok(())
    }

    /// Deletes some of the collections; returns false if there was none.
    pub(crate) fn delete_some(self) -> Result<bool, Refusal> {
        let (records, mut changes) = (self.layout.records(self.namespace.id()), Changes::default());
        for item in self.items.range(self.ordered()?, records, false)?.take(GROUP_COUNT) {
            let (raw, _) = item?;
            match self.find(self.key_of(&raw).unwrap_or_default())? {
                Some(found) => found.delete(&mut changes),
                // It has just expired, and has a due row.
                None => changes.delete(raw),
            }
        }
        let has_some = changes != Changes::default();
        changes.write(self.items)?;
        Ok(has_some)
    }

    /// Notes that the database gets another namespace in the same step. The collections of this one are then dead.
    pub(crate) fn note_flushed(self, changes: &mut Changes) {
        changes.put(self.layout.flushed(self.namespace.id()), Vec::new(), Expiry::NEVER);
        self.collections.pace.note_flushed();
        self.collections.wake.wake();
    }

    /// Makes a collection, which gets its first elements with the edit. The key is neither a collection nor a string.
    pub(crate) fn make(self, key: &[u8], collection_type: CollectionType) -> Result<Edit<'a>, Refusal> {
        self.layout.check_key(self.namespace, key)?;
        let id = self.new_id()?;
        let record = Record::new(collection_type, id);
        Ok(Edit::of(Collection { view: self, key: key.to_vec(), record, expiry: Expiry::NEVER }, true))
    }

    /// Records that the database has keys.
    pub(super) fn note_use(self) -> Result<(), Refusal> {
        self.items.note_use(self.namespace)
    }
}

/// Changes of stored keys, which are written in one step.
#[derive(Default, PartialEq)]
pub(crate) struct Changes(BTreeMap<Vec<u8>, Option<(Vec<u8>, Expiry)>>);

impl Changes {
    pub(crate) fn put(&mut self, raw: Vec<u8>, value: Vec<u8>, expiry: Expiry) {
        self.0.insert(raw, Some((value, expiry)));
    }

    pub(crate) fn delete(&mut self, raw: Vec<u8>) {
        self.0.insert(raw, None);
    }

    /// Writes the changes.
    pub(crate) fn write(self, items: Items<'_>) -> Result<(), Refusal> {
        let single = self.0.first_key_value().filter(|_| self.0.len() == 1 && !items.are_pending());
        if let Some((raw, Some((value, expiry)))) = single
            && expiry.is_never()
        {
            return items.put(raw, value);
        }
        items.change_each(self.0)
    }

    /// Returns the changes for a batch with others.
    pub(crate) fn as_batch(&self) -> Vec<(&[u8], Change<'_>)> {
        let changes = self.0.iter().map(|(raw, new)| match new {
            Some((value, expiry)) => (&raw[..], Change::Put(value, *expiry)),
            None => (&raw[..], Change::Delete),
        });
        changes.collect()
    }
}
