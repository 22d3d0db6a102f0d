//! The simulated region: steps, the observer, crash images, and requested faults.
//!
//! Lock order: the observer's lock and the state's lock are never held together, and neither while an observer
//! runs.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pmem::{Bytes, Canary, LINE_BYTES, MediumError, Offset};

use crate::choice::choices;
use crate::crashable::ObserverOf;
use crate::image::Image;
use crate::memory::{Memory, REGION_BYTES_MAX, UsedPages};
use crate::model::{CrashModel, Model};
use crate::pages::{Page, Pages};
use crate::steps::Steps;

/// A callback that runs after each step, on the thread that made it.
pub type Observer = ObserverOf<Sim>;

/// The kind of a step. Everything that can change the set of crash images, or a reader's view, is a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StepKind {
    /// One word was stored.
    Store,
    /// A compare-exchange was tried.
    CompareExchange,
    /// Bytes were copied through the cache.
    Write,
    /// Bytes were copied with non-temporal stores.
    Stream,
    /// A span was flushed.
    Flush,
    /// A fence that is not a commit.
    Order,
    /// A publish put its words into the log, if the model has one.
    PublishLogged,
    /// A publish stored one of its words, and not the last.
    PublishWord,
    /// A publish stored its last word.
    PublishLast,
    /// A commit was requested.
    Commit,
    /// A wait begins: nothing has changed, and the waiting thread holds no lock that other threads need.
    WaitBegin,
    /// A wait has ended.
    WaitEnd,
    /// The region grew, or refused to.
    Grow,
    /// A file was written to.
    FileWrite,
    /// A file got its length or its space.
    FileLength,
    /// A file was synced.
    FileSync,
    /// Pages were freed.
    Discard,
    /// Space for pages was allocated again, or there was none.
    Back,
}

/// A simulated region. Clones are handles to the same one.
#[derive(Clone)]
pub struct Sim(pub(crate) Arc<Region>);

pub(crate) struct Region {
    /// `None` only while the region is dropped.
    memory: Option<Memory>,
    pub(crate) len_bytes: AtomicU64,
    pub(crate) model: Model,
    pub(crate) canary: OnceLock<Canary>,
    pub(crate) state: Mutex<State>,
    steps: Steps<Sim>,
    pub(crate) breath_count: AtomicU64,
    pub(crate) is_frozen: AtomicBool,
}

pub(crate) struct State {
    /// The contents that surely survive; images share them.
    pub(crate) durable: Arc<Pages>,
    /// The contents that may survive.
    pub(crate) pending: Box<dyn CrashModel>,
    /// The pages without space: discarded, and not allocated again. Images share them as well.
    pub(crate) holes: Arc<BTreeSet<u64>>,
    /// The pages of the memory to which something was stored.
    pub(crate) used: UsedPages,
    /// Number of growths that still succeed before the medium is full.
    pub(crate) growth_count_max: u64,
    /// The error of a growth then, instead of [`MediumError::Full`].
    pub(crate) growth_error: Option<MediumError>,
}

impl State {
    fn holding(durable: Arc<Pages>, pending: Box<dyn CrashModel>) -> State {
        let (holes, used) = (Arc::default(), UsedPages::default());
        State { durable, pending, holes, used, growth_count_max: u64::MAX, growth_error: None }
    }
}

impl Sim {
    /// Creates a region of `len_bytes` zeros, rounded up to complete lines.
    ///
    /// # Panics
    /// If `len_bytes` is greater than [`REGION_BYTES_MAX`].
    #[must_use]
    pub fn new(len_bytes: u64, model: Model) -> Sim {
        Sim::holding(&Pages::default(), State::holding(Arc::default(), model.start()), len_bytes, model)
    }

    /// Creates the region that a crash left, as the next opening finds it. Faults requested for the crashed region
    /// are not copied.
    #[must_use]
    pub fn from_image(image: &Image, model: Model) -> Sim {
        let seen = Arc::new(image.pages());
        let state = match image.left() {
            Some((durable, left)) => State::holding(durable, Box::new(left)),
            None => State::holding(Arc::clone(&seen), model.start()),
        };
        Sim::holding(&seen, State { holes: image.holes(), ..state }, image.len_bytes(), model)
    }

    /// Creates a region in which programs see `pages`.
    fn holding(pages: &Pages, mut state: State, len_bytes: u64, model: Model) -> Sim {
        assert!(len_bytes <= REGION_BYTES_MAX, "a region of {len_bytes} bytes; the limit is {REGION_BYTES_MAX}");
        let memory = Memory::reserve();
        for (start, page) in pages.present() {
            // SAFETY: the page is within the reserved range, because all its content was stored below the region's
            // length; it is aligned; no other code uses the memory.
            unsafe { memory.base().add(start.0 as usize).cast::<Page>().write(*page) };
            state.used.note(start);
        }
        Sim(Arc::new(Region {
            memory: Some(memory),
            len_bytes: AtomicU64::new(len_bytes.next_multiple_of(LINE_BYTES)),
            model,
            canary: OnceLock::new(),
            state: Mutex::new(state),
            steps: Steps::default(),
            breath_count: AtomicU64::new(0),
            is_frozen: AtomicBool::new(false),
        }))
    }

