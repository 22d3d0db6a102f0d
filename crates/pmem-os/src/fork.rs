//! Tells the process that opened a store from its forked children.
//!
//! The region is not inherited (`MADV_DONTFORK`), so that a child cannot become a second writer. This guard lets the
//! child find that out before touching an address that is no longer there: the guard's page is wiped in every child,
//! in whatever way it was forked, so one plain load answers.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// What the page of a child holds.
const FORKED: u32 = 0;
const LIVE: u32 = 1;
/// Live, and the next writer is to look at the store's files.
const UNCHECKED: u32 = 2;

/// A reason why the process that has a store open takes no more writes to it, in the order of their gravity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// The store's files were removed.
    Removed = 3,
    /// A write panicked half way.
    HalfWay = 4,
}

/// A flag that is up in the process that made it and down in every forked child. Clones share it.
#[derive(Clone, Debug)]
pub struct ForkGuard {
    /// In the page, so that a look costs one load.
    live: NonNull<AtomicU32>,
    _page: Arc<Page>,
}

/// The page that holds the flag.
#[derive(Debug)]
struct Page(NonNull<AtomicU32>);

// SAFETY: the flag is accessed atomically alone after it was set up.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}
// SAFETY: as above.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

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
        let live = NonNull::new(page.cast()).ok_or(Errno::FAULT)?;
        let guard = ForkGuard { live, _page: Arc::new(Page(live)) };
        // SAFETY: the page is ours; the advice acts on it alone.
        unsafe { madvise(page, page_bytes(), Advice::LinuxWipeOnFork)? };
        guard.flag().store(LIVE, Ordering::Relaxed);
        Ok(guard)
    }

    /// True in the process that made the guard, false in its forked children.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.flag().load(Ordering::Relaxed) != FORKED
    }

    /// True in the process that made the guard, until that closes it to writes, and while no look is expected
    /// ([`ForkGuard::expect_check`]). One load, as for [`ForkGuard::in_owner`].
    #[inline(always)]
    #[must_use]
    pub fn takes_writes(&self) -> bool {
        self.flag().load(Ordering::Relaxed) == LIVE
    }

    /// Makes [`ForkGuard::takes_writes`] false until a thread calls [`ForkGuard::begin_check`]; false if a look is expected already, or the guard
    /// is closed to writes.
    pub fn expect_check(&self) -> bool {
        self.flag().compare_exchange(LIVE, UNCHECKED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// True for the one thread that is to look after [`ForkGuard::expect_check`].
    pub fn begin_check(&self) -> bool {
        self.flag().compare_exchange(UNCHECKED, LIVE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// From now on the owner's [`ForkGuard::takes_writes`] is false for all clones. The graver reason of two is kept; in a forked child this
    /// does nothing.
    pub fn close_to_writes(&self, why: Closed) {
        let graver = |now| (now != FORKED && now < why as u32).then_some(why as u32);
        let _ = self.flag().fetch_update(Ordering::AcqRel, Ordering::Acquire, graver);
    }

    /// The reason why the owner takes no more writes; none in a forked child, and while it takes them.
    #[must_use]
    pub fn closed_to_writes(&self) -> Option<Closed> {
        let now = self.flag().load(Ordering::Acquire);
        [Closed::Removed, Closed::HalfWay].into_iter().find(|&why| why as u32 == now)
    }

    #[inline(always)]
    fn flag(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as the guard, is aligned, and was zeroed by the kernel.
        unsafe { self.live.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the page is ours, in a child as well, and no reference to it outlives the guards.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast(), page_bytes()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}
