//! Typed and counted allocations of DRAM from the host ([`Dram`]).

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use pmem::Dram;

use crate::HeapError;

/// A type for which all-zero bytes are a valid value, so that newly allocated memory already holds one.
///
/// # Safety
/// All-zero bytes are a valid value of the type.
pub(crate) unsafe trait Zeroed {}

/// The host's allocator, and the number of bytes allocated from it.
pub(crate) struct DramAllocator<D> {
    dram: D,
    allocated_bytes: AtomicU64,
}

impl<D: Dram> DramAllocator<D> {
    pub(crate) fn new(dram: D) -> DramAllocator<D> {
        DramAllocator { dram, allocated_bytes: AtomicU64::new(0) }
    }

    /// Returns the number of allocated bytes.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Allocates zeroed memory.
    pub(crate) fn allocate(&self, layout: Layout) -> Result<NonNull<u8>, HeapError> {
        let memory = self.dram.allocate(layout).ok_or(HeapError::NoDram { wanted_bytes: layout.size() })?;
        self.allocated_bytes.fetch_add(layout.size() as u64, Ordering::Relaxed);
        Ok(memory)
    }

    /// Allocates a zeroed value.
    pub(crate) fn allocate_zeroed<T: Zeroed>(&self) -> Result<NonNull<T>, HeapError> {
        Ok(self.allocate(Layout::new::<T>())?.cast())
    }

    /// Frees memory.
    ///
    /// # Safety
    /// The memory came from [`DramAllocator::allocate`] with this layout and is no longer used.
    pub(crate) unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        self.allocated_bytes.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.dram.deallocate(memory, layout) }
    }
}
