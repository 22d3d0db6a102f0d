//! A store under measurement: the common trait of hikv's stores, of the structures that the papers compare them with,
//! and of other stores. The interface for tests, with single steps and crashes, is `testkit::Operations`.

use std::ops::ControlFlow;

use hikv::QueueStats;

use crate::workload::Workload;

/// Any error of a store, to be printed.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Operations that a workload needs in addition to puts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Reads.
    Gets,
    /// Deletes.
    Deletes,
    /// Keys kept in order, from [`Subject::put_in_order`] on.
    Order,
    /// Reads of ranges.
    Scans,
    /// Serializable transactions. With order, also over ranges.
    Transactions,
}

impl Need {
    /// Returns the text that follows 'has no' in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Need::Gets => "reads",
            Need::Deletes => "deletes",
            Need::Order => "order",
            Need::Scans => "ordered scans",
            Need::Transactions => "transactions",
        }
    }
}

/// A store as the workloads use it. Values reach the caller through a callback or a buffer.
///
/// A store without order implements [`Subject::get_into`], [`Subject::put`] and [`Subject::delete`], and uses the
/// defaults for everything else.
pub trait Subject: Sync {
    /// Returns the store's name in error messages.
    fn name(&self) -> String;

    /// Returns true if the store has these operations. A workload that needs missing ones is refused before anything is
    /// loaded.
    fn offers(&self, need: Need) -> bool {
        matches!(need, Need::Gets | Need::Deletes)
    }

    /// Replaces `value` by the value of `key`; returns false if there is none.
    ///
    /// # Errors
    /// Any error of the store.
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error>;

    /// Returns the value of `key` in memory of its own.
    ///
    /// # Errors
    /// Any error of the store.
    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Calls `read` with the value of `key` in place; returns false if there is none.
    ///
    /// # Errors
    /// Any error of the store.
    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Ok(self.get_owned(key)?.map(|value| read(&value)).is_some())
    }

    /// Calls `found` for each of `keys` with the key's index among them and the value in place.
    ///
    /// # Errors
    /// Any error of the store.
    fn multi_get_with(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (place, key) in keys.iter().enumerate() {
            if !self.get_with(key, |value| found(place, Some(value)))? {
                found(place, None);
            }
        }
        Ok(())
    }

    /// Inserts or updates a key.
    ///
    /// # Errors
    /// Any error of the store.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Inserts or updates several keys in the store's fastest way; used to load the records.
    ///
    /// # Errors
    /// Any error of the store.
    fn load(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Removes a key; returns whether it existed.
    ///
    /// # Errors
    /// Any error of the store.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Builds the ordered index unless it exists, and waits for it. From then on the index is kept up to date.
    ///
    /// # Errors
    /// Any error of the store.
    fn put_in_order(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Calls `each` with the items from `from` on, in order, until it returns a break. The ordered index was built
    /// before.
    ///
    /// # Errors
    /// Any error of the store.
    fn scan(&self, _from: &[u8], _each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        Err(format!("{} has no {}", self.name(), Need::Scans.name()).into())
    }

    /// Reads two keys at one moment, and calls `found` with the index and the value of each that exists. Puts `values`,
    /// if there are any, at the same moment. A repeated attempt calls `found` again.
    ///
    /// # Errors
    /// Any error of the store.
    fn transact(
        &self,
        _keys: [&[u8]; 2],
        _values: Option<[&[u8]; 2]>,
        _found: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        Err(format!("{} has no {}", self.name(), Need::Transactions.name()).into())
    }

    /// Removes the item with the least key in one transaction, and returns its key; `None` if there is no item.
    ///
    /// # Errors
    /// Any error of the store.
    fn take_first(&self) -> Result<Option<Vec<u8>>, Error> {
        Err(format!("{} has no {}", self.name(), Need::Transactions.name()).into())
    }

    /// Returns the number of changes that are not yet applied to the ordered index, if one is kept.
    fn queued_count(&self) -> Option<u64> {
        None
    }

    /// Applies some of these changes, or does other background work, on a calling thread that has the backend's role;
    /// returns the number of changes.
    ///
    /// # Errors
    /// Any error of the store.
    fn step(&self) -> Result<u64, hikv::Error> {
        Ok(0)
    }

    /// Returns the state of the ordered index's maintenance.
    fn queue_stats(&self) -> QueueStats {
        QueueStats::default()
    }

    /// Returns the flushes and fences that the store has issued so far, if they are counted.
    fn persists(&self) -> Option<Persists> {
        None
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// Any error of the store.
    fn close(self) -> Result<(), Error>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Checks that `subject` has the operations that each of `workloads` needs.
///
/// # Errors
/// Names the subject, the workload, and the missing operation.
pub fn refuse_unfit(subject: &impl Subject, workloads: &[Workload]) -> Result<(), Error> {
    for workload in workloads {
        if let Some(need) = workload.needs().iter().find(|need| !subject.offers(**need)) {
            return Err(format!("{} has no {}, which {} needs", subject.name(), need.name(), workload.name()).into());
        }
    }
    Ok(())
}

/// Flushes and fences since the store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Persists {
    /// Cache lines whose write-back was started.
    pub flushed_line_count: u64,
    /// Fences issued.
    pub fence_count: u64,
}

impl std::ops::Sub for Persists {
    type Output = Persists;

    fn sub(self, before: Persists) -> Persists {
        Persists {
            flushed_line_count: self.flushed_line_count - before.flushed_line_count,
            fence_count: self.fence_count - before.fence_count,
        }
    }
}
