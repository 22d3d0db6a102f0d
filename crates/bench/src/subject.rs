//! A store under measurement: the one trait of everything that is measured, hikv's stores, what the papers compare them with, and
//! other stores beside those. What tests ask of a store, step by step and after crashes, is another matter (`testkit::Operations`).

use std::ops::ControlFlow;

use hikv::QueueStats;

use crate::workload::Workload;

/// Whatever a store says, to be shown.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What workloads need of a store beside puts.
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
}

impl Need {
    /// As it stands after 'has no'.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Need::Gets => "reads",
            Need::Deletes => "deletes",
            Need::Order => "order",
            Need::Scans => "ordered scans",
        }
    }
}

/// A store as the workloads use it. Values reach the caller through a callback or a buffer.
///
/// A store of points has [`Subject::get_into`], [`Subject::put`] and [`Subject::delete`], and takes the rest from here.
pub trait Subject: Sync {
    /// What refusals call it.
    fn name(&self) -> String;

    /// Whether it can do that. Workloads that need what it cannot do are refused before anything is loaded.
    fn offers(&self, need: Need) -> bool {
        matches!(need, Need::Gets | Need::Deletes)
    }

    /// Replaces `value` by the value of `key`; false if there is none.
    ///
    /// # Errors
    /// As the store says.
    fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error>;

    /// The value of `key` in memory of its own.
    ///
    /// # Errors
    /// As the store says.
    fn get_owned(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = Vec::new();
        Ok(self.get_into(key, &mut value)?.then_some(value))
    }

    /// Calls `read` with the value of `key` in place; false if there is none.
    ///
    /// # Errors
    /// As the store says.
    fn get_with(&self, key: &[u8], read: impl FnOnce(&[u8])) -> Result<bool, Error> {
        Ok(self.get_owned(key)?.map(|value| read(&value)).is_some())
    }

    /// Calls `found` for each of `keys` with the key's place among them and the value in place.
    ///
    /// # Errors
    /// As the store says.
    fn multi_get_with(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (place, key) in keys.iter().enumerate() {
            if !self.get_with(key, |value| found(place, Some(value)))? {
                found(place, None);
            }
        }
        Ok(())
    }

    /// Inserts or updates.
    ///
    /// # Errors
    /// As the store says.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Inserts or updates several, in whatever way is fast: records are loaded so.
    ///
    /// # Errors
    /// As the store says.
    fn load(&self, items: &[(&[u8], &[u8])]) -> Result<(), Error> {
        items.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// Whether `key` was there, which is not any more.
    ///
    /// # Errors
    /// As the store says.
    fn delete(&self, key: &[u8]) -> Result<bool, Error>;

    /// Has the keys put in order, unless they are, and waits for that. From now on the order is kept.
    ///
    /// # Errors
    /// As the store says.
    fn put_in_order(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Shows the items from `from` on to `each`, in order, until that says to stop. The keys were put in order before.
    ///
    /// # Errors
    /// As the store says.
    fn scan(&self, _from: &[u8], _each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        Err(format!("{} has no {}", self.name(), Need::Scans.name()).into())
    }

    /// Changes that the order has not caught up with, where one is kept.
    fn queued_count(&self) -> Option<u64> {
        None
    }

    /// Applies some of them, or does other work of the background's, for a calling thread that has the backend's role; how many changes.
    ///
    /// # Errors
    /// As the store says.
    fn step(&self) -> Result<u64, hikv::Error> {
        Ok(0)
    }

    /// How the order keeps up.
    fn queue_stats(&self) -> QueueStats {
        QueueStats::default()
    }

    /// What the store has asked of its medium so far, where that is counted.
    fn persists(&self) -> Option<Persists> {
        None
    }

    /// Leaves everything durable, where it is not yet.
    ///
    /// # Errors
    /// As the store says.
    fn close(self) -> Result<(), Error>
    where
        Self: Sized,
    {
        Ok(())
    }
}

/// Sees that `subject` can do what each of `workloads` needs.
///
/// # Errors
/// Names the subject, the workload, and what it needs.
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
    /// Lines whose write-back was started.
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
