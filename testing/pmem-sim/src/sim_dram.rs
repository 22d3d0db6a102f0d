//! Volatile memory for the core-only crates under test.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use pmem::Dram;

/// Allocates memory from the process' allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimDram;

// SAFETY: the allocator's memory is zeroed on request, fits its layout, belongs to no other code, and stays until
// freed.
unsafe impl Dram for SimDram {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "nobody borrows nothing");
        // SAFETY: the layout has a size (just checked).
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that it was allocated with this layout, and that no code uses it.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}
