//! The DRAM record of a chunk of slots: the bitmap of free slots.
//!
//! Each slot has two bits. *Free*: the slot has no known owner. *Retired*: the slot was freed before the sweep had
//! decided about its chunk. A record is reused only for chunks of the same kind of slots and is freed only with the
//! heap, so that a thread that uses a record after its chunk is gone still reads a record.
//!
//! # States
//! ```text
//!   Pooled ── begin ──> Owned <────────────┐
//!     ^                   │ disown         │ adopted by a lane
//!     │ chunk given back  v                │
//!     └───────────────── Idle ── roomy ─> Listed
//!     └──── empty ─── Evacuating <── chosen ── Idle, Listed
//!   Unswept ── swept ──> Owned (by the sweep)
//!   Unswept ── known from a clean image ──> Idle
//! ```
//! Only the owner claims slots; any thread frees them. State and links change under the space lock. Exception: the
//! chunk's sweeper makes the step out of Unswept without the lock.
//!
//! # Free count
//! A slot's bit is set before the slot is counted. Only the owner claims words, and counts them before giving up the
//! chunk. So the count of an unowned chunk never exceeds the number of free bits, and a count of all slots means that
//! no free is in progress.

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::record::Link;
use crate::slot_kind::{Geometry, SlotKind};

/// The owner of a chunk; only the owner may claim its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// No chunk: the record is available for one.
    Pooled,
    /// Owned by one lane, or by the sweep.
    Owned,
    /// Unowned: too few slots are free.
    Idle,
    /// Unowned, in the list of roomy chunks, from which a lane can take it.
    Listed,
    /// Unowned: the chunk is older than this heap and its live slots are not known yet.
    Unswept,
    /// Unowned, until it is empty or evacuation stops.
    Evacuating,
}

/// The record, with its two bitmaps behind it.
pub(crate) struct Slab {
    words: NonNull<AtomicU64>,
    /// Neighbours in the list of roomy chunks, or in the pool.
    pub(crate) next: Link,
    pub(crate) previous: Link,
    start_unit: AtomicU32,
    free_count: AtomicI32,
    state: AtomicU8,
    slot_kind: SlotKind,
}

impl Slab {
    /// Creates a pooled record, with zeroed bitmaps at `words`.
    ///
    /// # Safety
    /// `words` points at both bitmaps, which live as long as the record.
    pub(crate) unsafe fn new(words: NonNull<AtomicU64>, slot_kind: SlotKind) -> Slab {
        Slab {
            words,
            next: Link::default(),
            previous: Link::default(),
            start_unit: AtomicU32::new(0),
            free_count: AtomicI32::new(0),
            state: AtomicU8::new(State::Pooled as u8),
            slot_kind,
        }
    }

    /// Makes this the record of a chunk at `unit` with every slot free.
    pub(crate) fn begin(&self, unit: u32, state: State) {
        let geometry = self.geometry();
        for (word, bits) in self.free_words().iter().enumerate() {
            bits.store(geometry.word_mask(word as u32), Ordering::Relaxed);
        }
        for bits in self.retired_words() {
            bits.store(0, Ordering::Relaxed);
        }
        self.start_unit.store(unit, Ordering::Relaxed);
        self.free_count.store(geometry.slot_count as i32, Ordering::Relaxed);
        self.set_state(state);
    }

    pub(crate) fn slot_kind(&self) -> SlotKind {
        self.slot_kind
    }

