//! The DRAM record of a chunk of slots: which of them are free.
//!
//! Two bits a slot. *Free*: nobody is known to own the slot. *Retired*: freed while the sweep had not yet decided about
//! its chunk. A record is recycled only for chunks of its own shape and goes back to the host only with the heap, so that
//! a late look at a record whose chunk is gone reads a record still.
//!
//! # States
//! ```text
//!   Pooled ── begin ──> Owned <────────────┐
//!     ^                   │ disown         │ adopted by a lane
//!     │ chunk given back  v                │
//!     └───────────────── Idle ── roomy ─> Listed
//!   Unswept ── swept ──> Owned (by the sweep)
//! ```
//! Only the owner claims slots; anybody frees them. State and links change under the space lock, apart from the step out
//! of Unswept, which its sweeper takes alone.
//!
//! # Free count
//! A slot's bit is set before it is counted, and words are claimed only by the owner, who has counted them before it
//! gives the chunk up. So the count of an unowned chunk never exceeds its free bits, and a count of all slots means that
//! no free is under way.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use pmem::Dram;

use crate::HeapError;
use crate::lender::Lender;
use crate::shape::{Geometry, Shape};

/// Who may claim slots of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// There is no chunk: the record waits for one.
    Pooled,
    /// One lane, or the sweep.
    Owned,
    /// Nobody: too few slots are free.
    Idle,
    /// Whoever takes it from the list of roomy chunks.
    Listed,
    /// Nobody: the chunk is older than this heap and its live slots are not known yet.
    Unswept,
}

/// A record of this heap. It stays valid while the heap lives, and never leaves the heap's own methods.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct SlabRef(NonNull<Slab>);

// SAFETY: a record is shared by all threads: atomics, and fields that never change.
unsafe impl Send for SlabRef {}

impl Deref for SlabRef {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: records are given back only when the heap is dropped, and no `SlabRef` outlives its heap's methods.
        unsafe { self.0.as_ref() }
    }
}

impl SlabRef {
    /// The record that a link or a table entry holds.
    ///
    /// # Safety
    /// The pointer is null or came from [`SlabRef::as_ptr`] in this heap.
    #[inline]
    pub(crate) unsafe fn from_ptr(record: *mut Slab) -> Option<SlabRef> {
        NonNull::new(record).map(SlabRef)
    }

    /// What a link to this record holds.
    pub(crate) fn as_ptr(self) -> *mut Slab {
        self.0.as_ptr()
    }

    /// Gives the record back.
    ///
    /// # Safety
    /// It was lent by this lender, and nobody uses it any more.
    pub(crate) unsafe fn give_back<D: Dram>(self, lender: &Lender<D>) {
        if let Ok((layout, _)) = Slab::layout(self.shape) {
            // SAFETY: lent with this layout, and the caller gives up its use.
            unsafe { lender.give_back(self.0.cast(), layout) };
        }
    }
}

/// The record, with its two bitmaps behind it.
#[repr(C)]
pub(crate) struct Slab {
    words: NonNull<AtomicU64>,
    /// Neighbours in the list of roomy chunks, or in the pool.
    next: AtomicPtr<Slab>,
    previous: AtomicPtr<Slab>,
    start_unit: AtomicU32,
    free_count: AtomicI32,
    state: AtomicU8,
    shape: Shape,
}

impl Slab {
    fn layout(shape: Shape) -> Result<(Layout, usize), HeapError> {
        let words = 2 * shape.geometry().word_count() as usize;
        let bitmaps = Layout::array::<AtomicU64>(words);
        bitmaps
            .and_then(|bitmaps| Layout::new::<Slab>().extend(bitmaps))
            .map_err(|_| HeapError::NoDram { wanted_bytes: usize::MAX })
    }

    /// A pooled record for chunks of `shape`.
    pub(crate) fn lend<D: Dram>(lender: &Lender<D>, shape: Shape) -> Result<SlabRef, HeapError> {
        let (layout, words_at) = Slab::layout(shape)?;
        let memory = lender.lend(layout)?;
        // SAFETY: the loan fits the record and, from `words_at`, its bitmaps, which zero bytes make valid.
        unsafe {
            let record = memory.cast::<Slab>();
            record.write(Slab {
                words: memory.add(words_at).cast(),
                next: AtomicPtr::new(ptr::null_mut()),
                previous: AtomicPtr::new(ptr::null_mut()),
                start_unit: AtomicU32::new(0),
                free_count: AtomicI32::new(0),
                state: AtomicU8::new(State::Pooled as u8),
                shape,
            });
            Ok(SlabRef(record))
        }
    }

