//! Handles to the DRAM records of chunks, and the links between them.
//!
//! Records are allocated one by one, linked into lists, and entered in the table. All are freed when the heap is
//! dropped.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pmem::{Dram, arch};

use crate::HeapError;
use crate::dram_allocator::DramAllocator;
use crate::slab::Slab;
use crate::slot_kind::SlotKind;

/// A record of this heap. It stays valid while the heap lives, and is used only within the heap's methods.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct SlabRef(NonNull<Slab>);

// SAFETY: a record is shared by all threads: atomics, and fields that never change.
unsafe impl Send for SlabRef {}

impl Deref for SlabRef {
    type Target = Slab;

    #[inline]
    fn deref(&self) -> &Slab {
        // SAFETY: records are freed only when the heap is dropped, and no `SlabRef` outlives its heap's methods.
        unsafe { self.0.as_ref() }
    }
}

impl SlabRef {
    /// Allocates a record for chunks of `slot_kind`, in the pooled state.
    pub(crate) fn allocate<D: Dram>(allocator: &DramAllocator<D>, slot_kind: SlotKind) -> Result<SlabRef, HeapError> {
        let layout = layout(slot_kind)?;
        let memory = allocator.allocate(layout)?;
        let record = memory.cast::<Slab>();
        // SAFETY: the allocation holds the record and, behind it, its bitmaps, for which zero bytes are valid.
        unsafe { record.write(Slab::new(memory.add(BITMAPS_AT).cast(), slot_kind)) };
        Ok(SlabRef(record))
    }

    /// Prefetches the words that claiming a slot uses. Nothing of the record is read for that, because it may not be
    /// cached.
    #[inline]
    pub(crate) fn prefetch_claim(self, slot: u32) {
        let record = self.0.as_ptr().cast::<u8>();
        arch::prefetch(record);
        arch::prefetch_to_write(record.wrapping_add(BITMAPS_AT + slot as usize / 64 * size_of::<AtomicU64>()));
    }

    /// Frees the record.
    ///
    /// # Safety
    /// It was allocated by this lender and is no longer used.
    pub(crate) unsafe fn deallocate<D: Dram>(self, allocator: &DramAllocator<D>) {
        if let Ok(layout) = layout(self.slot_kind()) {
            // SAFETY: allocated with this layout, and the caller gives up its use.
            unsafe { allocator.deallocate(self.0.cast(), layout) };
        }
    }
}

/// The offset of a record's bitmaps.
const BITMAPS_AT: usize = size_of::<Slab>();

const _: () = assert!(BITMAPS_AT.is_multiple_of(align_of::<AtomicU64>()));

/// Returns the layout of a record with both bitmaps behind it.
fn layout(slot_kind: SlotKind) -> Result<Layout, HeapError> {
    let bitmaps = Layout::array::<AtomicU64>(2 * slot_kind.geometry().word_count() as usize);
    let with_bitmaps = bitmaps.and_then(|bitmaps| Layout::new::<Slab>().extend(bitmaps));
    with_bitmaps.map(|(layout, _)| layout).map_err(|_| HeapError::NoDram { wanted_bytes: usize::MAX })
}

/// A link to a record, or to none. All-zero bytes are a link to none.
#[derive(Default)]
pub(crate) struct Link(AtomicPtr<Slab>);

impl Link {
    #[inline]
    pub(crate) fn get(&self) -> Option<SlabRef> {
        NonNull::new(self.0.load(Ordering::Acquire)).map(SlabRef)
    }

    pub(crate) fn set(&self, record: Option<SlabRef>) {
        self.0.store(record.map_or(ptr::null_mut(), |record| record.0.as_ptr()), Ordering::Release);
    }
}