    #[inline]
    pub(crate) fn geometry(&self) -> &'static Geometry {
        self.slot_kind.geometry()
    }

    pub(crate) fn start_unit(&self) -> u32 {
        self.start_unit.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Pooled,
            1 => State::Owned,
            2 => State::Idle,
            3 => State::Listed,
            4 => State::Unswept,
            _ => State::Evacuating,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_unswept(&self) -> bool {
        self.state.load(Ordering::Acquire) == State::Unswept as u8
    }

    /// Returns the number of slots known to be free. While slots are being freed or claimed, it is slightly too high
    /// or too low.
    #[inline]
    pub(crate) fn free_count(&self) -> i32 {
        self.free_count.load(Ordering::Acquire)
    }

    /// Returns true if a lane should come back to this chunk.
    pub(crate) fn is_roomy(&self) -> bool {
        self.free_count() >= self.geometry().roomy_count
    }

    /// Returns true if at least half of the slots are free: worth reading the chunk for.
    pub(crate) fn is_half_free(&self) -> bool {
        self.free_count() * 2 >= self.geometry().slot_count as i32
    }

    /// Returns the number of free slots at the start of a bitmap word. They stay free while the chunk's owner claims
    /// none of them.
    pub(crate) fn free_at_start(&self, word: u32) -> u32 {
        let bits = self.free_words().get(word as usize);
        bits.map_or(0, |bits| bits.load(Ordering::Acquire).trailing_ones())
    }

    /// Returns true if no slot is in use. Not reliable while the chunk has an owner.
    pub(crate) fn is_wholly_free(&self) -> bool {
        self.free_count() == self.geometry().slot_count as i32
    }

    /// Claims all free slots of a bitmap word, for the chunk's owner.
    pub(crate) fn claim_word(&self, word: u32) -> u64 {
        let bits = &self.free_words()[word as usize];
        if bits.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let claimed = bits.swap(0, Ordering::Acquire);
        self.free_count.fetch_sub(claimed.count_ones() as i32, Ordering::AcqRel);
        claimed
    }

    /// Claims one slot for the sweep. Returns false if it was already claimed.
    pub(crate) fn claim_slot(&self, slot: u32) -> bool {
        let (word, bit) = position(slot);
        self.free_words()[word].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Frees a slot and returns the new count of free slots, or `None` if the slot was already free.
    #[inline]
    pub(crate) fn free_slot(&self, slot: u32) -> Option<i32> {
        let (word, bit) = position(slot);
        let was_free = self.free_words()[word].fetch_or(bit, Ordering::Release) & bit != 0;
        (!was_free).then(|| self.free_count.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Records that a slot of an unswept chunk is to be freed. Returns true if the sweep has finished the chunk since
    /// without seeing the record: the caller must then free the slot.
    #[cold]
    pub(crate) fn retire_unless_swept(&self, slot: u32) -> bool {
        self.retire_slot(slot);
        self.take_back_if_swept(slot)
    }

    /// Ends the chunk's sweep: frees the slots that no mark has claimed and those recorded as retired. The sweep now
    /// owns the chunk.
    pub(crate) fn end_sweep(&self) {
        self.free_count.store(self.free_bit_count(), Ordering::Release);
        self.set_state(State::Owned);
        self.apply_retired();
    }

    /// Copies an unswept chunk's free slots from a clean image whose words fit the kind of slots. The chunk is then
    /// unowned.
    pub(crate) fn adopt_free(&self, free: &[u64]) {
        for (bits, &free) in self.free_words().iter().zip(free) {
            bits.store(free, Ordering::Relaxed);
        }
        self.free_count.store(self.free_bit_count(), Ordering::Release);
        self.set_state(State::Idle);
    }

    /// Returns true if the slot is known to be free. The state is read first: before the end of the sweep, a free bit
    /// means only that no mark has come yet, and both the mark and the end may come between the two reads.
    pub(crate) fn is_known_free(&self, slot: u32) -> bool {
        let (word, bit) = position(slot);
        !self.is_unswept() && self.free_words()[word].load(Ordering::Acquire) & bit != 0
    }

    /// Iterates over the words of the bitmap of free slots.
    pub(crate) fn free_bits(&self) -> impl Iterator<Item = u64> {
        self.free_words().iter().map(|bits| bits.load(Ordering::Acquire))
    }

    fn retire_slot(&self, slot: u32) {
        let (word, bit) = position(slot);
        self.retired_words()[word].fetch_or(bit, Ordering::AcqRel);
    }

    /// Removes the record of a retirement. Returns false if the sweep will process it, or already has.
    fn take_back_if_swept(&self, slot: u32) -> bool {
        let (word, bit) = position(slot);
        !self.is_unswept() && self.retired_words()[word].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Frees every slot recorded as retired.
    fn apply_retired(&self) {
        for (free, retired) in self.free_words().iter().zip(self.retired_words()) {
            let retired = retired.swap(0, Ordering::AcqRel);
            let freed = retired & !free.fetch_or(retired, Ordering::AcqRel);
            self.free_count.fetch_add(freed.count_ones() as i32, Ordering::AcqRel);
        }
    }

    /// Returns the number of slots whose free bit is set.
    pub(crate) fn free_bit_count(&self) -> i32 {
        self.free_words().iter().map(|bits| bits.load(Ordering::Relaxed).count_ones() as i32).sum()
    }

    #[inline]
    fn free_words(&self) -> &[AtomicU64] {
        // SAFETY: `words` points at both bitmaps, which live as long as the record and are only reached as atomics.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.geometry().word_count() as usize) }
    }

    #[inline]
    fn retired_words(&self) -> &[AtomicU64] {
        let count = self.geometry().word_count() as usize;
        // SAFETY: as for `free_words`; the second bitmap follows the first.
        unsafe { slice::from_raw_parts(self.words.as_ptr().add(count), count) }
    }
}

/// Returns the word and the bit of a slot.
#[inline]
fn position(slot: u32) -> (usize, u64) {
    (slot as usize / 64, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::class::Class;

    /// The number of sweeps to observe. If the state is read last, some hundreds show a slot as free that is not.
    const LOOKED_AT_COUNT: usize = 2_000;

    /// The record of an unswept chunk whose slot 0 is marked.
    fn with_unswept(test: impl FnOnce(&Slab)) {
        let slot_kind = SlotKind::of_class(Class::for_bytes(1_000).expect("a class"));
        let words: Vec<AtomicU64> = (0..2 * slot_kind.geometry().word_count()).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: the vector outlives the record.
        let slab = unsafe { Slab::new(NonNull::from(&words[..]).cast(), slot_kind) };
        slab.begin(1, State::Unswept);
        assert!(slab.claim_slot(0));
        test(&slab);
    }

    fn has_free_slots_but(slab: &Slab, live_count: i32) -> bool {
        let free_count = slab.geometry().slot_count as i32 - live_count;
        (slab.free_count(), slab.free_bit_count()) == (free_count, free_count)
    }

    #[test]
    fn sweep_frees_retirements_before_its_end() {
        with_unswept(|slab| {
            assert!(!slab.retire_unless_swept(0));
            slab.end_sweep();
            assert!(has_free_slots_but(slab, 0));
        });
    }

    #[test]
    fn retirer_frees_retirements_after_sweep() {
        with_unswept(|slab| {
            slab.end_sweep();
            assert!(slab.retire_unless_swept(0));
            assert!(has_free_slots_but(slab, 1));
            assert_eq!(slab.free_slot(0), Some(slab.geometry().slot_count as i32));
        });
    }

    /// A record that another thread may also read.
    struct Shared<'a>(&'a Slab);

    // SAFETY: as for `SlabRef`: atomics, and fields that never change.
    unsafe impl Send for Shared<'_> {}

    /// The sweep marks a slot and ends while another thread reads it repeatedly.
    #[test]
    fn marked_slot_is_never_known_free() {
        for _ in 0..LOOKED_AT_COUNT {
            with_unswept(|slab| {
                let swept = Shared(slab);
                std::thread::scope(|scope| {
                    scope.spawn(move || {
                        let Shared(slab) = { swept };
                        assert!(slab.claim_slot(1));
                        slab.end_sweep();
                    });
                    while slab.is_unswept() {
                        assert!(!slab.is_known_free(1));
                    }
                });
            });
        }
    }

    /// The sweep comes between the record and the second read of the state.
    #[test]
    fn swept_retirement_is_not_freed_again() {
        with_unswept(|slab| {
            slab.retire_slot(0);
            slab.end_sweep();
            assert!(!slab.take_back_if_swept(0));
            assert!(has_free_slots_but(slab, 0));
        });
    }
}
