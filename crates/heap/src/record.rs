//! Handles to the DRAM records of chunks, and the links between them.
//!
//! Records are lent one by one, linked into lists, and named by the table; all of them go back when the heap is dropped.

use core::alloc::Layout;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pmem::Dram;

use crate::HeapError;
use crate::lender::Lender;
use crate::slab::Slab;
use crate::slot_kind::SlotKind;

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
    /// Borrows memory for a record of chunks of `slot_kind`; it is pooled.
    pub(crate) fn lend<D: Dram>(lender: &Lender<D>, slot_kind: SlotKind) -> Result<SlabRef, HeapError> {
        let (layout, bitmaps_at) = layout(slot_kind)?;
        let memory = lender.lend(layout)?;
        let record = memory.cast::<Slab>();
        // SAFETY: the loan fits the record and, from `bitmaps_at`, its bitmaps, which zero bytes make valid.
        unsafe { record.write(Slab::new(memory.add(bitmaps_at).cast(), slot_kind)) };
        Ok(SlabRef(record))
    }

    /// Gives the record back.
    ///
    /// # Safety
    /// It was lent by this lender, and nobody uses it any more.
    pub(crate) unsafe fn give_back<D: Dram>(self, lender: &Lender<D>) {
        if let Ok((layout, _)) = layout(self.slot_kind()) {
            // SAFETY: lent with this layout, and the caller gives up its use.
            unsafe { lender.give_back(self.0.cast(), layout) };
        }
    }
}

/// The layout of a record with both bitmaps behind it, and where they begin.
fn layout(slot_kind: SlotKind) -> Result<(Layout, usize), HeapError> {
    let bitmaps = Layout::array::<AtomicU64>(2 * slot_kind.geometry().word_count() as usize);
    bitmaps
        .and_then(|bitmaps| Layout::new::<Slab>().extend(bitmaps))
        .map_err(|_| HeapError::NoDram { wanted_bytes: usize::MAX })
}

/// A word that names a record or none. All-zero bytes name none.
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