    /// Returns the same region, on which protocols leave out or break the step that `canary` names.
    ///
    /// # Panics
    /// If it already has one.
    #[must_use]
    pub fn with_canary(self, canary: Canary) -> Sim {
        assert!(self.0.canary.set(canary).is_ok(), "a broken variant is broken in one place");
        self
    }

    /// Returns the number of times that long walks have let other threads run.
    #[must_use]
    pub fn breath_count(&self) -> u64 {
        self.0.breath_count.load(Ordering::Relaxed)
    }

    /// Marks the region as open for reading: from now on, a store to it fails the test.
    pub fn freeze(&self) {
        self.0.is_frozen.store(true, Ordering::Release);
    }

    /// Checks that the region may be changed.
    ///
    /// # Panics
    /// If the region is frozen.
    pub(crate) fn assert_thawed(&self) {
        assert!(!self.0.is_frozen.load(Ordering::Acquire), "a store to a region that is open for reading");
    }

    /// Returns the model of this region.
    #[must_use]
    pub fn model(&self) -> Model {
        self.0.model
    }

    /// Calls `observer` after every step from now on, instead of the earlier observer. Steps made while it runs are
    /// simulated and counted as usual but not observed. No lock is held during the call, so it may use this medium.
    /// Its steps count as another thread's, whose fences complete no flush of the observed thread.
    ///
    /// An observer that owns a handle to its own region keeps it alive until [`Sim::unobserve`].
    pub fn observe(&self, observer: Observer) {
        self.0.steps.observe(observer);
    }

    /// Calls `observer` after every step of [`crate::unobserved`] work, like [`Sim::observe`].
    pub fn observe_beside(&self, observer: Observer) {
        self.0.steps.observe_beside(observer);
    }

    /// Ends observation. Has no effect inside an observer.
    pub fn unobserve(&self) {
        self.0.steps.unobserve();
    }

    /// Returns the number of steps so far.
    #[must_use]
    pub fn step_count(&self) -> u64 {
        self.0.steps.count()
    }

    /// Refuses every growth, and space for holes, as full after `growth_count` more growths.
    pub fn fail_grow_after(&self, growth_count: u64) {
        self.0.state.lock().growth_count_max = growth_count;
    }

    /// Makes every further growth fail with `error`.
    pub fn fail_grow_with(&self, error: MediumError) {
        let mut state = self.0.state.lock();
        (state.growth_count_max, state.growth_error) = (0, Some(error));
    }

    /// Returns crash images possible at this moment, all different, at most `budget` of them. Returns all images if
    /// there are so few. Otherwise: nothing pending survives, everything does, each part (the newest first) against
    /// the other parts, and random mixes drawn from `seed`.
    #[must_use]
    pub fn images(&self, budget: usize, seed: u64) -> Vec<Image> {
        let state = self.0.state.lock();
        let parts = state.pending.parts();
        let outcome_counts: Vec<usize> = parts.iter().map(|part| part.outcome_count).collect();
        let image = |kept: Vec<usize>| {
            let survivors = state.pending.survivors(&parts, &kept, &state.durable);
            let choice = parts.iter().copied().zip(kept).collect();
            Image::new((&state.durable, &state.holes), survivors, choice, self.len_bytes())
        };
        let mut images: Vec<Image> = choices(&outcome_counts, budget, seed).into_iter().map(image).collect();
        let mut known = HashSet::new();
        images.retain(|image| known.insert(image.hash()));
        images
    }

    /// Returns the state that the next process finds if this one is killed now: everything that was stored, of
    /// which a later power loss may still drop the parts that are not durable. `None` if everything is durable, and
    /// in a model without a cache.
    #[must_use]
    pub fn killed(&self) -> Option<Image> {
        let state = self.0.state.lock();
        let left = state.pending.killed()?;
        let parts = left.parts();
        let kept: Vec<usize> = parts.iter().map(|part| part.outcome_count - 1).collect();
        let survivors = left.survivors(&parts, &kept, &state.durable);
        let image = Image::new((&state.durable, &state.holes), survivors, Vec::new(), self.len_bytes());
        Some(image.with_left(left))
    }

    /// Counts a step and calls the observer. The caller holds no lock.
    pub(crate) fn step(&self, kind: StepKind) {
        self.0.steps.step(self, kind);
    }

    /// Returns the present content of the line at `line`, read word by word.
    pub(crate) fn line_now(&self, line: Offset) -> [u64; 8] {
        std::array::from_fn(|unit| self.load(line.plus(unit as u64 * 8), Ordering::Relaxed))
    }
}

impl Region {
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.memory.as_ref().expect("a region has its memory until it is dropped").base()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.memory.take().expect("it is dropped once").give_back(&self.state.get_mut().used);
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim({:?}, {} bytes, step {})", self.0.model, self.len_bytes(), self.step_count())
    }
}
