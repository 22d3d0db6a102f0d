//! Changes of the catalog, each as one batch.
//!
//! | change | conditions | batch |
//! |---|---|---|
//! | create | the name is absent; the head as read | the name, the id; head: next id |
//! | rename, swap | the names as read | the names, the ids |
//! | note types | the name as read | the name |
//! | drop | the name and the head as read | the name goes, the id is dead; head: counts |
//! | clear | the name and the head as read | the name has a new id, the old one is dead; head: next id |
//!
//! A crash leaves the change done or not. The conditions hold unless the background moves a record: the change is then
//! tried again.

use engine::{BatchOp, Condition, Engine, Error, Expiry, Version};

use crate::names::{Catalog, TREE_COUNT_MAX, damaged};
use crate::record::{HEAD_KEY, Head, TreeRecord, id_key, name_key};
use crate::tree_id::TreeId;

/// The value that a key gets, with its expiry; `None` if the key is deleted.
type New = Option<(Vec<u8>, Expiry)>;

/// A batch of the catalog, with its keys and values.
#[derive(Default)]
pub(crate) struct Batch {
    expected: Vec<(Vec<u8>, Option<Version>)>,
    ops: Vec<(Vec<u8>, New)>,
}

impl Batch {
    pub(crate) fn expect(&mut self, key: &[u8], version: Option<Version>) {
        self.expected.push((key.to_vec(), version));
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.put_until(key, value, Expiry::NEVER);
    }

    pub(crate) fn put_until(&mut self, key: Vec<u8>, value: Vec<u8>, expiry: Expiry) {
        self.ops.push((key, Some((value, expiry))));
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.ops.push((key.to_vec(), None));
    }

    pub(crate) fn write(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.write_after(engine, &[], &[])
    }

    /// Writes the batch behind other conditions and operations, in one step with them.
    pub(crate) fn write_after(
        &self,
        engine: &dyn Engine,
        conditions: &[Condition<'_>],
        ops: &[BatchOp<'_>],
    ) -> Result<(), Error> {
        let own = self.expected.iter().map(|(key, version)| Condition { key, required: (*version).into() });
        let conditions: Vec<_> = conditions.iter().copied().chain(own).collect();
        let own = self.ops.iter().map(|(key, value)| op(key, value.as_ref()));
        let ops: Vec<_> = ops.iter().copied().chain(own).collect();
        engine.write_batch_if(&conditions, &ops)
    }
}

fn op<'b>(key: &'b [u8], value: Option<&'b (Vec<u8>, Expiry)>) -> BatchOp<'b> {
    match value {
        None => BatchOp::Delete { key },
        Some((value, expiry)) if expiry.is_never() => BatchOp::Put { key, value },
        Some((value, expiry)) => BatchOp::PutUntil { key, value, expiry: *expiry },
    }
}

impl Catalog<'_> {
    /// Creates a tree in a store with a catalog, and returns its id. Does not check whether the name is allowed.
    ///
    /// # Errors
    /// [`Error::TreeExists`], [`Error::TooManyTrees`]; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn create(self, name: &str) -> Result<TreeId, Error> {
        self.change(|batch| {
            if self.record(name)?.is_some() {
                return Err(Error::TreeExists { name: name.into() });
            }
            let mut head = self.expected_head(batch)?;
            if head.tree_count >= TREE_COUNT_MAX {
                return Err(Error::TooManyTrees { limit: TREE_COUNT_MAX });
            }
            let id = next_id(&mut head)?;
            head.tree_count += 1;
            batch.expect(&name_key(name), None);
            batch.put(name_key(name), TreeRecord::new(id, self.now_ms()).bytes());
            batch.put(id_key(id), name.into());
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok(id)
        })
    }

