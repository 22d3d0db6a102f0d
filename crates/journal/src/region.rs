//! The region's memory, and the length up to which accesses need no check of blocks.
//!
//! While part of the base is not in memory yet, the lengths that accesses are compared with are 0. So the one
//! comparison that keeps an access within the region also makes it check whether the bytes are loaded (`loading`). In a
//! region that may be larger than its memory, they are 0 permanently.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem_os::Memory;

/// The unit of a region's length: a page of every processor that hikv runs on.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// The memory of a region and its lengths.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) memory: Memory,
    len_bytes: AtomicU64,
    readable_bytes: AtomicU64,
    writable_bytes: AtomicU64,
    is_writable: bool,
    /// True if all of the base is in memory. Held while lengths change.
    is_loaded: Mutex<bool>,
}

impl Region {
    /// Creates a region whose memory is still to be loaded.
    pub(crate) fn new(memory: Memory, len_bytes: u64, is_writable: bool) -> Region {
        Region {
            memory,
            len_bytes: len_bytes.into(),
            readable_bytes: 0.into(),
            writable_bytes: 0.into(),
            is_writable,
            is_loaded: false.into(),
        }
    }

    /// Returns true if the region may be stored to.
    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns the length.
    #[inline(always)]
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Acquire)
    }

    /// Returns the length up to which everything is in memory: the region's length, or 0.
    #[inline(always)]
    pub(crate) fn readable_bytes(&self) -> u64 {
        self.readable_bytes.load(Ordering::Acquire)
    }

    /// Returns the length up to which everything is in memory and may be stored to: the region's length, or 0.
    #[inline(always)]
    pub(crate) fn writable_bytes(&self) -> u64 {
        self.writable_bytes.load(Ordering::Acquire)
    }

    /// Sets a larger length; there is memory up to `to_bytes`.
    pub(crate) fn lengthen(&self, to_bytes: u64) {
        let is_loaded = self.is_loaded.lock();
        self.len_bytes.store(to_bytes, Ordering::Release);
        if *is_loaded {
            self.open_up();
        }
    }

    /// Notes that the base is in memory, except lost blocks.
    pub(crate) fn finish_loading(&self) {
        let mut is_loaded = self.is_loaded.lock();
        *is_loaded = true;
        self.open_up();
    }

    /// Makes the entire length accessible. The caller holds the lock.
    fn open_up(&self) {
        let len_bytes = self.len_bytes();
        self.readable_bytes.store(len_bytes, Ordering::Release);
        if self.is_writable {
            self.writable_bytes.store(len_bytes, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(region: &Region) -> [u64; 3] {
        [region.len_bytes(), region.readable_bytes(), region.writable_bytes()]
    }

    #[test]
    fn growth_may_precede_end_of_loading() {
        let memory = || Memory::reserve(4096, 4096, 4096, false).unwrap();
        let region = Region::new(memory(), 10, true);
        region.lengthen(20);
        assert_eq!(lengths(&region), [20, 0, 0]);
        region.finish_loading();
        assert_eq!(lengths(&region), [20, 20, 20]);
        region.lengthen(30);
        assert_eq!(lengths(&region), [30, 30, 30]);
        let to_read = Region::new(memory(), 10, false);
        to_read.finish_loading();
        assert_eq!(lengths(&to_read), [10, 10, 0]);
    }
}
