//! Private memory of this process at reserved addresses. It gets longer without moving, and is not inherited by
//! forked children.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::Advice;

use crate::huge;
use crate::mapping::AddressRange;

/// Anonymous memory; see the module's head.
#[derive(Debug)]
pub struct Memory {
    addresses: AddressRange,
    huge_pages: bool,
}

impl Memory {
    /// Finds addresses for `reserve_bytes`, or as many as there are, but at least `least_bytes`; allocates no
    /// memory yet. Reserves `kept_bytes` of these from the start, like [`crate::MapOptions::kept_bytes`]. With
    /// `huge_pages`, the kernel is asked for huge pages, otherwise for small ones.
    ///
    /// # Errors
    /// If the process' address space is too small.
    pub fn reserve(reserve_bytes: u64, kept_bytes: u64, least_bytes: u64, huge_pages: bool) -> io::Result<Memory> {
        Ok(Memory { addresses: AddressRange::reserve(reserve_bytes, kept_bytes, least_bytes)?, huge_pages })
    }

    /// Returns the first address, aligned to 1 GiB.
    #[inline(always)]
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.addresses.base()
    }

    /// Returns the largest possible length.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.addresses.limit_bytes()
    }

    /// Reserves addresses up to `to_bytes`. One call at a time.
    ///
    /// # Errors
    /// The number of reserved addresses, if the process uses the next ones for something else.
    pub fn reach(&self, to_bytes: u64) -> Result<(), u64> {
        if self.addresses.reach(to_bytes) { Ok(()) } else { Err(self.addresses.len_bytes()) }
    }

    /// Maps zeroed memory to `range`: complete pages behind the memory mapped before.
    ///
    /// # Errors
    /// If the kernel has no memory; nothing has changed then.
    pub fn extend(&self, range: Range<u64>) -> io::Result<()> {
        self.addresses.map_anonymous(range.clone())?;
        let advice = if self.huge_pages { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // Small pages work as well.
        let _ = self.addresses.advise(range, advice);
        Ok(())
    }

    /// Frees the memory of the pages `range`. They read as zeros from then on, and stores to them get new memory.
    ///
    /// # Safety
    /// No other code uses those pages at the same time.
    pub unsafe fn discard(&self, range: Range<u64>) {
        // SAFETY: the caller's promise. If the kernel refuses, the pages keep their memory and their bytes.
        let _ = unsafe { self.addresses.discard(range) };
    }

    /// Prepares the pages `range`, so that stores to them do not fault. A hint.
    pub fn populate(&self, range: Range<u64>) {
        let _ = self.addresses.advise(range, Advice::LinuxPopulateWrite);
    }

    /// Returns false in a forked child, where the memory is not mapped. Costs one load.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.addresses.in_owner()
    }

    /// Returns the number of bytes in huge pages at this moment. Slow: reads `/proc/self/smaps`.
    ///
    /// # Errors
    /// If that file cannot be read.
    pub fn huge_page_bytes(&self) -> io::Result<u64> {
        huge::mapped_bytes(self.addresses.addresses(0..self.addresses.len_bytes()))
    }
}
