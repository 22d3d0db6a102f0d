//! A range of addresses into which a region is mapped piece by piece, so that a region never moves.
//!
//! # Reserved addresses
//! A process has 128 TiB of addresses, and a region may get 1 TiB long: a process that reserved as much for each store
//! could have only some 130 stores. So the process finds a range with space for the largest length, reserves its
//! beginning, and frees the other addresses. A region that outgrows the reserved part takes the next addresses if those
//! are still free ([`AddressRange::reach`]). The kernel allocates addresses from the top of each gap. So in a process
//! with few stores the addresses behind a store stay free: each store is at the bottom of a separate gap. The more
//! stores there are, the shorter are the gaps (`docs/decisions/0011-grow-regions-by-4-mib-ahead-of-writers.md`).
//!
//! The range is aligned to 1 GiB, so that every size of huge page fits wherever its offset does. Forked children
//! inherit no part of the range. So a child never unmaps any part either: the child's own mappings may be there.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::fork::ForkGuard;

/// The largest huge page of the processors that hikv runs on.
const ALIGN_BYTES: u64 = 1 << 30;

/// Lengths of ranges are multiples of this: the huge pages of tmpfs.
const STEP_BYTES: u64 = 2 << 20;

/// Step in which a range gets longer, if the addresses are free: each step is a system call.
const REACH_BYTES: u64 = 1 << 30;

/// Advice that makes huge pages of a range immediately (Linux 6.1); the value is the same on every processor.
const MADV_COLLAPSE: libc::c_int = 25;

/// Reserved addresses; see the module's head. Offsets are relative to their start.
#[derive(Debug)]
pub(crate) struct AddressRange {
    base: NonNull<u8>,
    /// The number of reserved addresses. The caller serialises changes.
    len_bytes: AtomicU64,
    /// The number of addresses that were free when the range was found.
    limit_bytes: u64,
    guard: ForkGuard,
}

// SAFETY: the range is only an address and a length; its content is shared under the rules of `pmem::Medium`.
unsafe impl Send for AddressRange {}
// SAFETY: as above.
unsafe impl Sync for AddressRange {}

impl AddressRange {
    /// Finds space for `wanted_bytes`, or for as much of it as the process' address space allows, but at least for
    /// `least_bytes`. Reserves `kept_bytes` of that, and at least `least_bytes`. If less than `wanted_bytes` is
    /// available, at most half of it is reserved: the process needs addresses for other things.
    pub(crate) fn reserve(wanted_bytes: u64, kept_bytes: u64, least_bytes: u64) -> Result<AddressRange, Errno> {
        let guard = ForkGuard::map()?;
        let least_bytes = whole_steps(least_bytes)?;
        let mut limit_bytes = whole_steps(wanted_bytes)?.max(least_bytes);
        loop {
            match reserve_aligned(limit_bytes) {
                Err(Errno::NOMEM) if limit_bytes > least_bytes => {
                    limit_bytes = whole_steps(limit_bytes / 2)?.max(least_bytes);
                }
                base => {
                    let range = AddressRange { base: base?, len_bytes: limit_bytes.into(), limit_bytes, guard };
                    let kept_max = if limit_bytes < wanted_bytes { limit_bytes / 2 } else { limit_bytes };
                    range.keep(whole_steps(kept_bytes.min(kept_max))?.max(least_bytes))?;
                    return Ok(range);
                }
            }
        }
    }

