//! Volatile memory, allocated by the host.

use core::alloc::Layout;
use core::ptr::NonNull;

/// An allocator of zeroed volatile memory for core-only crates, which have no allocator of their own. A process
/// uses its heap, a kernel its pages, a firmware a fixed pool.
///
/// # Safety
/// The memory that [`Dram::allocate`] returns is zeroed, fits the layout, belongs only to the borrower, and stays in
/// place and valid until it is freed or the allocator itself is dropped.
pub unsafe trait Dram: Send + Sync {
    /// Allocates zeroed memory of this layout (never of size 0), or returns `None` if there is no more.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees memory.
    ///
    /// # Safety
    /// `memory` came from [`Dram::allocate`] of this allocator with the same layout, and is not used any more.
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout);
}

// SAFETY: the memory is that of the allocator behind the reference.
unsafe impl<D: Dram> Dram for &D {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        (**self).allocate(layout)
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { (**self).deallocate(memory, layout) }
    }
}
