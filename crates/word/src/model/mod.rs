//! Words of the model checker, and broken variants that lack a memory order.

pub mod chosen;

use core::marker::PhantomData;
use core::sync::atomic::Ordering;
use std::panic::catch_unwind;

use loom::sync::atomic::{AtomicU8, AtomicU64, fence};

use crate::Word;

/// Searches every run of the scene with at most `preemption_count` preemptions.
///
/// # Panics
/// If the scene panics in one of the runs, or does not end.
pub fn explore(preemption_count: usize, scene: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemption_count);
    model.check(scene);
}

/// Returns true if the search finds the fault of a broken variant.
pub fn is_caught(preemption_count: usize, scene: fn()) -> bool {
    catch_unwind(|| explore(preemption_count, scene)).is_err()
}

/// Changes the requested orders in a broken variant. The default methods change nothing.
pub trait Weakening: 'static {
    /// Returns the order of a load.
    fn load(asked: Ordering) -> Ordering {
        asked
    }

    /// Returns the order of a store.
    fn store(asked: Ordering) -> Ordering {
        asked
    }

    /// Returns the order of a read-modify-write.
    fn update(asked: Ordering) -> Ordering {
        asked
    }

    /// Returns true if a fence is executed.
    fn has_fence(_asked: Ordering) -> bool {
        true
    }
}

/// Changes nothing.
#[derive(Debug)]
pub struct Unchanged;

impl Weakening for Unchanged {}

/// Removes the release from stores that only release.
#[derive(Debug)]
pub struct NoRelease;

impl Weakening for NoRelease {
    fn store(asked: Ordering) -> Ordering {
        if asked == Ordering::Release { Ordering::Relaxed } else { asked }
    }

    fn update(asked: Ordering) -> Ordering {
        NoRelease::store(asked)
    }
}

/// A model's word with all requested orders.
pub type Modelled = Weakened<Unchanged>;

/// A model's byte with fewer orders than requested.
pub type WeakenedByte<W> = Weakened<W, AtomicU8>;

/// A model's word with fewer orders than requested.
#[derive(Debug)]
pub struct Weakened<W, A = AtomicU64>(A, PhantomData<fn() -> W>);

/// Implements [`Word`] over an atomic of the checker.
macro_rules! modelled {
    ($atomic:ty, $value:ty) => {
        impl<W: Weakening> Word<$value> for Weakened<W, $atomic> {
            fn new(word: $value) -> Weakened<W, $atomic> {
                Weakened(<$atomic>::new(word), PhantomData)
            }

            fn load(&self, ordering: Ordering) -> $value {
                self.0.load(W::load(ordering))
            }

            fn store(&self, word: $value, ordering: Ordering) {
                self.0.store(word, W::store(ordering));
            }

            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, W::update(success), W::load(failure))
            }

            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange_weak(current, new, W::update(success), W::load(failure))
            }

            fn fetch_add(&self, by: $value, ordering: Ordering) -> $value {
                self.0.fetch_add(by, W::update(ordering))
            }

            fn fetch_sub(&self, by: $value, ordering: Ordering) -> $value {
                self.0.fetch_sub(by, W::update(ordering))
            }

            fn fetch_and(&self, bits: $value, ordering: Ordering) -> $value {
                self.0.fetch_and(bits, W::update(ordering))
            }

            fn fetch_or(&self, bits: $value, ordering: Ordering) -> $value {
                self.0.fetch_or(bits, W::update(ordering))
            }

            fn fetch_max(&self, word: $value, ordering: Ordering) -> $value {
                self.0.fetch_max(word, W::update(ordering))
            }

            fn fence(ordering: Ordering) {
                if W::has_fence(ordering) {
                    fence(ordering);
                }
            }
        }
    };
}

modelled!(AtomicU64, u64);
modelled!(AtomicU8, u8);

/// A word whose exchange loads and then stores: a store in between is lost.
#[derive(Debug)]
pub struct InTwoSteps(Modelled);

impl Word for InTwoSteps {
    fn new(word: u64) -> InTwoSteps {
        InTwoSteps(Modelled::new(word))
    }

    fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(ordering)
    }

    fn store(&self, word: u64, ordering: Ordering) {
        self.0.store(word, ordering);
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, _failure: Ordering) -> Result<u64, u64> {
        let now = self.0.load(success);
        if now != current {
            return Err(now);
        }
        self.0.store(new, success);
        Ok(now)
    }

    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.compare_exchange(current, new, success, failure)
    }

    fn fetch_add(&self, by: u64, ordering: Ordering) -> u64 {
        self.0.fetch_add(by, ordering)
    }

    fn fetch_sub(&self, by: u64, ordering: Ordering) -> u64 {
        self.0.fetch_sub(by, ordering)
    }

    fn fetch_and(&self, bits: u64, ordering: Ordering) -> u64 {
        self.0.fetch_and(bits, ordering)
    }

    fn fetch_or(&self, bits: u64, ordering: Ordering) -> u64 {
        self.0.fetch_or(bits, ordering)
    }

    fn fetch_max(&self, word: u64, ordering: Ordering) -> u64 {
        self.0.fetch_max(word, ordering)
    }

    fn fence(ordering: Ordering) {
        Modelled::fence(ordering);
    }
}