    /// Records the types of a tree, or compares them with those that it has. Writes only the first time.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`], [`Error::NoSuchTree`]; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn note_types(self, name: &str, types: &str) -> Result<(), Error> {
        if self.has_types(name, types)? {
            return Ok(());
        }
        self.change(|batch| {
            let mut record = self.expected_record(name, batch)?;
            record.types = types.into();
            batch.put(name_key(name), record.bytes());
            Ok(())
        })
    }

    /// Returns true if a tree has these types, and false if it has none.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`], [`Error::NoSuchTree`]; otherwise as for [`engine::Reads::get`].
    pub fn has_types(self, name: &str, types: &str) -> Result<bool, Error> {
        let (_, record) = self.record(name)?.ok_or_else(|| Error::NoSuchTree { name: name.into() })?;
        match &*record.types {
            "" => Ok(false),
            stored if stored == types => Ok(true),
            stored => Err(Error::TypeMismatch { stored: stored.into(), asked: types.into() }),
        }
    }

    /// Gives the tree `from` the name `to`. Does not check whether the name is allowed.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`], [`Error::TreeExists`]; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn rename(self, from: &str, to: &str) -> Result<(), Error> {
        self.change(|batch| {
            let record = self.expected_record(from, batch)?;
            if self.record(to)?.is_some() {
                return Err(Error::TreeExists { name: to.into() });
            }
            batch.expect(&name_key(to), None);
            batch.delete(&name_key(from));
            batch.put(name_key(to), record.bytes());
            batch.put(id_key(record.id), to.into());
            Ok(())
        })
    }

    /// Exchanges the contents of two trees; returns their ids after it.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`]; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn swap(self, [a, b]: [&str; 2]) -> Result<[TreeId; 2], Error> {
        self.change(|batch| {
            let (of_a, of_b) = (self.expected_record(a, batch)?, self.expected_record(b, batch)?);
            if a != b {
                for (name, record) in [(a, &of_b), (b, &of_a)] {
                    batch.put(name_key(name), record.bytes());
                    batch.put(id_key(record.id), name.into());
                }
            }
            Ok([of_b.id, of_a.id])
        })
    }

    /// Removes a tree and returns its id, which is dead: [`Catalog::dead_ids`].
    ///
    /// # Errors
    /// [`Error::NoSuchTree`]; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn drop_tree(self, name: &str) -> Result<TreeId, Error> {
        self.change(|batch| {
            let record = self.expected_record(name, batch)?;
            let mut head = self.expected_head(batch)?;
            head.tree_count = head.tree_count.saturating_sub(1);
            head.dead_count += 1;
            batch.delete(&name_key(name));
            batch.put(id_key(record.id), Vec::new());
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok(record.id)
        })
    }

    /// Gives a tree a new id, so that it is empty; returns the old id, which is dead, and the new one.
    ///
    /// # Errors
    /// [`Error::NoSuchTree`]; [`Error::TooManyTrees`] after four billion calls; otherwise as for
    /// [`engine::Atomic::write_batch_if`].
    pub fn clear(self, name: &str) -> Result<[TreeId; 2], Error> {
        self.change(|batch| {
            let mut record = self.expected_record(name, batch)?;
            let mut head = self.expected_head(batch)?;
            let old = std::mem::replace(&mut record.id, next_id(&mut head)?);
            head.dead_count += 1;
            batch.put(name_key(name), record.bytes());
            batch.put(id_key(record.id), name.into());
            batch.put(id_key(old), Vec::new());
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok([old, record.id])
        })
    }

    /// Writes the batch that `plan` makes, and plans it again if a record was moved in between.
    pub(crate) fn change<R>(self, plan: impl Fn(&mut Batch) -> Result<R, Error>) -> Result<R, Error> {
        loop {
            let mut batch = Batch::default();
            let planned = plan(&mut batch)?;
            match batch.write(self.engine) {
                Ok(()) => return Ok(planned),
                Err(Error::ConditionFailed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn expected_head(self, batch: &mut Batch) -> Result<Head, Error> {
        let (version, head) = self.head()?.ok_or(damaged("the head of the catalog is missing"))?;
        batch.expect(&HEAD_KEY, Some(version));
        Ok(head)
    }

    fn expected_record(self, name: &str, batch: &mut Batch) -> Result<TreeRecord, Error> {
        let (version, record) = self.record(name)?.ok_or_else(|| Error::NoSuchTree { name: name.into() })?;
        batch.expect(&name_key(name), Some(version));
        Ok(record)
    }
}

/// Returns the keys and values of the records of a tree.
pub(crate) fn tree_records(name: &str, id: TreeId, created_ms: u64) -> [(Vec<u8>, Vec<u8>); 2] {
    [(name_key(name), TreeRecord::new(id, created_ms).bytes()), (id_key(id), name.into())]
}

fn next_id(head: &mut Head) -> Result<TreeId, Error> {
    advance(head, 1)
}

/// Takes the next ids, and returns the first.
pub(crate) fn advance(head: &mut Head, count: u32) -> Result<TreeId, Error> {
    let id = head.next;
    let next = id.number().checked_add(count).ok_or(Error::TooManyTrees { limit: u32::MAX })?;
    head.next = TreeId::new(next);
    Ok(id)
}
