//! Volatile memory, lent by the host.

use core::alloc::Layout;
use core::ptr::NonNull;

/// Lends zeroed volatile memory to core-only crates, which have no allocator of their own: a process lends its heap, a
/// kernel its pages, a firmware a fixed pool.
///
/// # Safety
/// What [`Dram::allocate`] returns is zeroed, fits the layout, belongs to the borrower alone, and stays put and valid until
/// it is given back or the lender itself is gone.
pub unsafe trait Dram: Send + Sync {
    /// Zeroed memory of this layout (never of size 0), or `None` when there is no more.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `memory` came from [`Dram::allocate`] of this lender with the same layout, and nobody uses it any more.
    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout);
}
