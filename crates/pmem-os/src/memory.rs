//! Memory of this process alone, at reserved addresses: it gets longer without moving, and is not inherited by forked children.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::Advice;

use crate::huge;
use crate::mapping::AddressRange;

/// Anonymous memory; see the module.
#[derive(Debug)]
pub struct Memory {
    addresses: AddressRange,
    huge_pages: bool,
}

impl Memory {
    /// Finds addresses for `reserve_bytes`, or as many as there are, but at least `least_bytes`; no memory yet. Of these `kept_bytes` are
    /// kept from the start, as by [`crate::MapOptions::kept_bytes`]. With `huge_pages` the kernel is asked for huge ones, and without to give none.
    ///
    /// # Errors
    /// If the process's address space is too small.
    pub fn reserve(reserve_bytes: u64, kept_bytes: u64, least_bytes: u64, huge_pages: bool) -> io::Result<Memory> {
        Ok(Memory { addresses: AddressRange::reserve(reserve_bytes, kept_bytes, least_bytes)?, huge_pages })
    }

    /// The first address, aligned to 1 GiB.
    #[inline(always)]
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.addresses.base()
    }

    /// The largest that it can get.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.addresses.limit_bytes()
    }

    /// Sees that there are addresses up to `to_bytes`, in a call at a time. If the process uses them for something else, the error is how many
    /// there are.
    ///
    /// # Errors
    /// See above.
    pub fn reach(&self, to_bytes: u64) -> Result<(), u64> {
        if self.addresses.reach(to_bytes) { Ok(()) } else { Err(self.addresses.len_bytes()) }
    }

    /// Gives the addresses `range`, whole pages behind what was given before, zeroed memory.
    ///
    /// # Errors
    /// If the kernel has none; nothing has changed.
    pub fn extend(&self, range: Range<u64>) -> io::Result<()> {
        self.addresses.map_anonymous(range.clone())?;
        let advice = if self.huge_pages { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // Small pages serve as well.
        let _ = self.addresses.advise(range, advice);
        Ok(())
    }

    /// Gives the memory of the pages `range` back. They read as zeros from then on, and stores to them get new memory.
    ///
    /// # Safety
    /// Nobody uses those pages meanwhile.
    pub unsafe fn discard(&self, range: Range<u64>) {
        // SAFETY: the caller's promise. Where the kernel refuses they keep their memory, and their bytes.
        let _ = unsafe { self.addresses.discard(range) };
    }

    /// Prepares the pages `range`, so that stores to them do not fault. A hint.
    pub fn populate(&self, range: Range<u64>) {
        let _ = self.addresses.advise(range, Advice::LinuxPopulateWrite);
    }

    /// False in a forked child, where the memory is not there. One load.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.addresses.in_owner()
    }

    /// How much lies in huge pages at this moment. Reads `/proc/self/smaps`, which takes time.
    ///
    /// # Errors
    /// If that file cannot be read.
    pub fn huge_page_bytes(&self) -> io::Result<u64> {
        huge::mapped_bytes(self.addresses.addresses(0..self.addresses.len_bytes()))
    }
}
