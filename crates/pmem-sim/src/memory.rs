//! The memory that programs load from and store to: anonymous, and reserved once, so that growth never moves it. What a
//! small region leaves serves the next one.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use parking_lot::Mutex;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The largest region. Address space alone: pages cost nothing until they are touched.
pub const REGION_BYTES_MAX: u64 = 256 << 20;

const RESERVED_BYTES: usize = REGION_BYTES_MAX as usize;

/// A memory of so many used bytes is zeroed for the next region, which is quicker than the kernel's handing out its pages anew.
const KEPT_BYTES_MAX: u64 = 4 << 20;
/// As many as threads explore at once, each with a region and what its crashes left.
const KEPT_COUNT_MAX: usize = 8;

static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// [`REGION_BYTES_MAX`] bytes, zero at first, aligned to the page size.
pub(crate) struct Memory {
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone and is reached only through raw pointers, by media that argue for it.
unsafe impl Send for Memory {}
// SAFETY: as above; no method but `base` hands anything out.
unsafe impl Sync for Memory {}

impl Memory {
    /// One that was kept, or a new one.
    ///
    /// # Panics
    /// If the operating system refuses.
    pub(crate) fn reserve() -> Memory {
        let kept = KEPT.lock().pop();
        kept.unwrap_or_else(Memory::map)
    }

    /// Ends the use of a memory of which nothing was stored to behind the first `used_bytes`.
    pub(crate) fn give_back(self, used_bytes: u64) {
        if used_bytes > KEPT_BYTES_MAX {
            return;
        }
        // SAFETY: the bytes lie in the mapping, and the value is the caller's alone.
        unsafe { self.base.write_bytes(0, used_bytes as usize) };
        let mut kept = KEPT.lock();
        if kept.len() < KEPT_COUNT_MAX {
            kept.push(self);
        }
    }

    /// Reserves the address range.
    fn map() -> Memory {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping, wherever the kernel likes, disturbs no other memory.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), RESERVED_BYTES, protection, flags) };
        let base = mapped.expect("address space for a simulated region");
        // SAFETY: the range was mapped just now. Huge pages would zero 2 MiB where an image needs 4 KiB; the advice is
        // about speed alone, so a kernel without it may refuse.
        let _ = unsafe { madvise(base, RESERVED_BYTES, Advice::LinuxNoHugepage) };
        Memory { base: NonNull::new(base.cast()).expect("a mapping is not at address zero") }
    }

    /// The first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the whole range was mapped by `reserve`, and its owner goes now.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), RESERVED_BYTES) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
