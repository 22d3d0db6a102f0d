//! DRAM of a process for the core-only crates.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::{self, NonNull};

use pmem::Dram;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Memory of at least this length and alignment is allocated in huge pages, if the kernel has any: a caller that
/// requests such an alignment intends to use all of it.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Allocates from the process' global allocator, and complete huge pages from the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostDram;

// SAFETY: the global allocator's memory is zeroed on request, and the kernel's always is; it fits its layout,
// belongs to no other code, and stays until freed.
unsafe impl Dram for HostDram {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.size() > 0, "nobody borrows nothing");
        if is_huge(layout) {
            return lend_pages(layout);
        }
        // SAFETY: the layout has a size (just checked).
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        if is_huge(layout) {
            // SAFETY: the caller promises that it was allocated with this layout, so by `lend_pages`, and that no
            // code uses it.
            return unsafe { unmap(memory.as_ptr(), mapped_bytes(layout)) };
        }
        // SAFETY: the caller promises that it was allocated with this layout.
        unsafe { dealloc(memory.as_ptr(), layout) }
    }
}

fn is_huge(layout: Layout) -> bool {
    layout.size() >= HUGE_PAGE_BYTES && layout.align() >= HUGE_PAGE_BYTES
}

/// Returns the length that is mapped for `layout`: complete huge pages.
fn mapped_bytes(layout: Layout) -> usize {
    layout.size().next_multiple_of(HUGE_PAGE_BYTES)
}

/// Maps more than is wanted, and unmaps the parts around the aligned range.
fn lend_pages(layout: Layout) -> Option<NonNull<u8>> {
    let (wanted_bytes, spare_bytes) = (mapped_bytes(layout), layout.align());
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new anonymous mapping, at an address that the kernel chooses.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), wanted_bytes + spare_bytes, protection, flags) }.ok()?;
    let start = start.cast::<u8>();
    let before = start.align_offset(layout.align());
    let memory = start.wrapping_add(before);
    // SAFETY: no code uses these ends of the new mapping; the part between them stays.
    unsafe {
        unmap(start, before);
        unmap(memory.wrapping_add(wanted_bytes), spare_bytes - before);
    }
    // A hint: without huge pages the memory works as well, but is slower.
    // SAFETY: the memory belongs to this function, and advice does not change its content.
    let _ = unsafe { madvise(memory.cast(), wanted_bytes, Advice::LinuxHugepage) };
    NonNull::new(memory)
}

/// # Safety
/// The span was mapped by `lend_pages`, and no code uses it any more.
unsafe fn unmap(start: *mut u8, len_bytes: usize) {
    if len_bytes > 0 {
        // SAFETY: the caller's promise.
        unsafe { munmap(start.cast(), len_bytes) }.expect("a mapping of our own can be unmapped");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loan_is_aligned_zeroed_and_freed() {
        for (size, align) in [(1, 1), (4096, 64), (HUGE_PAGE_BYTES, HUGE_PAGE_BYTES), (5 << 20, 4 << 20), (5 << 20, 64)]
        {
            let layout = Layout::from_size_align(size, align).unwrap();
            let memory = HostDram.allocate(layout).unwrap();
            assert_eq!(memory.as_ptr().align_offset(align), 0);
            // SAFETY: allocated with that size, and not shared.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), size) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(1);
            // SAFETY: allocated with that layout, and not used any more.
            unsafe { HostDram.deallocate(memory, layout) };
        }
    }
}
