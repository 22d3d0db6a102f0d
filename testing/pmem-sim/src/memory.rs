//! The memory that programs load from and store to: anonymous, and reserved once, so that growth never moves it. It is
//! reused for the next region, unless the last one stored to many pages.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use parking_lot::Mutex;
use pmem::Offset;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use crate::pages::PAGE_BYTES;

/// The largest region. Only address space is reserved: pages cost nothing until they are touched.
pub const REGION_BYTES_MAX: u64 = 256 << 20;

const RESERVED_BYTES: usize = REGION_BYTES_MAX as usize;

/// Up to this many used pages, memory is zeroed and reused, which is faster than getting new pages from the kernel.
const KEPT_PAGES_MAX: usize = 1 << 10;
/// The number of threads that explore at the same time, each with a region and its crash images.
const KEPT_COUNT_MAX: usize = 8;

static KEPT: Mutex<Vec<Memory>> = Mutex::new(Vec::new());

/// [`REGION_BYTES_MAX`] bytes, zero at first, aligned to the page size.
pub(crate) struct Memory {
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs only to this value and is reached only through raw pointers, by media that argue for
// it.
unsafe impl Send for Memory {}
// SAFETY: as above; no method but `base` exposes the memory.
unsafe impl Sync for Memory {}

impl Memory {
    /// Returns a kept memory, or a new one.
    ///
    /// # Panics
    /// If the operating system refuses.
    pub(crate) fn reserve() -> Memory {
        let kept = KEPT.lock().pop();
        kept.unwrap_or_else(Memory::map)
    }

    /// Frees or keeps a memory in which nothing was stored except to the `used` pages.
    pub(crate) fn give_back(self, used: &UsedPages) {
        if used.count > KEPT_PAGES_MAX {
            return;
        }
        for start in used.starts() {
            // SAFETY: the page is in the mapping, because a store to it was, and only the caller has the value.
            unsafe { self.base.add(start).write_bytes(0, PAGE_BYTES as usize) };
        }
        let mut kept = KEPT.lock();
        if kept.len() < KEPT_COUNT_MAX {
            kept.push(self);
        }
    }

    /// Reserves the address range.
    fn map() -> Memory {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping, at an address that the kernel chooses, disturbs no other memory.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), RESERVED_BYTES, protection, flags) };
        let base = mapped.expect("address space for a simulated region");
        // SAFETY: the range was mapped just now. Huge pages would zero 2 MiB where an image needs 4 KiB; the advice
        // only affects speed, so a kernel without it may refuse.
        let _ = unsafe { madvise(base, RESERVED_BYTES, Advice::LinuxNoHugepage) };
        Memory { base: NonNull::new(base.cast()).expect("a mapping is not at address zero") }
    }

    /// Returns the address of the first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

/// The pages of a region to which something was stored: a bit for each.
#[derive(Default)]
pub(crate) struct UsedPages {
    words: Vec<u64>,
    count: usize,
}

impl UsedPages {
    /// Notes a store to the page that holds `at`.
    pub(crate) fn note(&mut self, at: Offset) {
        let page = (at.0 / PAGE_BYTES) as usize;
        let (word, bit) = (page / 64, 1 << (page % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit == 0 {
            self.words[word] |= bit;
            self.count += 1;
        }
    }

    /// Returns the offsets at which the pages start.
    fn starts(&self) -> impl Iterator<Item = usize> {
        let in_word = |(word, &bits): (usize, &u64)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        self.words
            .iter()
            .enumerate()
            .filter(|(_, bits)| **bits != 0)
            .flat_map(in_word)
            .map(|page| page * PAGE_BYTES as usize)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the entire range was mapped by `reserve`, and its owner is dropped now.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), RESERVED_BYTES) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
