//! A single value in memory from the host's allocator, for values too large for a kernel's stack while they are
//! created.

use core::alloc::Layout;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

use crate::Dram;

/// A value in memory that a host has allocated, until it is dropped.
pub struct DramBox<T, D: Dram> {
    value: NonNull<T>,
    dram: D,
}

// SAFETY: the loan owns its value, as a box does.
unsafe impl<T: Send, D: Dram> Send for DramBox<T, D> {}
// SAFETY: as above; sharing a loan shares its value.
unsafe impl<T: Sync, D: Dram> Sync for DramBox<T, D> {}

impl<T, D: Dram> DramBox<T, D> {
    /// Creates a value with all bytes zero; returns `None` if the host has no memory.
    ///
    /// # Panics
    /// If the type has size 0.
    ///
    /// # Safety
    /// All-zero bytes are a valid `T`.
    pub unsafe fn zeroed(dram: D) -> Option<DramBox<T, D>> {
        assert!(size_of::<T>() > 0, "nobody borrows nothing");
        let value = dram.allocate(Layout::new::<T>())?.cast();
        Some(DramBox { value, dram })
    }
}

impl<T, D: Dram> Deref for DramBox<T, D> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the memory was allocated for a `T`, zeroed, which is a valid `T`, and belongs to this loan.
        unsafe { self.value.as_ref() }
    }
}

impl<T, D: Dram> DerefMut for DramBox<T, D> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above; the loan is borrowed exclusively.
        unsafe { self.value.as_mut() }
    }
}

impl<T, D: Dram> Drop for DramBox<T, D> {
    fn drop(&mut self) {
        // SAFETY: the loan owns the value, no other code reaches it any more, and the memory was allocated with
        // this layout.
        unsafe {
            self.value.drop_in_place();
            self.dram.deallocate(self.value.cast(), Layout::new::<T>());
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    static LENT_BYTES: AtomicU64 = AtomicU64::new(0);

    struct Host;

    // SAFETY: as the global allocator.
    unsafe impl Dram for Host {
        fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
            LENT_BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
            // SAFETY: the layout has a size.
            NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
        }

        unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
            LENT_BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(memory.as_ptr(), layout) }
        }
    }

    #[test]
    fn loan_is_zero_writable_and_given_back() {
        // SAFETY: numbers may be zero.
        let mut loan = unsafe { DramBox::<[u64; 1000], Host>::zeroed(Host) }.unwrap();
        assert!(loan.iter().all(|&word| word == 0));
        loan[999] = 7;
        assert_eq!((loan[999], LENT_BYTES.load(Ordering::Relaxed)), (7, 8000));
        drop(loan);
        assert_eq!(LENT_BYTES.load(Ordering::Relaxed), 0);
    }
}
