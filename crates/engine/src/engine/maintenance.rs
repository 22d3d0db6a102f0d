//! Background work.

use std::time::Duration;

use super::{Identity, unsupported};
use crate::{CompactionReport, Error, OnCompaction, Progress};

/// The number of background threads that have work to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum WantedThreads {
    /// None.
    None,
    /// One.
    One,
    /// All that exist.
    All,
}

/// Background work, and the threads that should do it.
pub trait Maintenance: Identity {
    /// Does a bounded piece of background work: the sweep after an open, growth ahead of writers, changes for the
    /// ordered index, deletion of expired keys.
    fn step(&self) -> Result<Progress, Error> {
        Ok(Progress::Idle)
    }

    /// Does a step of background work that writers create faster than the background finishes it, if the background is
    /// behind. For a writer, after a write that found a step [wanted](Maintenance::wanted_threads). Does nothing inside
    /// another operation's callback.
    ///
    /// # Errors
    /// As for [`Maintenance::step`].
    fn assist_background(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how many threads should call [`Maintenance::step`]: there is work that other threads may soon wait for.
    fn wanted_threads(&self) -> WantedThreads {
        WantedThreads::None
    }

    /// Returns how long no thread needs to call [`Maintenance::step`] unless [`Maintenance::wanted_threads`] requests
    /// one; `None` for no limit. The one thread that watches time calls this before each sleep.
    fn sleep_time(&self) -> Option<Duration> {
        None
    }

    /// Frees garbage of writers that have stopped, collapses small pages into huge pages, and returns the work that is
    /// left or that became possible for [`Maintenance::step`]. Meant for idle times: every core executes a barrier.
    fn run_idle_maintenance(&self) -> Progress {
        Progress::Idle
    }

    /// Moves items together and returns free space to the file system, as far as possible or until `_progress` stops
    /// it. Other threads read and write at the same time. Waits for the sweep after an open, and helps with it.
    ///
    /// # Errors
    /// [`Error::InsideCallback`] if `_progress` requests a compaction.
    fn compact(&self, _progress: &mut OnCompaction<'_>) -> Result<CompactionReport, Error> {
        Err(unsupported(self.name(), "compaction"))
    }
}
