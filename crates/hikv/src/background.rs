//! Background work on the caller's threads.

use engine::{Error, OrderedEngine, Progress, QueueStats};

#[cfg(doc)]
use crate::Store;
use crate::store::Inner;

/// Result of a call of [`Background::step`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StepResult {
    /// Changes applied to the ordered index.
    pub applied_count: u64,
    /// False if there was nothing to do. True also while work waits: compaction rests between its steps, and some
    /// engines visit keys that expire later again and again.
    pub is_more: bool,
}

/// Background work of a store on the caller's threads, from [`Store::background`].
#[derive(Clone, Copy)]
pub struct Background<'s> {
    inner: &'s Inner,
}

impl<'s> Background<'s> {
    pub(crate) fn of(inner: &'s Inner) -> Background<'s> {
        Background { inner }
    }

    /// Does a bounded piece of background work: applies changes that wait for the ordered index; if there are none,
    /// provides free space ahead of writers, deletes keys of dropped trees, and similar. For threads that would be
    /// idle, and for stores opened without background threads ([`crate::Options::background`]).
    ///
    /// # Errors
    /// [`Error::Medium`] if the storage fails; [`Error::Corrupt`].
    pub fn step(&self) -> Result<StepResult, Error> {
        let engine = self.inner.writable_engine()?;
        let applied_count = engine.ordered().map_or(Ok(0), OrderedEngine::apply)?;
        if applied_count > 0 {
            return Ok(StepResult { applied_count, is_more: true });
        }
        let progress = engine.step()?;
        // Also while the engine rests, which some engines do for as long as they have keys that expire.
        let is_reclaiming = progress != Progress::More && self.inner.trees.reclaimer.step(engine)?;
        Ok(StepResult { applied_count, is_more: progress != Progress::Idle || is_reclaiming })
    }

    /// Applies one group of the changes that wait for the ordered index, about 10 µs of work, and returns their
    /// number. Never waits: returns 0 if there are none, or other threads are applying them. For event loops, between
    /// two polls of their clients ([`Background::set_callers_apply`]).
    ///
    /// # Errors
    /// [`Error::Medium`] if the storage fails.
    pub fn apply_queued(&self) -> Result<u64, Error> {
        self.inner.engine()?.ordered().map_or(Ok(0), OrderedEngine::apply)
    }

    /// Sets whether the caller's threads call [`Background::apply_queued`] between their operations, as the threads of
    /// a pool do ([`crate::pool`]). The background then applies changes only if these threads do not keep up, that is,
    /// if a queue is more than half full. After `false`, the background applies all waiting changes.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.ordered()?.wait_until_ready(|_| {})?;
    /// let background = store.background();
    /// background.set_callers_apply(true)?;
    /// store.put("key", "value")?; // … and other operations of the event loop
    /// while background.queue_stats()?.queued_count > 0 {
    ///     background.apply_queued()?;
    /// }
    /// background.set_callers_apply(false)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_callers_apply(&self, is_enabled: bool) -> Result<(), Error> {
        if let Some(ordered) = self.inner.engine()?.ordered() {
            ordered.set_callers_apply(is_enabled);
            if !is_enabled {
                self.inner.ask_workers();
            }
        }
        Ok(())
    }

    /// Returns how well the ordered index keeps up with writers. Cheaper than [`Store::stats`].
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn queue_stats(&self) -> Result<QueueStats, Error> {
        Ok(self.inner.engine()?.ordered().map(OrderedEngine::queue_stats).unwrap_or_default())
    }
}