    /// Becomes the record of a chunk at `unit`, every slot of it free.
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

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    #[inline]
    pub(crate) fn geometry(&self) -> &'static Geometry {
        self.shape.geometry()
    }

    /// The next record in the list.
    pub(crate) fn next(&self) -> Option<SlabRef> {
        // SAFETY: set from a record of this heap.
        unsafe { SlabRef::from_ptr(self.next.load(Ordering::Relaxed)) }
    }

    /// The record before in the list.
    pub(crate) fn previous(&self) -> Option<SlabRef> {
        // SAFETY: set from a record of this heap.
        unsafe { SlabRef::from_ptr(self.previous.load(Ordering::Relaxed)) }
    }

    pub(crate) fn set_next(&self, next: Option<SlabRef>) {
        self.next.store(next.map_or(ptr::null_mut(), SlabRef::as_ptr), Ordering::Relaxed);
    }

    pub(crate) fn set_previous(&self, previous: Option<SlabRef>) {
        self.previous.store(previous.map_or(ptr::null_mut(), SlabRef::as_ptr), Ordering::Relaxed);
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
            _ => State::Unswept,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_unswept(&self) -> bool {
        self.state.load(Ordering::Acquire) == State::Unswept as u8
    }

    /// Slots known to be free; while slots are being freed or claimed, a little off either way.
    #[inline]
    pub(crate) fn free_count(&self) -> i32 {
        self.free_count.load(Ordering::Acquire)
    }

    /// True if a lane should come back to this chunk.
    pub(crate) fn is_roomy(&self) -> bool {
        self.free_count() >= self.geometry().roomy_count
    }

    /// True if no slot is in use, which an owner cannot be sure of.
    pub(crate) fn is_wholly_free(&self) -> bool {
        self.free_count() == self.geometry().slot_count as i32
    }

    /// Claims all free slots of a bitmap word, for its owner.
    pub(crate) fn claim_word(&self, word: u32) -> u64 {
        let bits = &self.free_words()[word as usize];
        if bits.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        let claimed = bits.swap(0, Ordering::Acquire);
        self.free_count.fetch_sub(claimed.count_ones() as i32, Ordering::AcqRel);
        claimed
    }

    /// Claims one slot, for the sweep. False if it was claimed before.
    pub(crate) fn claim_slot(&self, slot: u32) -> bool {
        let (word, bit) = position(slot);
        self.free_words()[word].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Frees a slot: the count of free slots after it, or `None` if the slot was free.
    #[inline]
    pub(crate) fn free_slot(&self, slot: u32) -> Option<i32> {
        let (word, bit) = position(slot);
        let was_free = self.free_words()[word].fetch_or(bit, Ordering::Release) & bit != 0;
        (!was_free).then(|| self.free_count.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Records that a slot of an unswept chunk is to be freed.
    pub(crate) fn retire_slot(&self, slot: u32) {
        let (word, bit) = position(slot);
        self.retired_words()[word].fetch_or(bit, Ordering::AcqRel);
    }

    /// Takes the record of a retirement back. False if the sweep has taken it already.
    pub(crate) fn take_retired(&self, slot: u32) -> bool {
        let (word, bit) = position(slot);
        self.retired_words()[word].fetch_and(!bit, Ordering::AcqRel) & bit != 0
    }

    /// Counts the slots that no mark has claimed, for the sweep of an unswept chunk.
    pub(crate) fn count_unclaimed(&self) {
        self.free_count.store(self.free_bit_count(), Ordering::Release);
    }

    /// Frees every slot recorded as retired, each once however many threads try.
    pub(crate) fn apply_retired(&self) {
        for (free, retired) in self.free_words().iter().zip(self.retired_words()) {
            let retired = retired.swap(0, Ordering::AcqRel);
            let freed = retired & !free.fetch_or(retired, Ordering::AcqRel);
            self.free_count.fetch_add(freed.count_ones() as i32, Ordering::AcqRel);
        }
    }

    /// How many slots have their free bit set.
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

/// The word and the bit of a slot.
#[inline]
fn position(slot: u32) -> (usize, u64) {
    (slot as usize / 64, 1 << (slot % 64))
}
