//! Threads of the caller's that do the background's work.

use engine::{Error, OrderedEngine, Progress, Upkeep};

use crate::Store;

/// What a call of [`Store::help`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Helped {
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
    pub fn help(&self) -> Result<Helped, Error> {
        let engine = self.engine()?;
        let applied_count = engine.ordered().map_or(Ok(0), OrderedEngine::apply)?;
        let is_more = applied_count > 0 || engine.step()? != Progress::Idle;
        Ok(Helped { applied_count, is_more })
    }

    /// How the ordered index keeps up with writers. Cheaper than [`Store::stats`].
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn upkeep(&self) -> Result<Upkeep, Error> {
        Ok(self.engine()?.ordered().map(OrderedEngine::upkeep).unwrap_or_default())
    }
}
