//! A region in which a model checker controls the words of two buckets.

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use pmem::{
    Acknowledge, Bytes, Canary, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space, Span, Ticket,
};
use pmem_sim::Sim;
use word::Word;
use word::model::{Weakened, Weakening};

/// The number of modelled words in a bucket: its meta word, and those of the slots that the scenes use.
const WORD_COUNT: u64 = 9;

pub(super) struct Modelled<T: Weakening> {
    sim: Sim,
    broken: Option<Canary>,
    buckets: OnceLock<[(Offset, Vec<Weakened<T>>); 2]>,
}

impl<T: Weakening> Modelled<T> {
    /// Creates the region; its store omits the step `broken`.
    pub(super) fn new(sim: Sim, broken: Option<Canary>) -> Modelled<T> {
        Modelled { sim, broken, buckets: OnceLock::new() }
    }

    /// Gives the words of these buckets to the checker from now on.
    pub(super) fn model(&self, buckets: [Offset; 2]) {
        let word = |at: Offset| Weakened::new(self.sim.load(at, Ordering::Relaxed));
        let words = |at: Offset| (0..WORD_COUNT).map(|i| word(at.plus(8 * i))).collect();
        assert!(self.buckets.set(buckets.map(|at| (at, words(at)))).is_ok());
    }

    fn modelled(&self, at: Offset) -> Option<&Weakened<T>> {
        let i = |bucket: Offset| at.0.checked_sub(bucket.0).filter(|bytes| *bytes < 8 * WORD_COUNT);
        self.buckets.get()?.iter().find_map(|(bucket, words)| i(*bucket).map(|bytes| &words[bytes as usize / 8]))
    }
}

// SAFETY: the memory is the inner medium's, and so is every promise about it; every store reaches it.
unsafe impl<T: Weakening> Bytes for Modelled<T> {
    fn base(&self) -> NonNull<u8> {
        self.sim.base()
    }

    fn len_bytes(&self) -> u64 {
        self.sim.len_bytes()
    }

    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        self.modelled(at).map_or_else(|| self.sim.load(at, ordering), |word| word.load(ordering))
    }

    fn store(&self, at: Offset, value: u64, ordering: Ordering) {
        self.modelled(at).into_iter().for_each(|word| word.store(value, ordering));
        self.sim.store(at, value, ordering);
    }

    fn acquire(&self) {
        Weakened::<T>::fence(Ordering::Acquire);
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        assert!(self.modelled(at).is_none(), "no word of a bucket is exchanged");
        self.sim.compare_exchange(at, current, new)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.sim.write(at, bytes) }
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.sim.stream(at, parts) }
    }
}

impl<T: Weakening> Persist for Modelled<T> {
    fn durability(&self) -> Durability {
        self.sim.durability()
    }

    fn flush(&self, span: Span) {
        self.sim.flush(span);
    }

    fn order(&self) {
        self.sim.order();
    }

    fn commit(&self, level: Level) -> Ticket {
        self.sim.commit(level)
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.sim.wait(ticket)
    }
}

impl<T: Weakening> Acknowledge for Modelled<T> {}

impl<T: Weakening> Residency for Modelled<T> {}

impl<T: Weakening> Space for Modelled<T> {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.sim.grow(to_bytes)
    }
}

impl<T: Weakening> Medium for Modelled<T> {
    fn name(&self) -> &'static str {
        "modelled"
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.broken == Some(canary)
    }
}
