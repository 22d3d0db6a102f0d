//! Distinguishes the process that opened a store from its forked children.
//!
//! The region is not inherited (`MADV_DONTFORK`), so that a child cannot become a second writer. With this guard, a
//! child detects that before it accesses an address that is not mapped any more: the kernel wipes the guard's page
//! in every child, for every kind of fork, so one plain load is enough.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The flag in a child's page.
const FORKED: u32 = 0;
const LIVE: u32 = 1;
/// Live, and the next writer has to check the store's files.
const UNCHECKED: u32 = 2;

/// A reason why the process that has a store open accepts no more writes, in ascending order of severity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closed {
    /// The store's files were removed.
    Removed = 3,
    /// A write panicked half way.
    HalfWay = 4,
}

/// A flag that is set in the process that made it and cleared in every forked child. Clones share it.
#[derive(Clone, Debug)]
pub struct ForkGuard {
    /// In the page, so that a check costs one load. Behind the flag is another one, which is [`LIVE`] if operations
    /// need no admission.
    live: NonNull<AtomicU32>,
    _page: Arc<Page>,
}

/// The page that holds the flag.
#[derive(Debug)]
struct Page(NonNull<AtomicU32>);

// SAFETY: the flag is only accessed atomically after it was set up.
unsafe impl Send for ForkGuard {}
// SAFETY: as above.
unsafe impl Sync for ForkGuard {}
// SAFETY: as above.
unsafe impl Send for Page {}
// SAFETY: as above.
unsafe impl Sync for Page {}

impl ForkGuard {
    /// Creates a guard owned by this process.
    ///
    /// # Errors
    /// If the kernel has no free page, or cannot wipe pages on fork (before Linux 4.14).
    pub fn new() -> std::io::Result<ForkGuard> {
        Ok(ForkGuard::map()?)
    }

    pub(crate) fn map() -> Result<ForkGuard, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice disturbs no other memory.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), page_bytes(), access, MapFlags::PRIVATE)? };
        let live = NonNull::new(page.cast()).ok_or(Errno::FAULT)?;
        let guard = ForkGuard { live, _page: Arc::new(Page(live)) };
        // SAFETY: the page belongs to this guard; the advice affects only it.
        unsafe { madvise(page, page_bytes(), Advice::LinuxWipeOnFork)? };
        guard.flag().store(LIVE, Ordering::Relaxed);
        guard.free_flag().store(LIVE, Ordering::Relaxed);
        Ok(guard)
    }

    /// Returns true in the process that made the guard, false in its forked children.
    #[inline(always)]
    #[must_use]
    pub fn in_owner(&self) -> bool {
        self.flag().load(Ordering::Relaxed) != FORKED
    }

    /// Returns true in the process that made the guard, unless operations need admission there. One load, like
    /// [`ForkGuard::in_owner`].
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.free_flag().load(Ordering::Relaxed) == LIVE
    }

    /// Makes [`ForkGuard::is_free`] false for all clones, permanently: operations have to wait for memory.
    pub fn require_admission(&self) {
        self.free_flag().store(FORKED, Ordering::Relaxed);
    }

    /// Returns true in the process that made the guard, unless it is closed to writes, or a check of the files is
    /// expected ([`ForkGuard::expect_check`]). One load, like [`ForkGuard::in_owner`].
    #[inline(always)]
    #[must_use]
    pub fn takes_writes(&self) -> bool {
        self.flag().load(Ordering::Relaxed) == LIVE
    }

    /// Makes [`ForkGuard::takes_writes`] false until a thread calls [`ForkGuard::begin_check`]. Returns false if a
    /// check is already expected, or the guard is closed to writes.
    pub fn expect_check(&self) -> bool {
        self.flag().compare_exchange(LIVE, UNCHECKED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns true for the one thread that has to do the check after [`ForkGuard::expect_check`].
    pub fn begin_check(&self) -> bool {
        self.flag().compare_exchange(UNCHECKED, LIVE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Makes the owner's [`ForkGuard::takes_writes`] false for all clones, permanently. Of two reasons, the more
    /// severe is kept. Does nothing in a forked child.
    pub fn close_to_writes(&self, why: Closed) {
        let graver = |now| (now != FORKED && now < why as u32).then_some(why as u32);
        let _ = self.flag().fetch_update(Ordering::AcqRel, Ordering::Acquire, graver);
    }

    /// Returns the reason why the owner accepts no more writes; `None` while it does, and in a forked child.
    #[must_use]
    pub fn closed_to_writes(&self) -> Option<Closed> {
        let now = self.flag().load(Ordering::Acquire);
        [Closed::Removed, Closed::HalfWay].into_iter().find(|&why| why as u32 == now)
    }

    #[inline(always)]
    fn free_flag(&self) -> &AtomicU32 {
        // SAFETY: as for `flag`; the page has more than two words.
        unsafe { self.live.add(1).as_ref() }
    }

    #[inline(always)]
    fn flag(&self) -> &AtomicU32 {
        // SAFETY: the page lives as long as the guard, is aligned, and was zeroed by the kernel.
        unsafe { self.live.as_ref() }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the page belongs to this process, in a child as well, and no reference to it outlives the guards.
        let unmapped = unsafe { munmap(self.0.as_ptr().cast(), page_bytes()) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

fn page_bytes() -> usize {
    rustix::param::page_size()
}
