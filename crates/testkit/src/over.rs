//! The media on which engines are crashed: the crash medium itself, and the journal on a disk that crashes.

use std::thread;

use heap::Parameters;
use journal::{JournalError, JournalOptions, Journaled};
use pmem::{Durability, Medium, Probe, Probed, Span};
use pmem_sim::{Crashable, Model, Sim, SimDisk, SimFile, StepKind};

use crate::Failure;

/// A medium over something that can be crashed.
pub trait Over: Medium + Sized {
    /// What it lies on.
    type Medium: Crashable;

    /// One that holds nothing, for a store of these parameters.
    ///
    /// # Errors
    /// Whatever the medium says.
    fn make(on: Self::Medium, parameters: &Parameters) -> Result<Self, Failure>;

    /// The one that is there.
    ///
    /// # Errors
    /// [`Failure::Unfinished`] if it was not made to its end; otherwise whatever the medium says.
    fn open(on: Self::Medium) -> Result<Self, Failure>;

    /// Ends what it leaves to the background.
    ///
    /// # Errors
    /// Whatever the medium says.
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

/// The journal over a disk that loses, tears and reorders what was not synced.
pub type OnDisk = Probed<Journaled<SimFile>, Reports>;

/// Tells the disk of the medium's steps, so that others come by there.
pub struct Reports(SimDisk);

/// Time passes between an operation and its answer. No medium on a disk reports such a step.
pub const PAUSE: StepKind = StepKind::WaitEnd;

impl Reports {
    /// A visitor may come by.
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

/// A journal of small segments, so that few changes fill the log and have it checkpointed.
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

/// The crash medium for threads that contend: every now and then a call of it lets other threads run. Without that, threads on few
/// cores, or beside other tests, do a call after the other from end to end, and hardly ever meet.
pub type Restless = Probed<Sim, Yields>;

/// A [`Restless`] medium of nothing.
pub fn restless() -> Restless {
    on_restless(Sim::new(0, Model::Span))
}

fn on_restless(on: Sim) -> Restless {
    engine::relax_by_threads();
    Probed::with_probe(on, Yields(()))
}

/// Lets others run.
#[derive(Debug)]
pub struct Yields(());

/// One in so many loads and reads, and one in so many flushes, fences and waits.
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
