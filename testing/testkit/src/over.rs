//! The media on which engines are crashed: the simulated memory itself, and the journal on a simulated disk.

use std::thread;

use engine::{Error, OpenError};
use heap::{HeapError, Parameters};
use journal::{JournalError, JournalOptions, Journaled};
use pmem::{Durability, Medium, Probe, Probed, Span};
use pmem_sim::{Crashable, Model, Sim, SimDisk, SimFile, StepKind, is_observing};

use crate::Failure;

/// Work for a medium that other threads, or the library, do outside of tests.
pub trait BackgroundWork {
    /// Runs the medium's background work to its end.
    ///
    /// # Errors
    /// Any error of the medium.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Waits, before a read, until the medium has memory for it. Makes no step.
    fn admit(&self) {}

    /// Like [`BackgroundWork::admit`], before a write.
    fn admit_write(&self) {}
}

/// A medium on top of crashable storage.
pub trait Over: Medium + BackgroundWork + Sized {
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
}

impl BackgroundWork for Sim {}

impl Over for Sim {
    type Medium = Sim;

    fn make(on: Sim, _parameters: &Parameters) -> Result<Sim, Failure> {
        Ok(on)
    }

    fn open(on: Sim) -> Result<Sim, Failure> {
        Ok(on)
    }
}

/// The journal on a disk that loses, tears and reorders data that was not synced. Its region has memory for this many
/// pages; 0 for any number.
pub type OnDisk<const PAGE_COUNT_MAX: u64 = 0> = Probed<Journaled<SimFile>, Reports<PAGE_COUNT_MAX>>;

/// Fewer pages than any store uses: pages are evicted before every operation.
pub const FEW_PAGES: u64 = 8;

const PAGE_BYTES: u64 = 4096;

/// A probe that reports the journal's steps to the disk, so that visitors run there.
pub struct Reports<const PAGE_COUNT_MAX: u64 = 0>(SimDisk);

/// The step between an operation and its answer. No medium on a disk reports a step of this kind itself.
pub const PAUSE: StepKind = StepKind::WaitEnd;

impl<const PAGE_COUNT_MAX: u64> Reports<PAGE_COUNT_MAX> {
    /// Lets a visitor run.
    pub fn pause(&self) {
        self.0.report(PAUSE);
    }
}

impl<const PAGE_COUNT_MAX: u64> Probe for Reports<PAGE_COUNT_MAX> {
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

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            error if error.is_full() => Failure::Full,
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Heap(HeapError::Unformatted) => Failure::Unfinished,
            OpenError::Heap(error) if error.is_full() => Failure::Full,
            other => Failure::Other(other.to_string()),
        }
    }
}

fn journal_of_pages(page_count_max: u64) -> JournalOptions {
    let memory_bytes_max = (page_count_max > 0).then_some(page_count_max * PAGE_BYTES);
    JournalOptions { memory_bytes_max, ..small_journal() }
}

impl<const PAGE_COUNT_MAX: u64> BackgroundWork for OnDisk<PAGE_COUNT_MAX> {
    fn settle(&self) -> Result<(), Failure> {
        self.inner().checkpoint().map_err(|error| Failure::Other(error.to_string()))
    }

    fn admit(&self) {
        self.inner().acknowledger().admit();
    }

    /// Makes pages clean and evicts pages. A visitor cannot: the operation that it interrupts on this thread may hold
    /// the checkpoint's lock.
    fn admit_write(&self) {
        if !is_observing() {
            // Without a write, this waits for nothing else.
            let _ = self.inner().acknowledger().together(|| ());
        }
    }
}

impl<const PAGE_COUNT_MAX: u64> Over for OnDisk<PAGE_COUNT_MAX> {
    type Medium = SimDisk;

    fn make(on: SimDisk, parameters: &Parameters) -> Result<Self, Failure> {
        let options = journal_of_pages(PAGE_COUNT_MAX);
        let made = match Journaled::open(on.files(), options, &|_| {}) {
            Err(JournalError::Unfinished) => {
                Journaled::create(on.files(), parameters.region_bytes, parameters.uuid, options)
            }
            opened => opened,
        };
        Ok(Probed::with_probe(made?, Reports(on)))
    }

    fn open(on: SimDisk) -> Result<Self, Failure> {
        let options = JournalOptions { writable: !on.is_frozen(), ..journal_of_pages(PAGE_COUNT_MAX) };
        Ok(Probed::with_probe(Journaled::open(on.files(), options, &|_| {})?, Reports(on)))
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

impl BackgroundWork for Restless {}

impl Over for Restless {
    type Medium = Sim;

    fn make(on: Sim, _parameters: &Parameters) -> Result<Restless, Failure> {
        Ok(on_restless(on))
    }

    fn open(on: Sim) -> Result<Restless, Failure> {
        Ok(on_restless(on))
    }
}
