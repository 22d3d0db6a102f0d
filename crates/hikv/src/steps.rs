//! Threads of the caller's that do the background's work.

use engine::{Error, OrderedEngine, Progress, QueueStats};

use crate::Store;

/// What a call of [`Store::step`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepResult {
    /// Changes that it applied to the ordered index.
    pub applied_count: u64,
    /// False if it found nothing to do.
    pub is_more: bool,
}

impl Store {
    /// Does a bounded piece of the background's work: changes that wait for the ordered index first; where none do, room ahead of
    /// writers and the like. For threads that would be idle, and for stores that are opened without a background of their own
    /// ([`crate::Options::background`]).
    ///
    /// # Errors
    /// See [`Error`].
    pub fn step(&self) -> Result<StepResult, Error> {
        let engine = self.writable_engine()?;
        let applied_count = engine.ordered().map_or(Ok(0), OrderedEngine::apply)?;
        let is_more = applied_count > 0 || engine.step()? != Progress::Idle;
        Ok(StepResult { applied_count, is_more })
    }

    /// Applies one group of the changes that wait for the ordered index, some ten microseconds of work, and waits for nothing: for event
    /// loops, between two looks at their clients ([`Store::set_callers_apply`]). How many changes those were; none where none waits, or other
    /// threads are at them.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn apply_queued(&self) -> Result<u64, Error> {
        self.engine()?.ordered().map_or(Ok(0), OrderedEngine::apply)
    }

    /// Says whether the caller's threads call [`Store::apply_queued`] between their operations, as a pool's do ([`crate::pool`]). The background is then asked
    /// to apply only where they do not keep up: where a queue is more than half full. Once they do not any more, what waits is the
    /// background's.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn set_callers_apply(&self, is_enabled: bool) -> Result<(), Error> {
        if let Some(ordered) = self.engine()?.ordered() {
            ordered.set_callers_apply(is_enabled);
            if !is_enabled {
                self.ask_workers();
            }
        }
        Ok(())
    }

    /// How the ordered index keeps up with writers. Cheaper than [`Store::stats`].
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn queue_stats(&self) -> Result<QueueStats, Error> {
        Ok(self.engine()?.ordered().map(OrderedEngine::queue_stats).unwrap_or_default())
    }
}
