//! The interface of a simulation, of memory or of a disk, for the explorer.

use std::fmt;

use pmem::Canary;

use crate::sim::StepKind;
use crate::{Image, Model, Sim};

/// A callback that runs after each step, on the thread that made it.
pub type ObserverOf<W> = Box<dyn FnMut(&W, StepKind) + Send>;

/// The state that a crash left.
pub trait CrashImage: Clone + fmt::Display + Send + Sync + 'static {
    /// Returns a hash of everything in the image: equal for equal images, and practically never for others.
    fn hash(&self) -> u64;
}

/// A simulated storage of a store, which can be crashed. Clones are handles to the same one.
pub trait Crashable: Clone + Send + Sync + 'static {
    /// The state that a crash leaves.
    type Image: CrashImage;

    /// Creates an empty storage, with space for a region of `region_bytes` if the size is its own decision.
    fn new(region_bytes: u64, model: Model) -> Self;

    /// Creates the storage that the next opening finds after a crash.
    fn from_image(image: &Self::Image, model: Model) -> Self;

    /// Returns the same storage, on which protocols leave out or break the step that `canary` names.
    #[must_use]
    fn with_canary(self, canary: Canary) -> Self;

    /// Marks it as open for reading: from now on, any change fails the test.
    fn freeze(&self);

    /// Calls `observer` after every step from now on; see [`Sim::observe`].
    fn observe(&self, observer: ObserverOf<Self>);

    /// Calls `observer` after every step of [`crate::unobserved`] work from now on.
    fn observe_beside(&self, observer: ObserverOf<Self>);

    /// Ends observation.
    fn unobserve(&self);

    /// Returns the number of steps so far.
    fn step_count(&self) -> u64;

    /// Refuses every growth as full, after `growth_count` more growths.
    fn fail_grow_after(&self, growth_count: u64);

    /// Returns the crash images possible at this moment; see [`Sim::images`].
    fn images(&self, budget: usize, seed: u64) -> Vec<Self::Image>;

    /// Returns the state that the next process finds if this one is killed now, or `None` if all of it is durable:
    /// see [`Sim::killed`].
    fn killed(&self) -> Option<Self::Image>;
}

impl CrashImage for Image {
    fn hash(&self) -> u64 {
        self.hash()
    }
}

impl Crashable for Sim {
    type Image = Image;

    fn new(region_bytes: u64, model: Model) -> Sim {
        Sim::new(region_bytes, model)
    }

    fn from_image(image: &Image, model: Model) -> Sim {
        Sim::from_image(image, model)
    }

    fn with_canary(self, canary: Canary) -> Sim {
        self.with_canary(canary)
    }

    fn freeze(&self) {
        self.freeze();
    }

    fn observe(&self, observer: ObserverOf<Sim>) {
        self.observe(observer);
    }

    fn observe_beside(&self, observer: ObserverOf<Sim>) {
        self.observe_beside(observer);
    }

    fn unobserve(&self) {
        self.unobserve();
    }

    fn step_count(&self) -> u64 {
        self.step_count()
    }

    fn fail_grow_after(&self, growth_count: u64) {
        self.fail_grow_after(growth_count);
    }

    fn images(&self, budget: usize, seed: u64) -> Vec<Image> {
        self.images(budget, seed)
    }

    fn killed(&self) -> Option<Image> {
        self.killed()
    }
}
