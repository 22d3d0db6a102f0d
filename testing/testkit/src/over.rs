//! The media on which engines are crashed: the simulated memory itself, and the journal on a simulated disk.

use std::thread;

use heap::Parameters;
use journal::{JournalError, JournalOptions, Journaled};
use pmem::{Durability, Medium, Probe, Probed, Span};
use pmem_sim::{Crashable, Model, Sim, SimDisk, SimFile, StepKind};

use crate::Failure;

/// A medium on top of crashable storage.
pub trait Over: Medium + Sized {
    /// The crashable storage below.
    type Medium: Crashable;

    /// Creates an empty medium for a store of these parameters.
    ///
    /// # Errors
    /// Any error of the medium.
    fn make(on: Self::Medium, parameters: &Parameters) -> Result<Self, Failure>;

    /// Opens the existing medium.
    ///
    /// # Errors
    /// [`Failure::Unfinished`] if its creation did not finish; or any other error of the medium.
    fn open(on: Self::Medium) -> Result<Self, Failure>;

    /// Runs the medium's background work to its end.
    ///
    /// # Errors
    /// Any error of the medium.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Over for Sim {
    type Medium = Sim;

    fn make(on: Sim, _parameters: &Parameters) -> Result<Sim, Failure> {
        Ok(on)
    }

    fn open(on: Sim) -> Result<Sim, Failure> {
        Ok(on)
    }
}

/// The journal on a disk that loses, tears and reorders data that was not synced.
pub type OnDisk = Probed<Journaled<SimFile>, Reports>;

/// A probe that reports the journal's steps to the disk, so that visitors run there.
pub struct Reports(SimDisk);

/// The step between an operation and its answer. No medium on a disk reports a step of this kind itself.
pub const PAUSE: StepKind = StepKind::WaitEnd;

impl Reports {
    /// Lets a visitor run.
    pub fn pause(&self) {
        self.0.report(PAUSE);
    }
}

impl Probe for Reports {
    fn flushed(&self, _span: Span) {
        self.0.report(StepKind::Flush);
    }

    fn waits(&self) {
        self.0.report(StepKind::WaitBegin);
    }
}

/// Returns the options of a journal with small segments, so that a few changes fill the log and cause a checkpoint.
pub fn small_journal() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        level: Durability::Power,
        log_bytes_max: 3 << 14,
        segment_bytes: 1 << 14,
        block_bytes: 1 << 12,
        background: false,
        ..JournalOptions::default()
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Failure {
        match error {
            JournalError::Unfinished => Failure::Unfinished,
            other => Failure::Other(other.to_string()),
        }
    }
}

impl Over for OnDisk {
    type Medium = SimDisk;

    fn make(on: SimDisk, parameters: &Parameters) -> Result<OnDisk, Failure> {
        let made = match Journaled::open(on.files(), small_journal(), &|_| {}) {
            Err(JournalError::Unfinished) => {
                Journaled::create(on.files(), parameters.region_bytes, parameters.uuid, small_journal())
            }
            opened => opened,
        };
        Ok(Probed::with_probe(made?, Reports(on)))
    }

    fn open(on: SimDisk) -> Result<OnDisk, Failure> {
        let options = JournalOptions { writable: !on.is_frozen(), ..small_journal() };
        Ok(Probed::with_probe(Journaled::open(on.files(), options, &|_| {})?, Reports(on)))
    }

    fn settle(&self) -> Result<(), Failure> {
        self.inner().checkpoint().map_err(|error| Failure::Other(error.to_string()))
    }
}

/// The crash medium for threads that contend: at random a call of it yields to other threads. Without that, threads on
/// few cores, or alongside other tests, run one call after the other from end to end and hardly ever meet.
pub type Restless = Probed<Sim, Yields>;

/// Creates an empty [`Restless`] medium.
pub fn restless() -> Restless {
    on_restless(Sim::new(0, Model::Span))
}

fn on_restless(on: Sim) -> Restless {
    engine::relax_by_threads();
    Probed::with_probe(on, Yields(()))
}

/// A probe that yields to other threads at random.
#[derive(Debug)]
pub struct Yields(());

/// One in this many loads and reads yields, and one in this many flushes, fences and waits.
const LOADS_A_YIELD: u32 = 24;
const PERSISTS_A_YIELD: u32 = 3;

impl Yields {
    fn one_in(&self, count: u32) {
        if fastrand::u32(..count) == 0 {
            thread::yield_now();
        }
    }
}

impl Probe for Yields {
    fn flushed(&self, _span: Span) {
        self.one_in(PERSISTS_A_YIELD);
    }

    fn fenced(&self) {
        self.one_in(PERSISTS_A_YIELD);
    }

    fn waits(&self) {
        self.one_in(PERSISTS_A_YIELD);
    }

    fn read(&self, _span: Span) {
        self.one_in(LOADS_A_YIELD);
    }

    fn loaded(&self, _span: Span) {
        self.one_in(LOADS_A_YIELD);
    }
}

impl Over for Restless {
    type Medium = Sim;

    fn make(on: Sim, _parameters: &Parameters) -> Result<Restless, Failure> {
        Ok(on_restless(on))
    }

    fn open(on: Sim) -> Result<Restless, Failure> {
        Ok(on_restless(on))
    }
}
