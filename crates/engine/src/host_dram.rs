//! A process lends its heap to the core-only crates.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use pmem::Dram;

/// Lends memory of the process' global allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostDram;

// SAFETY: the global allocator's memory is zeroed on request, fits its layout, is nobody else's, and stays until freed.
unsafe impl Dram for HostDram {
    fn lend(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "nobody borrows nothing");
        // SAFETY: the layout has a size (just checked).
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn give_back(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that it was lent with this layout.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}