    /// Frees the addresses behind the first `kept_bytes` of a new range.
    fn keep(&self, kept_bytes: u64) -> Result<(), Errno> {
        let (at, len) = self.part(&(kept_bytes..self.limit_bytes));
        if len > 0 {
            // SAFETY: the part was reserved just now, and no code uses it.
            unsafe { munmap(at, len) }?;
        }
        self.len_bytes.store(kept_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Extends the range to `to_bytes` if necessary; returns false if the process uses the addresses behind it for
    /// something else. One thread at a time.
    pub(crate) fn reach(&self, to_bytes: u64) -> bool {
        let longer = [to_bytes.next_multiple_of(REACH_BYTES), to_bytes.next_multiple_of(STEP_BYTES)];
        self.len_bytes() >= to_bytes
            || longer.into_iter().any(|to_bytes| to_bytes <= self.limit_bytes && self.lengthen(to_bytes).is_ok())
    }

    fn lengthen(&self, to_bytes: u64) -> Result<(), Errno> {
        let from_bytes = self.len_bytes();
        let (at, len) = (self.base.as_ptr().wrapping_add(from_bytes as usize).cast(), (to_bytes - from_bytes) as usize);
        // SAFETY: with this flag no existing mapping is replaced.
        let got = unsafe { mmap_anonymous(at, len, ProtFlags::empty(), reserving() | MapFlags::FIXED_NOREPLACE) }?;
        if got != at {
            // A kernel before 4.17 ignores the flag, and treats the address as a hint.
            // SAFETY: it was mapped just now, and no code uses it.
            unsafe { munmap(got, len) }?;
            return Err(Errno::EXIST);
        }
        self.len_bytes.store(to_bytes, Ordering::Relaxed);
        self.advise(from_bytes..to_bytes, Advice::LinuxDontFork)
    }

    /// Returns the first address.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Returns the number of reserved addresses.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of addresses that were free when the range was found: the largest possible length.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Returns false in a forked child, where the range is not mapped.
    #[inline(always)]
    pub(crate) fn in_owner(&self) -> bool {
        self.guard.in_owner()
    }

    /// Returns the addresses of `range`.
    pub(crate) fn addresses(&self, range: Range<u64>) -> Range<u64> {
        let base = self.base.as_ptr() as u64;
        base + range.start..base + range.end
    }

    /// Maps the part `range` of a file to the same part of the addresses. Call [`try_to_map`] first, to learn
    /// whether the file supports the mapping: a failed mapping leaves a gap for a moment.
    pub(crate) fn map(
        &self,
        file: BorrowedFd<'_>,
        range: Range<u64>,
        access: ProtFlags,
        sharing: MapFlags,
    ) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part is in the reserved addresses, and no code uses it yet.
        let mapped = unsafe { mmap(at, len, access, sharing | MapFlags::FIXED, file, range.start) };
        mapped.inspect_err(|_| self.close_gap(&range))?;
        self.advise(range, Advice::LinuxDontFork)
    }

    /// Maps private zeroed memory to the part `range` of the addresses.
    pub(crate) fn map_anonymous(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the part is in the reserved addresses, and no code uses it yet.
        let mapped = unsafe { mmap_anonymous(at, len, access, MapFlags::PRIVATE | MapFlags::FIXED) };
        mapped.inspect_err(|_| self.close_gap(&range))?;
        self.advise(range, Advice::LinuxDontFork)
    }

    /// Passes an advice about `range` to the kernel that changes no byte of it.
    pub(crate) fn advise(&self, range: Range<u64>, advice: Advice) -> Result<(), Errno> {
        debug_assert!(matches!(
            advice,
            Advice::LinuxDontFork | Advice::LinuxHugepage | Advice::LinuxNoHugepage | Advice::LinuxPopulateWrite
        ));
        let (at, len) = self.part(&range);
        // SAFETY: the part belongs to this range, and these kinds of advice change no byte.
        unsafe { madvise(at, len, advice) }
    }

    /// Frees the memory of `range`, which is anonymous: it reads as zeros from then on.
    ///
    /// # Safety
    /// No code uses that part.
    pub(crate) unsafe fn discard(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part belongs to this range, and is unused as the caller promises.
        unsafe { madvise(at, len, Advice::LinuxDontNeed) }
    }

    /// Merges the small pages of `range` into huge ones, as far as the kernel can. Returns the last error, if there
    /// was one.
    pub(crate) fn collapse(&self, range: Range<u64>) -> Result<(), Errno> {
        let (at, len) = self.part(&range);
        // SAFETY: the part belongs to this range; collapsing changes no byte.
        match unsafe { libc::madvise(at, len, MADV_COLLAPSE) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)),
        }
    }

    /// Reserves `range` again if a mapping that failed late has left a gap.
    fn close_gap(&self, range: &Range<u64>) {
        let (at, len) = self.part(range);
        // SAFETY: the addresses belong to this range, and with this flag no existing mapping is replaced.
        let closed = unsafe { mmap_anonymous(at, len, ProtFlags::empty(), reserving() | MapFlags::FIXED_NOREPLACE) };
        debug_assert!(matches!(closed, Ok(_) | Err(Errno::EXIST)));
    }

    fn part(&self, range: &Range<u64>) -> (*mut c_void, usize) {
        assert!(range.start <= range.end && range.end <= self.len_bytes(), "{range:?} is not reserved");
        (self.base.as_ptr().wrapping_add(range.start as usize).cast(), (range.end - range.start) as usize)
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        if !self.in_owner() {
            return;
        }
        // SAFETY: the entire range belongs to this value, and all its users have borrowed `self`.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.len_bytes() as usize) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

/// Maps the first `len_bytes` of `file` somewhere, and unmaps them. Not among the reserved addresses: the kernel
/// removes the mapping at a fixed address before it calls the file system, and another thread's mapping may then be
/// put into the gap.
pub(crate) fn try_to_map(
    file: BorrowedFd<'_>,
    len_bytes: u64,
    access: ProtFlags,
    sharing: MapFlags,
) -> Result<(), Errno> {
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs no other memory, and no code uses it.
    unsafe { munmap(mmap(ptr::null_mut(), len_bytes as usize, access, sharing, file, 0)?, len_bytes as usize) }
}

/// Reserves an aligned range of addresses without access or memory.
fn reserve_aligned(len_bytes: u64) -> Result<NonNull<u8>, Errno> {
    let padded_bytes = len_bytes.checked_add(ALIGN_BYTES).ok_or(Errno::NOMEM)?;
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs no other memory.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), padded_bytes as usize, ProtFlags::empty(), reserving())? };
    let head_bytes = start.align_offset(ALIGN_BYTES as usize);
    let base = start.wrapping_byte_add(head_bytes);
    let tail_bytes = ALIGN_BYTES as usize - head_bytes;
    // SAFETY: the parts before and after the aligned range were mapped just now, and no code uses them.
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

