//! A large range of addresses, reserved once, into which a region is mapped piece by piece: so a region never moves.
//!
//! The range is aligned to 1 GiB, so that every size of huge page fits wherever its offset does. No part of it is
//! inherited by forked children, who therefore never unmap any either: their own mappings may lie there.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::fork::ForkGuard;

/// The largest huge page of the processors that hikv runs on.
const ALIGN_BYTES: u64 = 1 << 30;

/// Makes huge pages of a range at once (Linux 6.1); the value is the same on every processor.
const MADV_COLLAPSE: libc::c_int = 25;

/// Reserved addresses; see the module. Offsets are relative to its start.
#[derive(Debug)]
pub(crate) struct AddressRange {
    base: NonNull<u8>,
    len_bytes: u64,
    guard: ForkGuard,
}

// SAFETY: the range is only an address and a length; what lies there is shared under the rules of `pmem::Medium`.
unsafe impl Send for AddressRange {}
// SAFETY: as above.
unsafe impl Sync for AddressRange {}

impl AddressRange {
    /// Reserves `wanted_bytes`, or as much of it as the process's address space allows, but at least `least_bytes`.
    pub(crate) fn reserve(wanted_bytes: u64, least_bytes: u64) -> Result<AddressRange, Errno> {
        let guard = ForkGuard::map()?;
        let least_bytes = whole_alignments(least_bytes)?;
        let mut len_bytes = whole_alignments(wanted_bytes)?.max(least_bytes);
        loop {
            match reserve_aligned(len_bytes) {
                Err(Errno::NOMEM) if len_bytes > least_bytes => {
                    len_bytes = whole_alignments(len_bytes / 2)?.max(least_bytes);
                }
                base => return Ok(AddressRange { base: base?, len_bytes, guard }),
            }
        }
    }

    /// The first address.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// How much was reserved.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// False in a forked child, where the range is not there.
    #[inline(always)]
    pub(crate) fn in_owner(&self) -> bool {
        self.guard.in_owner()
    }

    /// The addresses of `range`.
    pub(crate) fn addresses(&self, range: Range<u64>) -> Range<u64> {
        let base = self.base.as_ptr() as u64;
        base + range.start..base + range.end
    }

