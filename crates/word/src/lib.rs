//! Words that threads share, and what a model checker puts in their place.
//!
//! Code whose orders are worth a proof is written over a [`Word`]: an atomic of the processor where it runs, and one of the
//! checker's (crate `word-model`) where every interleaving is searched, with the reorderings that the memory model allows.
#![no_std]

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

/// A method of an atomic, as it stands.
macro_rules! as_it_is {
    ($method:ident($($argument:ident: $kind:ty),*) -> $answer:ty) => {
        #[inline(always)]
        fn $method(&self, $($argument: $kind,)* ordering: Ordering) -> $answer {
            AtomicU64::$method(self, $($argument,)* ordering)
        }
    };
}

impl Word for AtomicU64 {
    fn new(word: u64) -> Self {
        AtomicU64::new(word)
    }

    as_it_is!(load() -> u64);
    as_it_is!(store(word: u64) -> ());
    as_it_is!(fetch_add(by: u64) -> u64);
    as_it_is!(fetch_sub(by: u64) -> u64);
    as_it_is!(fetch_and(bits: u64) -> u64);
    as_it_is!(fetch_or(bits: u64) -> u64);
    as_it_is!(fetch_max(word: u64) -> u64);
    as_it_is!(compare_exchange(current: u64, new: u64, success: Ordering) -> Result<u64, u64>);
    as_it_is!(compare_exchange_weak(current: u64, new: u64, success: Ordering) -> Result<u64, u64>);

    #[inline(always)]
    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}
