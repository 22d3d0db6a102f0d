//! Memory with an inaccessible end, and invalid addresses.

use std::io;
use std::ptr;

/// The size of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Pages of this process with an unmapped page behind them.
pub(crate) struct Pages {
    start: *mut u8,
    len: usize,
}

impl Pages {
    /// Maps this many pages with this access.
    pub(crate) fn new(count: usize, protection: i32) -> io::Result<Pages> {
        let len = (count + 1) * PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = Pages { start: start.cast(), len };
        // SAFETY: the last page of the new mapping, which is not used.
        unsafe { libc::munmap(pages.start.add(len - PAGE_BYTES).cast(), PAGE_BYTES) };
        Ok(pages)
    }

    /// Returns the first byte's address.
    pub(crate) fn start(&self) -> u64 {
        self.start as u64
    }

    /// Returns the address behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.start() + self.len() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.len - PAGE_BYTES
    }

    /// Unmaps the memory.
    pub(crate) fn unmap(&self) {
        // SAFETY: a mapping of this value, to which no reference is ever made.
        unsafe { libc::munmap(self.start.cast(), self.len()) };
    }

    /// Changes the access.
    pub(crate) fn protect(&self, protection: i32) {
        // SAFETY: as above.
        unsafe { libc::mprotect(self.start.cast(), self.len(), protection) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.unmap();
    }
}

// SAFETY: the address is only ever handed to the kernel.
unsafe impl Sync for Pages {}

/// Addresses outside any process: null, the kernel's, non-canonical addresses, and addresses near the end.
pub(crate) const NOWHERE: [u64; 7] =
    [0, 1, 0xffff_8880_0000_0000, 0xffff_ffff_8100_0000, 0x8000_0000_0000_0000, 0x0000_7fff_ffff_f000, u64::MAX - 7];