fn whole_steps(bytes: u64) -> Result<u64, Errno> {
    bytes.max(1).checked_next_multiple_of(STEP_BYTES).ok_or(Errno::NOMEM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_is_aligned_and_sized() {
        let range = AddressRange::reserve(5 << 30, u64::MAX, 1).unwrap();
        assert_eq!((range.len_bytes(), range.limit_bytes()), (5 << 30, 5 << 30));
        assert_eq!(range.base().as_ptr() as u64 % ALIGN_BYTES, 0);
        assert!(range.reach(5 << 30) && !range.reach((5 << 30) + 1));
    }

    #[test]
    fn oversized_reservation_is_halved_until_fits() {
        let range = AddressRange::reserve(1 << 50, 1 << 30, 1).unwrap();
        assert!(range.limit_bytes() < 1 << 50);
        assert_eq!(AddressRange::reserve(1 << 50, 1 << 50, 1 << 50).err(), Some(Errno::NOMEM));
    }

    #[test]
    fn range_reaches_as_far_as_addresses() {
        let range = AddressRange::reserve(8 << 30, 2 << 20, 1).unwrap();
        assert_eq!((range.len_bytes(), range.limit_bytes()), (2 << 20, 8 << 30));
        assert!(range.reach(3 << 20));
        assert_eq!(range.len_bytes(), REACH_BYTES);
        let at = range.base().as_ptr().wrapping_add(2 << 30).cast();
        // SAFETY: with this flag no existing mapping is replaced.
        let theirs =
            unsafe { mmap_anonymous(at, 1 << 20, ProtFlags::empty(), reserving() | MapFlags::FIXED_NOREPLACE) };
        assert!(theirs.is_ok());
        assert!(!range.reach((2 << 30) + 1) && range.reach((2 << 30) - 1) && range.reach(2 << 30));
        assert_eq!(range.len_bytes(), 2 << 30);
        // SAFETY: no code uses the mapping.
        unsafe { munmap(at, 1 << 20) }.unwrap();
        assert!(range.reach(8 << 30) && !range.reach((8 << 30) + 1));
    }
}
