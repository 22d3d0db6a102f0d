//! The heap's side of [`Dram`]: typed loans, counted.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use pmem::Dram;

use crate::HeapError;

/// A type of which all-zero bytes are a valid value, so that lent memory holds it at once.
///
/// # Safety
/// All-zero bytes are a valid value of the type.
pub(crate) unsafe trait Zeroed {}

/// The host's memory, and how much of it is out on loan.
pub(crate) struct DramAllocator<D> {
    dram: D,
    allocated_bytes: AtomicU64,
}

impl<D: Dram> DramAllocator<D> {
    pub(crate) fn new(dram: D) -> DramAllocator<D> {
        DramAllocator { dram, allocated_bytes: AtomicU64::new(0) }
    }

    /// Bytes out on loan.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Zeroed memory.
    pub(crate) fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, HeapError> {
        let memory = self.dram.allocate(layout).ok_or(HeapError::NoDram { wanted_bytes: layout.size() })?;
        self.allocated_bytes.fetch_add(layout.size() as u64, Ordering::Relaxed);
        Ok(memory)
    }

    /// A zeroed value.
    pub(crate) fn allocate_zeroed<T: Zeroed>(&self) -> Result<NonNull<T>, HeapError> {
        Ok(self.allocate(Layout::new::<T>())?.cast())
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// The memory came from [`DramAllocator::allocate`] with this layout, and nobody uses it any more.
    pub(crate) unsafe fn give_back(&self, memory: NonNull<u8>, layout: Layout) {
        self.allocated_bytes.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.dram.deallocate(memory, layout) }
    }
}
