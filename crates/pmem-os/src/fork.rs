//! Tells the process that opened a store from its forked children.
//!
//! The region is not inherited (`MADV_DONTFORK`), so that a child cannot become a second writer. This guard lets the
//! child find that out before touching an address that is no longer there: the guard's page is wiped in every child,
//! in whatever way it was forked, so one plain load answers.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const LIVE: u32 = 1;
/// The owner has called [`ForkGuard::mark`].
const MARKED: u32 = 2;

/// A flag that is up in the process that made it and down in every forked child.
#[derive(Debug)]
pub struct ForkGuard {
    live: NonNull<AtomicU32>,
}

// SAFETY: the flag is only ever read, atomically, after it was set up.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// A guard owned by this process.
    ///
    /// # Errors
    /// If the kernel has no page to give, or cannot wipe pages on fork (before Linux 4.14).
    pub fn new() -> std::io::Result<ForkGuard> {
        Ok(ForkGuard::map()?)
    }

    pub(crate) fn map() -> Result<ForkGuard, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nobody.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), page_bytes(), access, MapFlags::PRIVATE)? };
        let guard = ForkGuard { live: NonNull::new(page.cast()).ok_or(Errno::FAULT)? };
        // SAFETY: the page is ours; the advice acts on it alone.
        unsafe { madvise(page, page_bytes(), Advice::LinuxWipeOnFork)? };
        guard.flag().store(LIVE, Ordering::Relaxed);
        Ok(guard)
    }

    /// True in the process that made the guard, unless it is marked; false in its forked children.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.flag().load(Ordering::Relaxed) == LIVE
    }

    /// Has [`ForkGuard::in_owner`] answer false in the owner as well: for a caller that checks one word on its way, and has a second
    /// reason to look further. In a forked child it does nothing.
    pub fn mark(&self) {
        let _ = self.flag().compare_exchange(LIVE, MARKED, Ordering::Release, Ordering::Relaxed);
    }

    /// True in the process that made the guard, once it is marked.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.flag().load(Ordering::Acquire) == MARKED
    }

    #[inline(always)]
    fn flag(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as the guard, is aligned, and was zeroed by the kernel.
        unsafe { self.live.as_ref() }
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        // SAFETY: the page is ours, in a child as well, and no reference to it outlives the guard.
        let unmapped = unsafe { munmap(self.live.as_ptr().cast(), page_bytes()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}
