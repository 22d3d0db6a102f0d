//! Words that threads share, and what a model checker puts in their place.
//!
//! Code whose orders are worth a proof is written over a [`Word`]: an atomic of the processor where it runs, and one of the
//! checker's (feature `model`) where every interleaving is searched, with the reorderings that the memory model allows. A model's
//! twins lack an order that the code asks for: `model::Weakened`.
#![no_std]

#[cfg(feature = "model")]
pub mod model;

use core::sync::atomic::{AtomicU64, Ordering, fence};

/// A shared word. Its methods are those of [`AtomicU64`].
#[expect(missing_docs, reason = "each is what the atomic's method of this name says")]
pub trait Word: Sized {
    fn new(word: u64) -> Self;
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, word: u64, ordering: Ordering);
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;
    fn fetch_add(&self, by: u64, ordering: Ordering) -> u64;
    fn fetch_sub(&self, by: u64, ordering: Ordering) -> u64;
    fn fetch_and(&self, bits: u64, ordering: Ordering) -> u64;
    fn fetch_or(&self, bits: u64, ordering: Ordering) -> u64;
    fn fetch_max(&self, word: u64, ordering: Ordering) -> u64;
    fn fence(ordering: Ordering);
}

/// All of [`Word`] by the methods and the `fence` of an atomic.
macro_rules! is_word {
    ($atomic:ty, $fence:path) => {
        impl Word for $atomic {
            fn new(word: u64) -> Self {
                <$atomic>::new(word)
            }

            by_method!($atomic, load() -> u64);
            by_method!($atomic, store(word: u64) -> ());
            by_method!($atomic, fetch_add(by: u64) -> u64);
            by_method!($atomic, fetch_sub(by: u64) -> u64);
            by_method!($atomic, fetch_and(bits: u64) -> u64);
            by_method!($atomic, fetch_or(bits: u64) -> u64);
            by_method!($atomic, fetch_max(word: u64) -> u64);
            by_method!($atomic, compare_exchange(current: u64, new: u64, success: Ordering) -> Result<u64, u64>);
            by_method!($atomic, compare_exchange_weak(current: u64, new: u64, success: Ordering) -> Result<u64, u64>);

            #[inline(always)]
            fn fence(ordering: Ordering) {
                $fence(ordering);
            }
        }
    };
}

macro_rules! by_method {
    ($atomic:ty, $method:ident($($argument:ident: $kind:ty),*) -> $answer:ty) => {
        #[inline(always)]
        fn $method(&self, $($argument: $kind,)* ordering: Ordering) -> $answer {
            <$atomic>::$method(self, $($argument,)* ordering)
        }
    };
}

is_word!(AtomicU64, fence);
#[cfg(feature = "model")]
is_word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence);