    /// Maps the part `range` of a file to the same part of the addresses. What the file may refuse is found out before, by
    /// [`try_to_map`]: a mapping that fails leaves a gap for a moment.
    pub(crate) fn map(
        &self,
        file: BorrowedFd<'_>,
        range: Range<u64>,
        access: ProtFlags,
        sharing: MapFlags,
    ) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part lies in our reserved addresses, and nobody uses it yet.
        let mapped = unsafe { mmap(at, len, access, sharing | MapFlags::FIXED, file, range.start) };
        mapped.inspect_err(|_| self.close_gap(&range))?;
        self.advise(range, Advice::LinuxDontFork)
    }

    /// Maps zeroed memory of this process alone to the part `range` of the addresses.
    pub(crate) fn map_anonymous(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the part lies in our reserved addresses, and nobody uses it yet.
        let mapped = unsafe { mmap_anonymous(at, len, access, MapFlags::PRIVATE | MapFlags::FIXED) };
        mapped.inspect_err(|_| self.close_gap(&range))?;
        self.advise(range, Advice::LinuxDontFork)
    }

    /// Gives the part `range` back to the reservation.
    ///
    /// # Safety
    /// Nobody uses that part.
    pub(crate) unsafe fn unmap(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part is ours, and unused as the caller promises.
        unsafe { mmap_anonymous(at, len, ProtFlags::empty(), reserving() | MapFlags::FIXED)? };
        self.advise(range, Advice::LinuxDontFork)
    }

    /// Gives the kernel an advice about `range` that changes no byte of it.
    pub(crate) fn advise(&self, range: Range<u64>, advice: Advice) -> Result<(), Errno> {
        debug_assert!(matches!(
            advice,
            Advice::LinuxDontFork | Advice::LinuxHugepage | Advice::LinuxNoHugepage | Advice::LinuxPopulateWrite
        ));
        let (at, len) = self.part(&range);
        // SAFETY: the part is ours, and these kinds of advice change no byte.
        unsafe { madvise(at, len, advice) }
    }

    /// Gives the memory of `range`, which is anonymous, back: it reads as zeros from then on.
    ///
    /// # Safety
    /// Nobody uses that part.
    pub(crate) unsafe fn discard(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part is ours, and unused as the caller promises.
        unsafe { madvise(at, len, Advice::LinuxDontNeed) }
    }

    /// Puts the small pages of `range` together into huge ones, as far as the kernel can: the last refusal, if there was one.
    pub(crate) fn collapse(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part is ours; collapsing changes no byte.
        match unsafe { libc::madvise(at, len, MADV_COLLAPSE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)),
        }
    }

    /// A mapping that failed late may have left a gap: takes it back, unless the reservation is still there.
    fn close_gap(&self, range: &Range<u64>) {
        let (at, len) = self.part(range);
        // SAFETY: the addresses are ours, and with this flag nothing that lies there is replaced.
        let closed = unsafe { mmap_anonymous(at, len, ProtFlags::empty(), reserving() | MapFlags::FIXED_NOREPLACE) };
        debug_assert!(matches!(closed, Ok(_) | Err(Errno::EXIST)));
    }

    fn part(&self, range: &Range<u64>) -> (*mut c_void, usize) {
        assert!(range.start <= range.end && range.end <= self.len_bytes, "{range:?} is not reserved");
        (self.base.as_ptr().wrapping_add(range.start as usize).cast(), (range.end - range.start) as usize)
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        if !self.in_owner() {
            return;
        }
        // SAFETY: the whole range is ours, and whoever used it has borrowed `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len_bytes as usize) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// Maps the first `len_bytes` of `file` somewhere, and unmaps them. Not among the reserved addresses: the kernel takes
/// away what lies at a fixed address before it asks the file, and what another thread maps may then fall into the gap.
pub(crate) fn try_to_map(
    file: BorrowedFd<'_>,
    len_bytes: u64,
    access: ProtFlags,
    sharing: MapFlags,
) -> Result<(), Errno> {
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nobody, and nobody uses it.
    unsafe { munmap(mmap(ptr::null_mut(), len_bytes as usize, access, sharing, file, 0)?, len_bytes as usize) }
}

/// An aligned range of addresses without access or memory.
fn reserve_aligned(len_bytes: u64) -> Result<NonNull<u8>, Errno> {
    let padded_bytes = len_bytes.checked_add(ALIGN_BYTES).ok_or(Errno::NOMEM)?;
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nobody.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), padded_bytes as usize, ProtFlags::empty(), reserving())? };
    let head_bytes = start.align_offset(ALIGN_BYTES as usize);
    let base = start.wrapping_byte_add(head_bytes);
    let tail_bytes = ALIGN_BYTES as usize - head_bytes;
    // SAFETY: what lies before and after the aligned range was mapped just now, and is used by nobody.
    unsafe {
        if head_bytes > 0 {
            munmap(start, head_bytes)?;
        }
        munmap(base.wrapping_byte_add(len_bytes as usize), tail_bytes)?;
        madvise(base, len_bytes as usize, Advice::LinuxDontFork)?;
    }
    NonNull::new(base.cast()).ok_or(Errno::FAULT)
}

fn reserving() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

fn whole_alignments(bytes: u64) -> Result<u64, Errno> {
    bytes.max(1).checked_next_multiple_of(ALIGN_BYTES).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_is_aligned_and_as_long_as_asked_for() {
        let range = AddressRange::reserve(5 << 30, 1).unwrap();
        assert_eq!(range.len_bytes(), 5 << 30);
        assert_eq!(range.base().as_ptr() as u64 % ALIGN_BYTES, 0);
    }

    #[test]
    fn more_than_the_address_space_is_halved_until_it_fits() {
        let range = AddressRange::reserve(1 << 50, 1).unwrap();
        assert!(range.len_bytes() < 1 << 50);
        assert_eq!(AddressRange::reserve(1 << 50, 1 << 50).err(), Some(Errno::NOMEM));
    }
}
