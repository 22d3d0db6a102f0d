//! Words that threads share, with a model checker's words as a replacement.
//!
//! Code whose memory orders need a proof is written over a [`Word`]. In the product, a word is a processor's atomic. In
//! tests, it is the checker's (module `model`, behind a feature), which searches every interleaving, with the
//! reorderings that the memory model allows.
//!
//! # Tables
//! A hash index has pointers, flags and locks next to words, in every type from the table to the segment: a type
//! parameter for each would run through the engines that keep such a table. A test also needs both kinds in one
//! table, because a checker that searches the orders of all segments never ends. So crate `index` imports the types
//! that threads share from one module (`shared`). In the crate's tests, that module re-exports the types of
//! `word::model::chosen`, which are the checker's if they are created under a model.
#![cfg_attr(not(feature = "model"), no_std)]

#[cfg(feature = "model")]
pub mod model;

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

/// A shared word of 64 bits, or of type `V`. Its methods are those of [`AtomicU64`].
#[expect(missing_docs, reason = "the atomic has methods of these names")]
pub trait Word<V = u64>: Sized {
    fn new(word: V) -> Self;
    fn load(&self, ordering: Ordering) -> V;
    fn store(&self, word: V, ordering: Ordering);
    fn compare_exchange(&self, current: V, new: V, success: Ordering, failure: Ordering) -> Result<V, V>;
    fn compare_exchange_weak(&self, current: V, new: V, success: Ordering, failure: Ordering) -> Result<V, V>;
    fn fetch_add(&self, by: V, ordering: Ordering) -> V;
    fn fetch_sub(&self, by: V, ordering: Ordering) -> V;
    fn fetch_and(&self, bits: V, ordering: Ordering) -> V;
    fn fetch_or(&self, bits: V, ordering: Ordering) -> V;
    fn fetch_max(&self, word: V, ordering: Ordering) -> V;
    fn fence(ordering: Ordering);
}

/// Forwards to the atomic's method of the same name.
macro_rules! as_it_is {
    ($atomic:ty: $method:ident($($argument:ident: $kind:ty),*) -> $answer:ty) => {
        #[inline(always)]
        fn $method(&self, $($argument: $kind,)* ordering: Ordering) -> $answer {
            <$atomic>::$method(self, $($argument,)* ordering)
        }
    };
}

/// Implements [`Word`] for an atomic of the processor.
macro_rules! native {
    ($atomic:ty, $value:ty) => {
        impl Word<$value> for $atomic {
            fn new(word: $value) -> Self {
                <$atomic>::new(word)
            }

            as_it_is!($atomic: load() -> $value);
            as_it_is!($atomic: store(word: $value) -> ());
            as_it_is!($atomic: fetch_add(by: $value) -> $value);
            as_it_is!($atomic: fetch_sub(by: $value) -> $value);
            as_it_is!($atomic: fetch_and(bits: $value) -> $value);
            as_it_is!($atomic: fetch_or(bits: $value) -> $value);
            as_it_is!($atomic: fetch_max(word: $value) -> $value);
            as_it_is!($atomic: compare_exchange(current: $value, new: $value, success: Ordering) -> Result<$value, $value>);
            as_it_is!($atomic: compare_exchange_weak(current: $value, new: $value, success: Ordering) -> Result<$value, $value>);

            #[inline(always)]
            fn fence(ordering: Ordering) {
                fence(ordering);
            }
        }
    };
}

native!(AtomicU64, u64);
native!(AtomicU8, u8);
