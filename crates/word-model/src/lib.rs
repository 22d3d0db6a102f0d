//! Words of the model checker, and twins of them that lack an order.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use loom::sync::atomic::{AtomicU64, fence};

use word::Word;

/// What a twin makes of the orders that are asked for. As it stands, nothing.
pub trait Weakening: 'static {
    /// Of a load.
    fn load(asked: Ordering) -> Ordering {
        asked
    }

    /// Of a store.
    fn store(asked: Ordering) -> Ordering {
        asked
    }

    /// Of what loads and stores.
    fn update(asked: Ordering) -> Ordering {
        asked
    }

    /// Whether a fence is there.
    fn has_fence(_asked: Ordering) -> bool {
        true
    }
}

/// Nothing.
#[derive(Debug)]
pub struct AsAsked;

impl Weakening for AsAsked {}

/// A model's word, with all orders that are asked for.
pub type Modelled = Weakened<AsAsked>;

/// A model's word, with fewer orders than are asked for.
#[derive(Debug)]
pub struct Weakened<W>(AtomicU64, PhantomData<fn() -> W>);

impl<W: Weakening> Word for Weakened<W> {
    fn new(word: u64) -> Weakened<W> {
        Weakened(AtomicU64::new(word), PhantomData)
    }

    fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(W::load(ordering))
    }

    fn store(&self, word: u64, ordering: Ordering) {
        self.0.store(word, W::store(ordering));
    }

    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange(current, new, W::update(success), W::load(failure))
    }

    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.0.compare_exchange_weak(current, new, W::update(success), W::load(failure))
    }

    fn fetch_add(&self, by: u64, ordering: Ordering) -> u64 {
        self.0.fetch_add(by, W::update(ordering))
    }

    fn fetch_sub(&self, by: u64, ordering: Ordering) -> u64 {
        self.0.fetch_sub(by, W::update(ordering))
    }

    fn fetch_and(&self, bits: u64, ordering: Ordering) -> u64 {
        self.0.fetch_and(bits, W::update(ordering))
    }

    fn fetch_or(&self, bits: u64, ordering: Ordering) -> u64 {
        self.0.fetch_or(bits, W::update(ordering))
    }

    fn fetch_max(&self, word: u64, ordering: Ordering) -> u64 {
        self.0.fetch_max(word, W::update(ordering))
    }

    fn fence(ordering: Ordering) {
        if W::has_fence(ordering) {
            fence(ordering);
        }
    }
}
