//! The simulated disk: two files, a journal's base and its log. A crash may keep or drop any unsynced data.
//!
//! - A *sector* of 512 bytes is written completely or not at all. After a crash each shows any content from the
//!   last surely durable one on, independently of the other sectors: so unsynced writes are lost, torn between
//!   sectors, and reordered.
//! - A sync makes the present content of all sectors of its file durable that were written since the last one, and
//!   the length. A sync that fails makes nothing durable and *forgets*: later syncs treat the sectors as written,
//!   as on Linux, while reads show them until the crash. Only a new write can make them durable. A read past the cache
//!   shows whether the disk has them; then every crash leaves the content that it showed. (The length is the file
//!   system's own, which keeps it until written.)
//! - A length that was not synced may be lost, with everything behind it. New bytes are zero.
//! - A test can request a fault ([`SimDisk::fail`]): any operation, by its number, may be refused.
//!
//! A step is any operation except reading, and any step that a medium above reports by [`SimDisk::report`].

mod file;
mod image;
mod sectors;

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use journal::Files;
use parking_lot::Mutex;
use pmem::Canary;

use crate::crashable::{Crashable, ObserverOf};
use crate::model::Model;
use crate::sim::StepKind;
use crate::steps::Steps;
use sectors::Sectors;

pub use file::SimFile;
pub use image::DiskImage;

/// A fault that a test requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The operation of this number, counted from 1, fails with an input or output error. The other operations
    /// work.
    Error(u64),
    /// From the operation of this number on, files cannot get longer.
    Full(u64),
    /// The process is dead: from the operation of this number on, operations do nothing.
    Dead(u64),
}

/// Two files on a disk. Clones are handles to the same one.
#[derive(Clone)]
pub struct SimDisk(Arc<Disk>);

struct Disk {
    state: Mutex<State>,
    steps: Steps<SimDisk>,
    canary: OnceLock<Canary>,
    is_frozen: AtomicBool,
}

struct State {
    files: [Sectors; 2],
    operation_count: u64,
    fault: Option<Fault>,
    growth_count_max: u64,
}

/// The names of the files, for messages.
const NAMES: [&str; 2] = ["base", "log"];

impl SimDisk {
    fn holding(files: [Sectors; 2]) -> SimDisk {
        let state = State { files, operation_count: 0, fault: None, growth_count_max: u64::MAX };
        SimDisk(Arc::new(Disk {
            state: Mutex::new(state),
            steps: Steps::default(),
            canary: OnceLock::new(),
            is_frozen: AtomicBool::new(false),
        }))
    }

    /// Returns the two files, opened.
    #[must_use]
    pub fn files(&self) -> Files<SimFile> {
        Files { base: SimFile::new(self, 0), log: SimFile::new(self, 1) }
    }

    /// Returns another disk with the same content, also of the operating system's cache, and without the fault.
    #[must_use]
    pub fn copy(&self) -> SimDisk {
        let copy = SimDisk::holding(self.0.state.lock().files.clone());
        match self.0.canary.get() {
            Some(&canary) => copy.with_canary(canary),
            None => copy,
        }
    }

    /// Returns true if a store has opened the files for reading.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.0.is_frozen.load(Ordering::Acquire)
    }

    /// Requests a fault, and replaces the earlier one.
    pub fn fail(&self, fault: Option<Fault>) {
        self.0.state.lock().fault = fault;
    }

    /// Returns the number of operations so far, including reads.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        self.0.state.lock().operation_count
    }

    /// Reports a step of a medium above this disk: a moment at which another thread may run.
    pub fn report(&self, kind: StepKind) {
        self.0.steps.step(self, kind);
    }

    /// Carries out an operation on one of the files, unless it has to fail.
    fn operate<T>(&self, file: usize, act: impl FnOnce(&mut Sectors) -> io::Result<T>) -> Result<T, Refusal> {
        let mut state = self.0.state.lock();
        state.operation_count += 1;
        match state.fault {
            Some(Fault::Error(number)) if number == state.operation_count => Err(Refusal::Failed),
            Some(Fault::Dead(from)) if from <= state.operation_count => Err(Refusal::Dead),
            _ => Ok(()),
        }?;
        Ok(act(&mut state.files[file])?)
    }

    /// Counts a file's growth; returns an error if there is no space for it.
    fn grow(&self) -> io::Result<()> {
        let mut state = self.0.state.lock();
        let is_full = matches!(state.fault, Some(Fault::Full(from)) if state.operation_count >= from);
        match state.growth_count_max.checked_sub(1).filter(|_| !is_full) {
            Some(left) => state.growth_count_max = left,
            None => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        }
        Ok(())
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.0.canary.get() == Some(&canary)
    }
}

/// The reason why an operation did not take place.
#[derive(Debug)]
enum Refusal {
    /// The disk failed.
    Failed,
    /// The process is dead.
    Dead,
    /// The file refused.
    File(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::File(error)
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        match refusal {
            Refusal::Failed | Refusal::Dead => io::Error::from_raw_os_error(libc::EIO),
            Refusal::File(error) => error,
        }
    }
}

impl Crashable for SimDisk {
    type Image = DiskImage;

    /// Creates two empty files: the journal decides the region's length.
    fn new(_region_bytes: u64, model: Model) -> SimDisk {
        assert_eq!(model, Model::Disk, "a disk has a model of its own");
        SimDisk::holding(Default::default())
    }

    fn from_image(image: &DiskImage, _model: Model) -> SimDisk {
        SimDisk::holding(image.files())
    }

    fn with_canary(self, canary: Canary) -> SimDisk {
        assert!(self.0.canary.set(canary).is_ok(), "a broken variant is broken in one place");
        self
    }

    fn freeze(&self) {
        self.0.is_frozen.store(true, Ordering::Release);
    }

    fn observe(&self, observer: ObserverOf<SimDisk>) {
        self.0.steps.observe(observer);
    }

    fn observe_beside(&self, observer: ObserverOf<SimDisk>) {
        self.0.steps.observe_beside(observer);
    }

    fn unobserve(&self) {
        self.0.steps.unobserve();
    }

    fn step_count(&self) -> u64 {
        self.0.steps.count()
    }

    fn fail_grow_after(&self, growth_count: u64) {
        self.0.state.lock().growth_count_max = growth_count;
    }

    fn images(&self, budget: usize, seed: u64) -> Vec<DiskImage> {
        image::images(&self.0.state.lock().files, budget, seed)
    }

    /// The operating system keeps unsynced data, and a later sync writes it.
    fn killed(&self) -> Option<DiskImage> {
        image::killed(&self.0.state.lock().files)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimDisk(step {})", self.step_count())
    }
}
